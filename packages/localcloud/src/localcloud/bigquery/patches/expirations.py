"""Patches `OPTIONS(expiration_timestamp = …)`, which is dropped: run tables would stay for ever.

The times stand in a small file beside the database; a task drops what is due.
"""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Callable
from pathlib import Path

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.trees import only_tree
from localcloud.untyped import Untyped

_log = logging.getLogger("bigquery")
_PAUSE_S = 2


class Expirations:
    """Expiration times by full table name (`project.dataset.table`), in milliseconds since 1970 UTC."""

    def __init__(self, path: Path, now_ms: Callable[[], int]) -> None:
        self._path = path
        self._now_ms = now_ms
        self._times: dict[str, int] = json.loads(path.read_bytes()) if path.exists() else {}

    def set(self, name: str, expires_ms: int | None) -> None:
        """Note when a table expires; None: never."""
        before = self._times.pop(name, None)
        if expires_ms is not None:
            self._times[name] = expires_ms
        if before != expires_ms:
            self._write()

    def get(self, name: str) -> int | None:
        """Return when a table expires, None for never."""
        return self._times.get(name)

    def take_due(self) -> list[str]:
        """Return the tables whose time has come, and forget them."""
        due = sorted(name for name, time in self._times.items() if time <= self._now_ms())
        for name in due:
            del self._times[name]
        if due:
            self._write()
        return due

    def _write(self) -> None:
        temporary = self._path.with_suffix(".new")
        temporary.write_text(json.dumps(self._times, indent=2, sort_keys=True) + "\n")
        temporary.replace(self._path)


def apply(routes: Untyped, expirations: Expirations) -> None:
    """Note when the tables that statements create expire."""
    original = routes.execute_query_job

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        created = _created_table(bq_sql, project_id)
        if created is not None:
            name, expression = created

            def run(probe_id: str, probe: str) -> Untyped:
                return original(project_id, probe_id, probe, params, ctx, **kwargs)

            expirations.set(name, await evaluate_time(routes, run, job_id, expression) if expression else None)
        return job

    routes.execute_query_job = execute


async def evaluate_time(
    routes: Untyped, run: Callable[[str, str], Untyped], job_id: str, expression: str
) -> int | None:
    """Return the milliseconds since 1970 of a TIMESTAMP, an expression of GoogleSQL; None for NULL.

    Args:
        run: Runs a job of this id with this statement.
        job_id: Of the job whose statement has it.
    """
    probe_id = f"{job_id}-expiration"
    await run(probe_id, f"SELECT UNIX_MILLIS({expression})")
    routes.JOB_SCHEMAS.pop(probe_id)
    time: int | None = routes.JOB_RESULTS.pop(probe_id).column(0)[0].as_py()
    return time


def _created_table(statement: str, project: str) -> tuple[str, str | None] | None:
    """Return the full name of the table that a statement creates, and its expiration expression in GoogleSQL."""
    tree = only_tree(statement)
    if not isinstance(tree, exp.Create) or tree.kind != "TABLE":
        return None
    table = tree.find(exp.Table)
    for option in tree.find_all(exp.Property):
        if option.name.lower() == "expiration_timestamp":
            return f"{table.catalog or project}.{table.db}.{table.name}", option.args["value"].sql(dialect="bigquery")
    return f"{table.catalog or project}.{table.db}.{table.name}", None


async def drop_expired(context: Untyped, project: str, expirations: Expirations) -> None:
    """Drop tables whose time has come, now and then."""
    from bqemulator.api.routes import jobs as job_routes

    while True:
        for name in expirations.take_due():
            statement = f"DROP TABLE IF EXISTS `{name}`"
            try:
                await job_routes.execute_query_job(project, f"expire-{name}", statement, None, context)
            except Exception as error:  # noqa: BLE001 - one table that cannot be dropped must not keep the others
                _log.warning("%s has expired and could not be dropped: %s", name, error)
        await asyncio.sleep(_PAUSE_S)
