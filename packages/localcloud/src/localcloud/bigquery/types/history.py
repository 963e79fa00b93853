"""`FOR SYSTEM_TIME AS OF`: a table as it was, where that is known; where it is not, the statement is refused.

bqemulator copies a whole table after each change, which every logged request would be one of. Here a table is copied
before a statement changes it, so that one which nobody changes again is never copied. Rows that are streamed, and
tables of more than 100,000 rows, are not copied: the time before such a change is a gap, and asking for it is
refused.

In: every statement that the engine runs, and the changes that this package makes itself. Out: for a table and a time
the live table, a copy of it, or `OutOfRangeError`. Copies are kept for seven days, as the service's history is, at
most twenty of a table.
"""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from pathlib import Path

from localcloud.statements import statement
from localcloud.untyped import Untyped

_RETENTION_US = int(timedelta(days=7).total_seconds() * 1_000_000)
_MOST_ROWS = 100_000
_MOST_COPIES = 20
# A text in a statement that looks like a change of a table costs a copy, and no wrong answer.
_WRITES = re.compile(
    r"\b(?:INSERT(?:\s+OR\s+\w+)?\s+INTO|MERGE\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE(?:\s+TABLE)?|COPY"
    r"|CREATE(?:\s+OR\s+REPLACE)?\s+TABLE(?:\s+IF\s+NOT\s+EXISTS)?|DROP\s+TABLE(?:\s+IF\s+EXISTS)?"
    r"|ALTER\s+TABLE(?:\s+IF\s+EXISTS)?)\s+(?P<table>\"[^\"]+__[^\"]+\"\.\"[^\"]+\")",
    re.IGNORECASE,
)
_STREAMED = " FROM __bqemu_"
# The tables that are being changed further out: a load that replaces a table drops, makes and fills it, which is one
# change. A context's own, as a statement of another request meanwhile is a change of its own.
_CHANGING: ContextVar[frozenset[str]] = ContextVar("_CHANGING", default=frozenset())
# `ended` is when the state that a table had since `begun` was changed; `copy` is "" where none was made of it.
_SCHEMA = """CREATE TABLE IF NOT EXISTS states (reference TEXT, begun INTEGER, ended INTEGER, copy TEXT,
    PRIMARY KEY (reference, begun)) WITHOUT ROWID"""


class TableHistory:
    """The states that tables had, by their references in DuckDB.

    Args:
        path: The SQLite file that remembers them.
    """

    def __init__(self, path: Path) -> None:
        self._states = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._states.execute("PRAGMA journal_mode = WAL")
        self._states.execute(_SCHEMA)

    @contextmanager
    def around(self, connection: Untyped, sql: str) -> Iterator[None]:
        """Look at a statement before and after it runs."""
        tables = sorted({match["table"] for match in _WRITES.finditer(sql)})
        if _STREAMED in sql:  # rows of requests, one by one: no copy of their table for each
            yield
            for table in tables:
                self._note(table, "")
            return
        with self.changing(connection, *tables):
            yield

    @contextmanager
    def changing(self, connection: Untyped, *references: str) -> Iterator[None]:
        """Keep tables as they are before something changes them; what runs within it is the same change."""
        outer = _CHANGING.get()
        copies = {reference: self._copy(connection, reference) for reference in references if reference not in outer}
        token = _CHANGING.set(outer.union(references))
        try:
            yield
        finally:  # a change that failed half-way is one
            _CHANGING.reset(token)
            for reference, copy in copies.items():
                self._note(reference, copy)

    def begin(self, reference: str) -> None:
        """Know nothing of a table before now: it has another table's name, or had one."""
        self._note(reference, "")

    def find_copy(self, reference: str, asked_us: int) -> str | None:
        """Return the copy that a table was at a time; "" for the live table, None where nothing is known."""
        query = "SELECT MAX(ended) FROM states WHERE reference = ?"
        (changed,) = self._states.execute(query, (reference,)).fetchone()
        if changed is None or asked_us >= changed:
            return ""
        query = "SELECT copy FROM states WHERE reference = ? AND begun <= ? AND ended > ?"
        row = self._states.execute(query, (reference, asked_us, asked_us)).fetchone()
        return row[0] or None if row else None

    def _copy(self, connection: Untyped, reference: str) -> str:
        """Copy a table that is there and not too large; gives the copy's name, "" without one."""
        self._drop_old(connection, reference)
        schema, table = (part.strip('"') for part in reference.split('"."'))
        query = "SELECT estimated_size FROM duckdb_tables() WHERE schema_name = ? AND table_name = ?"
        row = connection.execute(query, [schema, table]).fetchone()
        if row is None or row[0] > _MOST_ROWS:
            return ""
        name = f"s_{_now_us() * 1000:020d}_{uuid.uuid4().hex[:8]}"
        create = 'CREATE TABLE "{schema}"."{name}" AS SELECT * FROM {table}'
        connection.execute(statement(create, schema=snapshots(), name=name, table=reference))
        return name

    def _drop_old(self, connection: Untyped, reference: str) -> None:
        query = "SELECT begun, ended, copy FROM states WHERE reference = ? AND copy <> '' ORDER BY ended DESC"
        before = _now_us() - _RETENTION_US
        for number, (begun, ended, copy) in enumerate(self._states.execute(query, (reference,)).fetchall()):
            if number + 1 >= _MOST_COPIES or ended < before:
                drop = 'DROP TABLE IF EXISTS "{schema}"."{name}"'
                connection.execute(statement(drop, schema=snapshots(), name=copy))
                forget = "UPDATE states SET copy = '' WHERE reference = ? AND begun = ?"
                self._states.execute(forget, (reference, begun))

    def _note(self, reference: str, copy: str) -> None:
        query = "SELECT ended, copy FROM states WHERE reference = ? ORDER BY ended DESC LIMIT 1"
        begun, last = self._states.execute(query, (reference,)).fetchone() or (0, None)
        if not copy and last == "":  # two changes without a copy between them are one gap
            widen = "UPDATE states SET ended = ? WHERE reference = ? AND ended = ?"
            self._states.execute(widen, (_now_us(), reference, begun))
            return
        self._states.execute("INSERT OR REPLACE INTO states VALUES (?, ?, ?, ?)", (reference, begun, _now_us(), copy))


def _now_us() -> int:
    return int(datetime.now(UTC).timestamp() * 1_000_000)


def snapshots() -> str:
    """Return the schema that copies are kept in."""
    from bqemulator.storage.engine import SNAPSHOTS_SCHEMA

    return str(SNAPSHOTS_SCHEMA)
