"""Which calls were answered, by method and status, minute by minute: what `localcloud calls` prints.

In: calls of any server process, counted by `FaultStore.count` when they end. Out: `Answered` rows. The counts are one
SQLite file in the state directory, begun anew by each `localcloud up` and each reset. A call of somebody whose token
is not known, and of an address that is no method, has no name to be counted under over REST; the local cloud's own
pages (`/faults`, `/iam`, `/clock`) are not counted.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.codes import HTTP_STATUS
from localcloud.services import services

_log = logging.getLogger("calls")
OK = "OK"
FILE_NAME = "calls.sqlite"
_WAIT_FOR_OTHERS_S = 10.0
_MINUTE_S = 60
_SCHEMA = """CREATE TABLE IF NOT EXISTS calls (
    minute INTEGER NOT NULL, method TEXT NOT NULL, status TEXT NOT NULL, count INTEGER NOT NULL,
    PRIMARY KEY (minute, method, status)
) WITHOUT ROWID"""
_COUNT = (
    "INSERT INTO calls VALUES (?, ?, ?, 1) ON CONFLICT (minute, method, status) DO UPDATE SET count = calls.count + 1"
)


@dataclass(kw_only=True)
class Answered:
    """How often a method was answered.

    Attributes:
        service: The title of its service; "" where no `service.json` names the method.
        minute: When, the beginning of the minute in UTC (`2026-01-31T09:05Z`); "" for all minutes.
        count: All answers.
        errors: The refusals among them by status, a name of google.rpc.Code.
    """

    service: str
    method: str
    minute: str = ""
    count: int = 0
    errors: dict[str, int] = field(default_factory=dict)


class CallCounts:
    """The counts, for all threads of one process and all processes of a local cloud.

    Args:
        path: The SQLite file.
        now_s: The time, in seconds since 1970.
    """

    def __init__(self, path: Path, now_s: Callable[[], float] = time.time) -> None:
        self._lock = threading.Lock()
        self._now_s = now_s
        self._connection = sqlite3.connect(path, timeout=_WAIT_FOR_OTHERS_S, check_same_thread=False)
        self._connection.isolation_level = None
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute(_SCHEMA)

    def count(self, method: str, status: str = OK) -> None:
        """Count an answer; takes some tens of microseconds. Where that fails, the answer stands, and the log says so.

        Args:
            status: A name of google.rpc.Code.
        """
        with self._lock:
            try:
                self._connection.execute(_COUNT, (int(self._now_s()) // _MINUTE_S, method, status))
            except sqlite3.Error as error:
                _log.warning("%s is not counted: %s", method, error)

    def read(self, *, by_minute: bool = False) -> list[Answered]:
        """Return a row for each method, or for each minute and method; by minute, service and method."""
        with self._lock:
            rows = self._connection.execute("SELECT minute, method, status, count FROM calls").fetchall()
        return _sum_up(rows, by_minute=by_minute)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def forget_calls(state_path: Path) -> None:
    """Begin anew; no server may be running."""
    for name in (FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
        (state_path / name).unlink(missing_ok=True)


def code_of(http_status: int) -> str:
    """Return the name of google.rpc.Code for an HTTP status; of several that share it the most general one."""
    if http_status < 400:
        return OK
    own = {412: "FAILED_PRECONDITION", 416: "OUT_OF_RANGE", 405: "UNIMPLEMENTED", 409: "ALREADY_EXISTS"}
    known = {number: name for name, number in reversed(HTTP_STATUS.items())}
    return {**known, 500: "INTERNAL", **own}.get(http_status, "UNKNOWN")


def _sum_up(rows: Iterable[tuple[int, str, str, int]], *, by_minute: bool) -> list[Answered]:
    titles = _titles()
    found: dict[tuple[str, str, str], Answered] = {}
    for minute, method, status, count in rows:
        when = time.strftime("%Y-%m-%dT%H:%MZ", time.gmtime(minute * _MINUTE_S)) if by_minute else ""
        service = titles.get(method) or titles.get(method.rpartition(".")[0]) or ""
        row = found.setdefault((when, service, method), Answered(service=service, method=method, minute=when))
        row.count += count
        if status != OK:
            row.errors[status] = row.errors.get(status, 0) + count
    return [found[key] for key in sorted(found)]


def _titles() -> dict[str, str]:
    """Return the service's title of each method, and of what stands before the last point of it."""
    titles: dict[str, str] = {}
    for service in services():
        for method in service.methods:
            name = method.partition("/")[0]
            titles[name] = service.title
            titles.setdefault(name.rpartition(".")[0], service.title)
    return titles
