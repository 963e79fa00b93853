"""Cloud Logging's entries in one SQLite file, written and read by several processes at once (WAL).

In: `LogStore(path).append([Entry(...)])`. Out: `LogStore(path).page(...)`, in time order. Whoever
writes replica logs does it right here, without a server between:

    store = LogStore(State(state_path).logs_path)
    store.append([Entry.of_job(project="local-project", job_id="123", task_name="workerpool0-0", message="step 1")])

An entry of a job looks as Vertex AI writes it: resource type `ml_job` with labels job_id, project_id, task_name; log
name `projects/<project>/logs/<task_name>`; the text in `textPayload`, or a `jsonPayload` with a `message`.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import threading
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from localcloud.statements import statement

_QUERY_TIMEOUT_S = 10.0
_STEPS = 10_000  # of SQLite's machine between two looks at the clock
# google.logging.type.LogSeverity
SEVERITIES = {
    "DEFAULT": 0,
    "DEBUG": 100,
    "INFO": 200,
    "NOTICE": 300,
    "WARNING": 400,
    "ERROR": 500,
    "CRITICAL": 600,
    "ALERT": 700,
    "EMERGENCY": 800,
}

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
  id INTEGER PRIMARY KEY,
  log_name TEXT NOT NULL,
  insert_id TEXT NOT NULL,
  timestamp_ns INTEGER NOT NULL,
  receive_timestamp_ns INTEGER NOT NULL,
  severity INTEGER NOT NULL,
  resource_type TEXT NOT NULL,
  resource_labels TEXT NOT NULL,
  labels TEXT NOT NULL,
  text_payload TEXT,
  json_payload TEXT,
  more TEXT,
  job_id TEXT GENERATED ALWAYS AS (json_extract(resource_labels, '$.job_id')) VIRTUAL
);
CREATE INDEX IF NOT EXISTS entries_of_job ON entries (job_id, timestamp_ns, id);
CREATE INDEX IF NOT EXISTS entries_in_time ON entries (timestamp_ns, id);
CREATE UNIQUE INDEX IF NOT EXISTS entries_once ON entries (log_name, timestamp_ns, insert_id);
"""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One log entry. Times are nanoseconds since 1970 UTC; exactly one of the payloads is set.

    Attributes:
        more: What else a caller said of it (`trace`, `httpRequest`, …), in the JSON of a LogEntry.
    """

    log_name: str
    timestamp_ns: int
    severity: int = 0
    resource_type: str = "global"
    resource_labels: dict[str, str] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    text_payload: str | None = None
    json_payload: dict[str, Any] | None = None
    insert_id: str = ""
    more: dict[str, Any] | None = None
    receive_timestamp_ns: int = 0

    @classmethod
    def of_job(
        cls,
        *,
        project: str,
        job_id: str,
        task_name: str,
        message: str | dict[str, Any],
        severity: str = "INFO",
        timestamp_ns: int | None = None,
        labels: dict[str, str] | None = None,
    ) -> Entry:
        """Make an entry as Vertex AI writes one for a replica of a job.

        Args:
            job_id: last part of the job's name.
            task_name: replica, for example `workerpool0-0`; also the log's id.
            message: text, or a JSON object with a `message`.
            severity: a name of google.logging.type.LogSeverity.
            timestamp_ns: when it happened; default now.
        """
        return cls(
            log_name=f"projects/{project}/logs/{task_name}",
            timestamp_ns=time.time_ns() if timestamp_ns is None else timestamp_ns,
            severity=SEVERITIES[severity],
            resource_type="ml_job",
            resource_labels={"job_id": job_id, "project_id": project, "task_name": task_name},
            labels=labels or {},
            text_payload=message if isinstance(message, str) else None,
            json_payload=None if isinstance(message, str) else message,
        )


class LogStore:
    """The store; safe to use from several threads, and from several processes on the same file."""

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._local = threading.local()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._connection().executescript(_SCHEMA)
        self._add_column()

    def _add_column(self) -> None:
        """Give the file of an older local cloud the column that it does not have; another process may be as far."""
        connection = self._connection()
        if not any(row[1] == "more" for row in connection.execute("PRAGMA table_info(entries)")):
            with contextlib.suppress(sqlite3.OperationalError):
                connection.execute("ALTER TABLE entries ADD COLUMN more TEXT")

    def append(self, entries: Iterable[Entry]) -> None:
        """Write entries in one transaction; one with the name, time and insert id of a stored one is dropped."""
        now = time.time_ns()
        rows = [_to_row(entry, now) for entry in entries]
        with self._connection() as connection:
            insert = "INSERT OR IGNORE INTO entries ({columns}) VALUES ({marks})"
            connection.executemany(statement(insert, columns=", ".join(_COLUMNS), marks=_MARKS), rows)

    def page(
        self,
        *,
        where: str = "1",
        parameters: Sequence[object] = (),
        descending: bool = False,
        limit: int = 50,
        after: tuple[int, int] | None = None,
    ) -> tuple[list[Entry], tuple[int, int] | None]:
        """Return entries in time order (those of one instant in the order they were written), a page at a time.

        Args:
            where: SQL condition over the columns, as `logfilter.compile_filter` makes it.
            parameters: values for the condition's question marks.
            descending: newest first.
            limit: at most so many.
            after: where the page before ended.

        Raises:
            sqlite3.Error: the condition is malformed or takes too long.

        Returns:
            The entries, and where this page ended (None: nothing comes after it now).
        """
        sign, direction = ("<", "DESC") if descending else (">", "ASC")
        resume = f"AND (timestamp_ns, id) {sign} (?, ?)" if after else ""
        select = statement(
            "SELECT id, {columns} FROM entries WHERE ({where}) {resume}"
            " ORDER BY timestamp_ns {direction}, id {direction} LIMIT ?",
            columns=", ".join(_COLUMNS),
            where=where,
            resume=resume,
            direction=direction,
        )
        connection, end_s = self._connection(), time.monotonic() + _QUERY_TIMEOUT_S
        connection.set_progress_handler(lambda: time.monotonic() > end_s, _STEPS)
        try:
            rows = connection.execute(select, [*parameters, *(after or ()), limit + 1]).fetchall()
        finally:
            connection.set_progress_handler(None, 0)
        entries = [_from_row(row[1:]) for row in rows[:limit]]
        end = (entries[-1].timestamp_ns, int(rows[limit - 1][0])) if len(rows) > limit else None
        return entries, end

    def log_names(self, prefix: str) -> list[str]:
        """List the names of logs that hold entries and begin with a prefix."""
        rows = self._connection().execute(
            "SELECT DISTINCT log_name FROM entries WHERE substr(log_name, 1, ?) = ? ORDER BY 1", (len(prefix), prefix)
        )
        return [name for (name,) in rows]

    def delete_log(self, name: str) -> bool:
        """Delete all entries of a log; tell whether there were any."""
        with self._connection() as connection:
            return connection.execute("DELETE FROM entries WHERE log_name = ?", (name,)).rowcount > 0

    def _connection(self) -> sqlite3.Connection:
        if not hasattr(self._local, "connection"):
            connection = sqlite3.connect(self._path, timeout=30)
            connection.create_function("regexp", 2, is_found, deterministic=True)  # X REGEXP Y calls it with Y, X
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            self._local.connection = connection
        return self._local.connection  # type: ignore[no-any-return]  # threading.local has no types


_COLUMNS = (
    "log_name",
    "insert_id",
    "timestamp_ns",
    "receive_timestamp_ns",
    "severity",
    "resource_type",
    "resource_labels",
    "labels",
    "text_payload",
    "json_payload",
    "more",
)
_MARKS = ", ".join("?" * len(_COLUMNS))


def is_found(pattern: str, text: str | None) -> bool:
    """Return whether a regular expression is found in a text, in time that grows with the text alone (RE2)."""
    return text is not None and bool(
        pc.match_substring_regex(pa.array([text], pa.string()), pattern=pattern)[0].as_py()
    )


def _to_row(entry: Entry, now_ns: int) -> tuple[object, ...]:
    return (
        entry.log_name,
        entry.insert_id or uuid.uuid4().hex[:16],
        entry.timestamp_ns,
        entry.receive_timestamp_ns or now_ns,
        entry.severity,
        entry.resource_type,
        json.dumps(entry.resource_labels),
        json.dumps(entry.labels),
        entry.text_payload,
        None if entry.json_payload is None else json.dumps(entry.json_payload),
        None if entry.more is None else json.dumps(entry.more),
    )


def _from_row(row: tuple[Any, ...]) -> Entry:
    values = dict(zip(_COLUMNS, row, strict=True))
    for column in ("resource_labels", "labels", "json_payload", "more"):
        values[column] = None if values[column] is None else json.loads(values[column])
    return Entry(**values)
