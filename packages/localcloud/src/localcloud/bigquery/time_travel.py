"""Lets `FOR SYSTEM_TIME AS OF` run: by a literal, an expression or a query parameter.

In: bqemulator's engine, its snapshots and its jobs, before it serves. Out: the same, with tables as they were, from
`types.history`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

from localcloud.bigquery.types.history import TableHistory, snapshots
from localcloud.untyped import Untyped

_RETENTION = timedelta(days=7)
_PARAMETER = re.compile(r"(\bFOR\s+SYSTEM_TIME\s+AS\s+OF\s+)@(\w+)", re.IGNORECASE)
_TIME = re.compile(r"[0-9T:. +Z-]+(?:UTC)?")


def apply(routes: Untyped, directory: Path) -> None:
    """Keep tables as they are before they change, and find them again."""
    from bqemulator.storage.engine import DuckDBEngine
    from bqemulator.versioning.snapshots import SnapshotManager

    history = TableHistory(directory / "history.sqlite")
    execute = DuckDBEngine.execute
    capture = SnapshotManager.capture

    def execute_noted(self: Untyped, sql: str, parameters: Untyped = None) -> Untyped:
        with history.around(self.connection, sql):
            return execute(self, sql, parameters)

    def capture_explicit(self: Untyped, *args: Untyped, kind: str = "AUTO") -> Untyped:
        return None if kind == "AUTO" else capture(self, *args, kind=kind)  # not after each change: see the history

    DuckDBEngine.history = history
    DuckDBEngine.execute = execute_noted
    SnapshotManager.capture = capture_explicit
    SnapshotManager.resolve_time_travel = _resolve
    run = routes.execute_query_job

    @functools.wraps(run)
    async def execute_query(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        return await run(project_id, job_id, with_times(bq_sql, params or []), params, ctx, **kwargs)

    routes.execute_query_job = execute_query


def with_times(sql: str, parameters: list[Mapping[str, Untyped]]) -> str:
    """Return a statement with the values of the parameters that stand behind FOR SYSTEM_TIME AS OF."""
    values = {each.get("name", ""): str((each.get("parameterValue") or {}).get("value", "")) for each in parameters}

    def replace(match: re.Match[str]) -> str:
        value = values.get(match[2], "")
        return f"{match[1]}TIMESTAMP '{value}'" if _TIME.fullmatch(value) else match[0]

    return _PARAMETER.sub(replace, sql)


def _resolve(self: Untyped, project: str, dataset: str, table: str, target: datetime) -> Untyped:
    """Return where a table as it was lies; None for the live table.

    Raises:
        OutOfRangeError: It is not known.
    """
    from bqemulator.domain.errors import OutOfRangeError
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    target = target if target.tzinfo else target.replace(tzinfo=UTC)
    now = self._clock.now()
    stored = self._catalog.get_table(project, dataset, table)
    where = f"Invalid time travel timestamp {target.isoformat()} for table {project}:{dataset}.{table}"
    if not now - _RETENTION <= target <= now:
        raise OutOfRangeError(f"{where}. Expected a time of the last seven days, and not of the future.")
    if stored is None:
        return None
    microseconds = int(target.timestamp() * 1_000_000)
    copy = self._engine.history.find_copy(quoted_table_ref(project, dataset, table), microseconds)
    if copy == "" and (stored.creation_time is None or target >= stored.creation_time):
        return None
    query = "SELECT 1 FROM duckdb_tables() WHERE schema_name = ? AND table_name = ?"
    if copy and self._engine.connection.execute(query, [snapshots(), copy]).fetchone():
        return SimpleNamespace(duckdb_schema=snapshots(), duckdb_table=copy)
    raise OutOfRangeError(
        f"{where}: the local cloud does not know it. It knows a table since it was made, but not before rows were"
        " streamed into it, nor before a change when it had more than 100,000 rows. Ask for a later time."
    )
