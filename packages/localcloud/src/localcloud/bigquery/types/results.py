"""Results of finished queries: bounded, and found again as the anonymous tables that the service keeps them in.

In: Arrow tables by job id, as bqemulator's executor leaves them. Out: the same by the name of a job's destination, as a
relation of DuckDB whose columns have their types again (Arrow has no JSON and no GEOGRAPHY). A job's id is that of one
project, which bqemulator does not know: it is that of the request.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar

from localcloud.bigquery.types.columns import quoted
from localcloud.statements import statement
from localcloud.untyped import Untyped

ANONYMOUS_DATASET = "_bqemu_anonymous"
_RESULT_BYTES = 256 * 1024 * 1024


PROJECT: ContextVar[str] = ContextVar("project", default="")
"""The project of the request that is being served."""


class OfProject(MutableMapping[str, Untyped]):
    """What bqemulator keeps by a job's id, kept by the request's project, too."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Untyped] = {}

    def __getitem__(self, job_id: str) -> Untyped:
        """Return what a job of the request's project has."""
        return self._kept[PROJECT.get(), job_id]

    def __setitem__(self, job_id: str, value: Untyped) -> None:
        """Keep what a job of the request's project has."""
        self._kept[PROJECT.get(), job_id] = value

    def __delitem__(self, job_id: str) -> None:
        """Forget what a job of the request's project has."""
        del self._kept[PROJECT.get(), job_id]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the jobs of the request's project."""
        return iter([job_id for project, job_id in list(self._kept) if project == PROJECT.get()])

    def __len__(self) -> int:
        """Return how many jobs of the request's project have something."""
        return len(list(iter(self)))


class BoundedResults(OfProject):
    """Results of finished queries, the oldest forgotten once they hold too much; bqemulator keeps all of them."""

    def __setitem__(self, job_id: str, table: Untyped) -> None:
        """Keep a result, and forget the oldest ones above the limit."""
        super().__setitem__(job_id, table)
        held = sum(each.nbytes for each in self._kept.values())
        while held > _RESULT_BYTES and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            held -= self._kept.pop(oldest).nbytes

    def job_of(self, dataset: str, table: str) -> str | None:
        """Return the job whose anonymous table this is; None when it is none, or forgotten."""
        if dataset != ANONYMOUS_DATASET:
            return None
        return next((job_id for job_id in self if f"anon{job_id.replace('-', '')}" == table), None)

    def rows_of(self, project: str, dataset: str, table: str) -> Untyped:
        """Return the rows of an anonymous table of any project; None when it is none, or forgotten."""
        token = PROJECT.set(project)
        try:
            job_id = self.job_of(dataset, table)
            return None if job_id is None else self.get(job_id)
        finally:
            PROJECT.reset(token)


@contextmanager
def registered(rows: Untyped, connection: Untyped) -> Iterator[str]:
    """Yield a result as a relation of one connection, by its name there."""
    name = f"localcloud_result_{uuid.uuid4().hex}"
    connection.register(f"{name}_rows", rows)
    try:
        values = ", ".join(_stored(field) for field in rows.schema)
        view = "CREATE TEMP VIEW {name} AS SELECT {values} FROM {name}_rows"
        connection.execute(statement(view, name=name, values=values))
        yield name
    finally:
        connection.execute(f"DROP VIEW IF EXISTS {name}")
        connection.unregister(f"{name}_rows")


def _stored(field: Untyped) -> str:
    kind = (field.metadata or {}).get(b"bqemu.duckdb_type", b"").decode()
    name = quoted(field.name)
    return f"CAST({name} AS {kind}) AS {name}" if "JSON" in kind or "HUGEINT" in kind else name
