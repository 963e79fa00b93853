"""BigQuery: bqemulator (DuckDB) as a server process, with what it does differently from the service mended.

In: the state directory. Out: REST and the Storage Read API (gRPC) on loopback. One mend is one function in `mends`,
with its reason; the Storage Read API is our own (`read`).
"""
