"""BigQuery: bqemulator (DuckDB) as a server process, with what it does differently from the service patched.

In: the state directory. Out: REST and the Storage Read API (gRPC) on unix sockets. `patches` has a file per fault of
the emulator; loads and extracts (`files`) and the Storage Read API (`read`) are our own; `middleware` stands before the
REST API.
"""
