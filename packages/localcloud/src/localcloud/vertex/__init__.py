"""A Vertex AI that runs on this machine: jobs, registry, endpoints, predictions, long-running operations.

Comes in: gRPC and REST calls of Google's unmodified clients. Goes out: processes in the images' environments, log
entries, rows in BigQuery. `front` takes the calls and finds who answers: a folder per family of resources (`models`,
`endpoints`, and those in `jobs`), above what all of them use (`processes`, `resources`, `wire`). `server`
starts it all.
"""
