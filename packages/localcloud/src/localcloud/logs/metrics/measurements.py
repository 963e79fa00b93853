"""What deployed models answered, one row per request, in one SQLite file that several processes use at once (WAL).

In: `Measurements(path).add(Measurement(...))`, by the server that asks the models. Out: the rows of a project and time.
"""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

_WAIT_FOR_OTHERS_S = 10.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS measurements (
  time_ns INTEGER NOT NULL,
  project TEXT NOT NULL,
  location TEXT NOT NULL,
  endpoint_id TEXT NOT NULL,
  deployed_model_id TEXT NOT NULL,
  response_code INTEGER NOT NULL,
  instances INTEGER NOT NULL,
  model_ms REAL NOT NULL,
  overhead_ms REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS measurements_in_time ON measurements (project, time_ns);
"""


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """One request to an endpoint. Its time is in nanoseconds since 1970 UTC, its code an HTTP status."""

    time_ns: int
    project: str
    location: str
    endpoint_id: str
    deployed_model_id: str
    response_code: int
    instances: int
    model_ms: float
    overhead_ms: float


_COLUMNS = [field.name for field in dataclasses.fields(Measurement)]
_INSERT = "INSERT INTO measurements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT * FROM measurements WHERE project = ? AND time_ns > ? AND time_ns <= ? ORDER BY time_ns"


class Measurements:
    """The rows; safe to use from several threads and processes.

    Args:
        path: The SQLite file (`State.measurements_path`).
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._connection = sqlite3.connect(path, timeout=_WAIT_FOR_OTHERS_S, check_same_thread=False)
        self._connection.isolation_level = None
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.executescript(_SCHEMA)

    def add(self, measurement: Measurement) -> None:
        """Store one."""
        with self._lock:
            self._connection.execute(_INSERT, dataclasses.astuple(measurement))

    def read(self, project: str, start_ns: int, end_ns: int) -> list[Measurement]:
        """Return those of a project after a time and up to another one, oldest first."""
        with self._lock:
            rows = self._connection.execute(_SELECT, (project, start_ns, end_ns)).fetchall()
        return [Measurement(**dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    def close(self) -> None:
        """Close the file."""
        self._connection.close()
