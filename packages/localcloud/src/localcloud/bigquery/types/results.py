"""Results of finished queries: bounded, and found again as the anonymous tables that the service keeps them in.

In: Arrow tables by job id, as bqemulator's executor leaves them. Out: the same by the name of a job's destination, as a
relation of DuckDB whose columns have their types again (Arrow has no JSON and no GEOGRAPHY).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from localcloud.bigquery.types.columns import quoted
from localcloud.statements import statement
from localcloud.untyped import Untyped

ANONYMOUS_DATASET = "_bqemu_anonymous"
_RESULT_BYTES = 256 * 1024 * 1024


class BoundedResults(dict[str, Untyped]):
    """Results of finished queries, the oldest forgotten once they hold too much; bqemulator keeps all of them."""

    def __setitem__(self, job_id: str, table: Untyped) -> None:
        """Keep a result, and forget the oldest ones above the limit."""
        super().__setitem__(job_id, table)
        held = sum(each.nbytes for each in self.values())
        while held > _RESULT_BYTES and len(self) > 1:
            oldest = next(iter(self))
            held -= self.pop(oldest).nbytes

    def job_of(self, dataset: str, table: str) -> str | None:
        """Return the job whose anonymous table this is; None when it is none, or forgotten."""
        if dataset != ANONYMOUS_DATASET:
            return None
        return next((job_id for job_id in list(self) if f"anon{job_id.replace('-', '')}" == table), None)


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
