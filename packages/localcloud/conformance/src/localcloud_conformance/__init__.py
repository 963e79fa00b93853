"""Public clients' own test suites, unmodified, run against the local cloud: `make conformance`.

Comes in: the clients' sources, fetched from the package index by hash, and an environment with their requirements. Goes
out: the share of each suite that passes, held against `results.json`. Nothing is imported here: the plugin of pytest
runs in the clients' environment.
"""
