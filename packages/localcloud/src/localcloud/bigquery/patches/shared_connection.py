"""Patches requests that run at the same time: all of them share one connection, and with it one pending result.

Two at a time can read each other's rows.
"""

from __future__ import annotations

import functools
import threading

from localcloud.untyped import Untyped


def apply() -> None:
    """Return requests that run in a worker thread a connection of their own."""
    from bqemulator.storage.engine import DuckDBEngine

    original = DuckDBEngine.execute

    @functools.wraps(original)
    def execute(self: Untyped, sql: str, parameters: list[Untyped] | None = None) -> Untyped:
        if threading.current_thread() is threading.main_thread():
            return original(self, sql, parameters)
        cursor = self.connection.cursor()
        return cursor.execute(sql, parameters) if parameters is not None else cursor.execute(sql)

    DuckDBEngine.execute = execute
