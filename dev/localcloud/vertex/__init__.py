"""A Vertex AI that runs on this machine: jobs, registry, endpoints, predictions, long-running operations.

Comes in: gRPC and REST calls of Google's unmodified clients. Goes out: processes in the images' environments, log
entries, rows in BigQuery. One room per resource family holds the handlers (`jobs`, `registry`, `evaluations`,
`endpoints`, `predictions`, `operations`, and a floor of its own for `tuning`); `dispatch` finds them by name, `server`
starts it all.
"""
