"""BigQuery: bqemulator (DuckDB) as a server process, with what it does differently from the service mended.

In: the state directory. Out: REST and the Storage Read API (gRPC) on loopback. One mend is one function in `mends`,
with its reason; the Storage Read API is our own (`read`).
"""

from __future__ import annotations

from typing import Any, TypeAlias

Untyped: TypeAlias = Any
"""What comes from bqemulator, DuckDB, Starlette and pyarrow, which publish no types (or types that change often)."""
