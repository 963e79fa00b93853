"""Secrets and their versions in one SQLite file below the state directory, which its owner alone can read.

In: projects by id, secrets by their ids, versions by their numbers. Out: `Secret` and `Version` values. What a version
held is gone when it is destroyed, also from the file.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

VersionState = Literal["ENABLED", "DISABLED", "DESTROYED"]

_OWNER_ONLY = 0o600
_SCHEMA = """
CREATE TABLE IF NOT EXISTS secrets (
    project TEXT NOT NULL, id TEXT NOT NULL, created_ns INTEGER NOT NULL, etag TEXT NOT NULL, body BLOB NOT NULL,
    versions INTEGER NOT NULL, PRIMARY KEY (project, id)
);
CREATE TABLE IF NOT EXISTS versions (
    project TEXT NOT NULL, id TEXT NOT NULL, number INTEGER NOT NULL, created_ns INTEGER NOT NULL,
    destroyed_ns INTEGER NOT NULL, state TEXT NOT NULL, etag TEXT NOT NULL, checked INTEGER NOT NULL, data BLOB,
    PRIMARY KEY (project, id, number)
);
"""
_OF_PROJECT = "SELECT id, created_ns, etag, body FROM secrets WHERE project = ?"
_VERSION = (
    "SELECT number, created_ns, destroyed_ns, state, etag, checked, data FROM versions WHERE project = ? AND id = ?"
)


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A secret.

    Attributes:
        body: What its creator said of it, a message in its wire bytes.
    """

    id: str
    created_ns: int
    etag: str
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Version:
    """A version of a secret.

    Attributes:
        number: From 1.
        destroyed_ns: 0 of one that is not destroyed.
        checked: Whether its writer sent a checksum.
        data: None of one that is destroyed.
    """

    number: int
    created_ns: int
    destroyed_ns: int
    state: VersionState
    etag: str
    checked: bool
    data: bytes | None


class SecretStore:
    """All secrets of a local cloud, for all threads of one process.

    Args:
        path: The SQLite file.
        now_ns: The time, in nanoseconds since 1970.
    """

    def __init__(self, path: Path, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._lock = threading.Lock()
        self._now_ns = now_ns
        path.touch(mode=_OWNER_ONLY)
        self._connection = sqlite3.connect(path, check_same_thread=False)
        self._connection.execute("PRAGMA secure_delete = ON")
        self._connection.executescript(_SCHEMA)

    def create(self, project: str, secret_id: str, body: bytes) -> Secret | None:
        """Make a secret without versions; None where there is one of its id."""
        row = (project, secret_id, self._now_ns(), _new_etag(), body)
        with self._lock, self._connection as connection:
            done = connection.execute("INSERT OR IGNORE INTO secrets VALUES (?, ?, ?, ?, ?, 0)", row).rowcount
        return self.find(project, secret_id) if done else None

    def find(self, project: str, secret_id: str) -> Secret | None:
        """Return a secret; None for none."""
        with self._lock:
            row = self._connection.execute(f"{_OF_PROJECT} AND id = ?", (project, secret_id)).fetchone()
        return None if row is None else _secret(row)

    def list_all(self, project: str) -> list[Secret]:
        """Return a project's secrets, the newest first."""
        with self._lock:
            rows = self._connection.execute(f"{_OF_PROJECT} ORDER BY created_ns DESC, id", (project,)).fetchall()
        return [_secret(row) for row in rows]

    def delete(self, project: str, secret_id: str) -> None:
        """Remove a secret with all its versions."""
        with self._lock, self._connection as connection:
            for table in ("versions", "secrets"):
                connection.execute(f"DELETE FROM {table} WHERE project = ? AND id = ?", (project, secret_id))  # noqa: S608 - of these two

    def add_version(self, project: str, secret_id: str, data: bytes, *, checked: bool) -> Version | None:
        """Add an enabled version; None where there is no such secret. A number is never given twice."""
        with self._lock, self._connection as connection:
            found = connection.execute(
                "UPDATE secrets SET versions = versions + 1 WHERE project = ? AND id = ? RETURNING versions",
                (project, secret_id),
            ).fetchone()
            if found is None:
                return None
            row = (project, secret_id, found[0], self._now_ns(), 0, "ENABLED", _new_etag(), checked, data)
            connection.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        return self.find_version(project, secret_id, found[0])

    def find_version(self, project: str, secret_id: str, number: int | None) -> Version | None:
        """Return a version, the last one for None; None where there is none."""
        last, values = "ORDER BY number DESC LIMIT 1", (project, secret_id)
        with self._lock:
            if number is None:
                row = self._connection.execute(f"{_VERSION} {last}", values).fetchone()
            else:
                row = self._connection.execute(f"{_VERSION} AND number = ?", (*values, number)).fetchone()
        return None if row is None else _version(row)

    def list_versions(self, project: str, secret_id: str) -> list[Version]:
        """Return a secret's versions, the newest first."""
        with self._lock:
            rows = self._connection.execute(f"{_VERSION} ORDER BY number DESC", (project, secret_id)).fetchall()
        return [_version(row) for row in rows]

    def set_state(self, project: str, secret_id: str, number: int, state: VersionState) -> Version | None:
        """Change a version's state, and its etag even where it was in that state; None where it is gone by now."""
        place = (project, secret_id, number)
        with self._lock, self._connection as connection:
            connection.execute(
                "UPDATE versions SET state = ?, etag = ? WHERE project = ? AND id = ? AND number = ?",
                (state, _new_etag(), *place),
            )
            if state == "DESTROYED":
                connection.execute(
                    "UPDATE versions SET data = NULL, destroyed_ns = ? WHERE project = ? AND id = ? AND number = ?",
                    (self._now_ns(), *place),
                )
        return self.find_version(*place)


def _new_etag() -> str:
    return f'"{secrets.token_hex(7)}"'


def _secret(row: tuple[str, int, str, bytes]) -> Secret:
    return Secret(id=row[0], created_ns=row[1], etag=row[2], body=row[3])


def _version(row: tuple[int, int, int, VersionState, str, int, bytes | None]) -> Version:
    number, created_ns, destroyed_ns, state, etag, checked, data = row
    return Version(
        number=number,
        created_ns=created_ns,
        destroyed_ns=destroyed_ns,
        state=state,
        etag=etag,
        checked=bool(checked),
        data=data,
    )
