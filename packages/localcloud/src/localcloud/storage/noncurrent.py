"""Noncurrent generations of objects, in buckets with object versioning.

https://cloud.google.com/storage/docs/object-versioning: what is replaced or deleted there stays, under its generation,
until that generation is deleted itself. Each is a file beside the buckets, a link to the one that was the object, so
that it is kept before another takes its place; `storage.sqlite` says since when it is noncurrent.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

SCHEMA = """CREATE TABLE IF NOT EXISTS noncurrent (bucket TEXT, name TEXT, generation INTEGER, since INTEGER NOT NULL,
PRIMARY KEY (bucket, name, generation)) WITHOUT ROWID"""


@dataclass(frozen=True, kw_only=True)
class Kept:
    """A noncurrent generation: its file, and since when it is noncurrent, in microseconds since 1970."""

    name: str
    generation: int
    path: Path
    since: int


class Noncurrent:
    """The noncurrent generations of all buckets.

    Args:
        directory: Where their files are.
        connection: The database of the objects' attributes.
    """

    def __init__(self, directory: Path, connection: sqlite3.Connection) -> None:
        self._directory = directory
        self._connection = connection
        connection.execute(SCHEMA)

    def keep(self, bucket: str, name: str, generation: int, path: Path, since: int) -> None:
        """Keep a generation that is about to be replaced or deleted."""
        place = self._place(bucket, name, generation)
        place.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):  # of a process that was killed here
            os.link(path, place)
        self._connection.execute(
            "INSERT OR REPLACE INTO noncurrent VALUES (?, ?, ?, ?)", (bucket, name, generation, since)
        )

    def find(self, bucket: str, name: str, generation: int) -> Kept | None:
        """Return a generation, None where it is not noncurrent."""
        query = "SELECT since FROM noncurrent WHERE bucket = ? AND name = ? AND generation = ?"
        row = self._connection.execute(query, (bucket, name, generation)).fetchone()
        return self._kept(bucket, name, generation, row[0]) if row else None

    def walk(self, bucket: str, prefix: str = "") -> list[Kept]:
        """Return a bucket's noncurrent generations of names with a prefix."""
        query = "SELECT name, generation, since FROM noncurrent WHERE bucket = ?"
        rows = self._connection.execute(query, (bucket,)).fetchall()
        return [self._kept(bucket, *row) for row in rows if row[0].startswith(prefix)]

    def remove(self, bucket: str, name: str, generation: int) -> None:
        """Take a generation away for good."""
        self._place(bucket, name, generation).unlink(missing_ok=True)
        statement = "DELETE FROM noncurrent WHERE bucket = ? AND name = ? AND generation = ?"
        self._connection.execute(statement, (bucket, name, generation))

    def forget_bucket(self, bucket: str) -> None:
        """Take a bucket's away, which has none."""
        shutil.rmtree(self._directory / bucket, ignore_errors=True)

    def _kept(self, bucket: str, name: str, generation: int, since: int) -> Kept:
        path = self._place(bucket, name, generation)
        return Kept(name=name, generation=generation, path=path, since=since)

    def _place(self, bucket: str, name: str, generation: int) -> Path:
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]  # a name may be longer than a file's
        return self._directory / bucket / f"{generation}-{digest}"
