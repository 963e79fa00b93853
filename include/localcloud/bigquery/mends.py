"""What bqemulator 1.4.0 does differently from BigQuery, mended where this project depends on it.

In: the emulator's modules, before its server starts. Out: the same modules with some functions replaced. One mend is
one function; its docstring says what is wrong and why it matters here. Site-packages stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def apply(*, project: str, memory_limit: str, read_server: Callable[[Any], Any]) -> None:
    """Apply every mend.

    Args:
        project: the one project that exists.
        memory_limit: DuckDB's memory limit, for example `1500MB`.
        read_server: makes the gRPC server, from the emulator's context.
    """
    from bqemulator import server

    server.build_grpc_server = read_server
