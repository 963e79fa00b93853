"""Objects as files, each with its attributes; what is read is always one whole generation.

A file's modification time is its object's generation, in microseconds, and `storage.sqlite` has the attributes of
each generation, written before the file takes its place: so one rename replaces content and attributes together,
wherever the process is killed. A file without a row (put there by hand, or by a local cloud of an earlier release,
which kept the attributes at the file) is given one when it is first looked at.

In: buckets, names, files of content. Out: `StoredObject`. All of it is done without a pause, so that of two writers
with the same precondition one wins.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from localcloud.storage import names
from localcloud.storage.attributes import DEFAULT_TYPE, object_address, time_text
from localcloud.storage.calls import Conditions, Document
from localcloud.storage.hashes import Sums
from localcloud.storage.noncurrent import Noncurrent
from localcloud.storage.refusals import no_such_bucket, no_such_object

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS objects (bucket TEXT, name TEXT, generation INTEGER, document TEXT NOT NULL,
    PRIMARY KEY (bucket, name, generation)) WITHOUT ROWID""",
    "CREATE TABLE IF NOT EXISTS buckets (name TEXT PRIMARY KEY, document TEXT NOT NULL) WITHOUT ROWID",
)
_CHUNK_BYTES = 1024 * 1024
_LEGACY = "user.metadata"  # where fake-gcs-server kept attributes
_LEGACY_FIELDS = {
    "ContentType": "contentType",
    "ContentEncoding": "contentEncoding",
    "ContentDisposition": "contentDisposition",
    "ContentLanguage": "contentLanguage",
    "CacheControl": "cacheControl",
    "StorageClass": "storageClass",
    "Metadata": "metadata",
}


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """One generation of an object; `document` has what is kept beside it.

    Attributes:
        noncurrent_since: When it was replaced or deleted, in microseconds since 1970; None for the live one.
    """

    bucket: str
    name: str
    path: Path
    size: int
    generation: int
    document: Document
    noncurrent_since: int | None = None

    @property
    def metageneration(self) -> int:
        """How often its attributes were changed, from 1."""
        return int(self.document["metageneration"])

    @property
    def etag(self) -> str:
        """Its entity tag: of content and attributes."""
        return f"{self.generation:x}-{self.metageneration:x}"

    @property
    def attributes(self) -> Document:
        """What a caller may set: content type, metadata and so on."""
        kept: Document = self.document["attributes"]
        return kept

    @property
    def hashes(self) -> dict[str, str]:
        """Its checksums; one that was composed has no `md5Hash`."""
        return {name: self.document[name] for name in ("md5Hash", "crc32c") if name in self.document}

    def resource(self) -> Document:
        """Return the resource of the JSON API."""
        address = object_address(self.bucket, self.name)
        created, updated = time_text(self.generation), time_text(self.document["updated"])
        deleted = {} if self.noncurrent_since is None else {"timeDeleted": time_text(self.noncurrent_since)}
        return {
            "kind": "storage#object",
            "id": f"{self.bucket}/{self.name}/{self.generation}",
            "selfLink": address,
            "mediaLink": address.replace("/storage/v1/", "/download/storage/v1/", 1) + "?alt=media",
            "name": self.name,
            "bucket": self.bucket,
            "generation": str(self.generation),
            "metageneration": str(self.metageneration),
            "storageClass": "STANDARD",
            "size": str(self.size),
            **self.hashes,
            "etag": self.etag,
            "timeCreated": created,
            "updated": updated,
            "timeStorageClassUpdated": created,
            "timeFinalized": created,
            **deleted,
            **({"componentCount": self.document["components"]} if "components" in self.document else {}),
            **self.attributes,
        }


class Incoming:
    """Content on its way: a file that is no object yet, with its checksums."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / f"incoming-{uuid.uuid4().hex}"
        self._file: BinaryIO | None = None
        self._sums = Sums()
        self.size = 0
        self.components: int | None = None
        self.has_md5 = True

    def write(self, piece: bytes) -> None:
        """Take the next piece."""
        if self._file is None:
            self._file = self.path.open("ab")
        self._file.write(piece)
        self._sums.update(piece)
        self.size += len(piece)

    def append(self, source: BinaryIO) -> None:
        """Take a whole file."""
        while piece := source.read(_CHUNK_BYTES):
            self.write(piece)

    def close(self) -> None:
        """Write what is still in memory; another piece opens the file again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def hashes(self) -> dict[str, str]:
        """Return the checksums of what came."""
        return self._sums.values()

    def discard(self) -> None:
        """Forget it, unless it has become an object."""
        self.close()
        self.path.unlink(missing_ok=True)


class Objects:
    """The objects of all buckets.

    Args:
        root: A directory for each bucket.
        database: The SQLite file of attributes.
        now: Seconds since 1970.
    """

    def __init__(self, root: Path, database: Path, now: Callable[[], float] = time.time) -> None:
        self.root = root
        self._now = now
        self.connection = sqlite3.connect(database, isolation_level=None, check_same_thread=False)
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = OFF")
        for statement in _SCHEMA:
            self.connection.execute(statement)
        self.noncurrent = Noncurrent(root.with_name(f"{root.name}-noncurrent"), self.connection)
        (last,) = self.connection.execute("SELECT MAX(generation) FROM objects").fetchone()
        self._last_generation = int(last or 0)

    def require_bucket(self, bucket: str) -> Path:
        """Return a bucket's directory.

        Raises:
            RefusedError: There is no such bucket.
        """
        path = self.root / bucket
        if not path.is_dir():
            raise no_such_bucket()
        return path

    def find(self, bucket: str, name: str, generation: int | None = None) -> StoredObject | None:
        """Return an object, None where there is none; a generation that is named may be a noncurrent one.

        Raises:
            RefusedError: There is no such bucket.
        """
        folder = self.require_bucket(bucket)
        for path in _places(folder, name):
            if path.is_file():
                stored = self._read(bucket, name, path)
                if generation in (None, stored.generation):
                    return stored
        kept = None if generation is None else self.noncurrent.find(bucket, name, generation)
        return self._read(bucket, name, kept.path, kept.since) if kept else None

    def require(self, bucket: str, name: str, generation: int | None = None) -> StoredObject:
        """Return an object.

        Raises:
            RefusedError: There is none, or no such bucket.
        """
        stored = self.find(bucket, name, generation)
        if stored is None:
            raise no_such_object(bucket, name)
        return stored

    def put(
        self, bucket: str, name: str, incoming: Incoming, attributes: Document, conditions: Conditions
    ) -> StoredObject:
        """Make content that has come an object, in the place of any other.

        Raises:
            RefusedError: A condition does not hold, or there is no such bucket.
        """
        folder = self.require_bucket(bucket)
        current = self.find(bucket, name)
        conditions.check(current)
        generation = max(
            int(self._now() * 1_000_000), self._last_generation + 1, current.generation + 1 if current else 0
        )
        self._last_generation = generation
        hashes = incoming.hashes()
        kept = {"storageClass": self._default_class(bucket), **attributes}
        document: Document = {"metageneration": 1, "updated": generation, "attributes": kept, **hashes}
        if incoming.components is not None:
            document["components"] = incoming.components
        if incoming.components is not None or not incoming.has_md5:
            del document["md5Hash"]
        incoming.close()
        incoming.path.touch()  # of nothing
        self._write(bucket, name, generation, document)
        os.utime(incoming.path, ns=(generation * 1000, generation * 1000))
        path = current.path if current else _free_place(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if current and self._keeps_generations(bucket):
            self.noncurrent.keep(bucket, name, current.generation, current.path, generation)
        incoming.path.replace(path)
        self._forget(bucket, name, but=generation)
        return self._read(bucket, name, path)

    def change(self, stored: StoredObject, attributes: Document) -> StoredObject:
        """Return an object other attributes."""
        updated = max(int(self._now() * 1_000_000), stored.document["updated"])
        changes = {"metageneration": stored.metageneration + 1, "updated": updated, "attributes": attributes}
        self._write(stored.bucket, stored.name, stored.generation, {**stored.document, **changes})
        return self._read(stored.bucket, stored.name, stored.path, stored.noncurrent_since)

    def delete(self, stored: StoredObject, *, for_good: bool = True) -> None:
        """Take an object away, and the folders that nothing else is in.

        A file of its name in its other place, which somebody put beside it by hand, goes too: it would be the object.

        Args:
            for_good: Also where the bucket has object versioning; else the generation becomes noncurrent there.
        """
        if stored.noncurrent_since is not None:
            self.noncurrent.remove(stored.bucket, stored.name, stored.generation)
            live = self.find(stored.bucket, stored.name)
            self._forget(stored.bucket, stored.name, but=live.generation if live else None)
            return
        if not for_good and self._keeps_generations(stored.bucket):
            since = max(int(self._now() * 1_000_000), stored.generation)
            self.noncurrent.keep(stored.bucket, stored.name, stored.generation, stored.path, since)
        else:  # also what a process that was killed had kept of it, before another took its place
            self.noncurrent.remove(stored.bucket, stored.name, stored.generation)
        root = self.root / stored.bucket
        found = [path for path in _places(root, stored.name) if path.is_file()]
        for path in found:
            path.unlink()
        self._forget(stored.bucket, stored.name, but=None)
        for path in found:
            folder = path.parent
            with contextlib.suppress(OSError):  # the first one that something is in
                while folder != root:
                    folder.rmdir()
                    folder = folder.parent

    def walk(self, bucket: str, prefix: str = "") -> list[tuple[str, Path]]:
        """Return names and files of a bucket's objects that begin with a prefix, in the order of the names' bytes.

        Raises:
            RefusedError: There is no such bucket.
        """
        folder = self.require_bucket(bucket)
        begin = prefix.rpartition("/")[0]
        found = dict(_files(folder, begin)) if not begin or names.is_safe(begin) else {}
        found |= {path: file for path, file in _files(folder, names.ENCODED) if path not in found}
        listed: dict[str, Path] = {}
        for path, file in found.items():
            name = names.decode(path)
            if name is not None and name.startswith(prefix):
                listed.setdefault(name, file)  # of two places the one that is read
        return sorted(listed.items(), key=lambda pair: pair[0].encode())

    def walk_generations(self, bucket: str, prefix: str = "") -> list[tuple[str, Path, int]]:
        """Return names, files and generations of all that begin with a prefix, noncurrent ones too, in order."""
        found = {
            (name, stored.generation): path
            for name, path in self.walk(bucket, prefix)
            if (stored := self.read(bucket, name, path)) is not None
        }
        kept = {(each.name, each.generation): each.path for each in self.noncurrent.walk(bucket, prefix)}
        listed = [(name, path, generation) for (name, generation), path in {**kept, **found}.items()]
        return sorted(listed, key=lambda each: (each[0].encode(), each[2]))

    def read(self, bucket: str, name: str, path: Path, generation: int | None = None) -> StoredObject | None:
        """Return what `walk` or, with its generation, `walk_generations` found; None where it is gone by now."""
        kept = None if generation is None else self.noncurrent.find(bucket, name, generation)
        try:
            return self._read(bucket, name, path, kept.since if kept and kept.path == path else None)
        except FileNotFoundError:
            return None

    def _read(self, bucket: str, name: str, path: Path, noncurrent_since: int | None = None) -> StoredObject:
        status = path.stat()
        generation = status.st_mtime_ns // 1000
        query = "SELECT document FROM objects WHERE bucket = ? AND name = ? AND generation = ?"
        row = self.connection.execute(query, (bucket, name, generation)).fetchone()
        if row is None:
            generation, document = _adopt(path, generation)
            self._write(bucket, name, generation, document)
        else:
            document = json.loads(row[0])
        return StoredObject(
            bucket=bucket,
            name=name,
            path=path,
            size=status.st_size,
            generation=generation,
            document=document,
            noncurrent_since=noncurrent_since,
        )

    def _write(self, bucket: str, name: str, generation: int, document: Document) -> None:
        statement = "INSERT OR REPLACE INTO objects VALUES (?, ?, ?, ?)"
        self.connection.execute(statement, (bucket, name, generation, json.dumps(document)))

    def _forget(self, bucket: str, name: str, *, but: int | None) -> None:
        statement = """DELETE FROM objects WHERE bucket = ? AND name = ? AND generation IS NOT ? AND generation NOT IN
        (SELECT generation FROM noncurrent WHERE bucket = ? AND name = ?)"""
        self.connection.execute(statement, (bucket, name, but, bucket, name))

    def _default_class(self, bucket: str) -> str:
        """Return the class of objects that are written without one."""
        return str(self._bucket_attributes(bucket).get("storageClass") or "STANDARD")

    def _keeps_generations(self, bucket: str) -> bool:
        """Whether a bucket has object versioning."""
        return bool((self._bucket_attributes(bucket).get("versioning") or {}).get("enabled"))

    def _bucket_attributes(self, bucket: str) -> Document:
        row = self.connection.execute("SELECT document FROM buckets WHERE name = ?", (bucket,)).fetchone()
        attributes: Document = json.loads(row[0])["attributes"] if row else {}
        return attributes

    def forget_bucket(self, bucket: str) -> None:
        """Take an empty bucket's directory away, and what is known of it."""
        shutil.rmtree(self.root / bucket)
        self.noncurrent.forget_bucket(bucket)
        self.connection.execute("DELETE FROM objects WHERE bucket = ?", (bucket,))
        self.connection.execute("DELETE FROM buckets WHERE name = ?", (bucket,))


def _places(folder: Path, name: str) -> list[Path]:
    plain = [folder / name] if names.is_safe(name) else []
    return [*plain, folder / names.encode(name)]


def _free_place(folder: Path, name: str) -> Path:
    """Return where a new object goes: the file of its name, unless that is a folder, or lies below another object."""
    plain, *rest = _places(folder, name)
    if not rest:
        return plain
    above = plain.parent
    while above != folder:
        if above.is_file():
            return rest[0]
        above = above.parent
    return rest[0] if plain.is_dir() else plain


def _files(folder: Path, below: str) -> Iterator[tuple[str, Path]]:
    """Yield the files below a folder with their paths; encoded ones only where they are asked for."""
    begin = folder / below if below else folder
    for parent, folders, files in os.walk(begin):
        if parent == str(folder) and names.ENCODED in folders:
            folders.remove(names.ENCODED)
        for file in files:
            path = Path(parent, file)
            relative = str(path.relative_to(folder))
            with contextlib.suppress(UnicodeEncodeError):  # a name that is no UTF-8 was put there by hand
                relative.encode()
                yield relative, path


def _adopt(path: Path, generation: int) -> tuple[int, Document]:
    """Return generation and attributes of a file that was put there by others."""
    legacy = _read_legacy(path)
    if legacy.get("Generation"):
        generation = int(legacy["Generation"])
        os.utime(path, ns=(generation * 1000, generation * 1000))
    sums = Sums()
    with path.open("rb") as file:
        while piece := file.read(_CHUNK_BYTES):
            sums.update(piece)
    attributes = {"contentType": DEFAULT_TYPE}
    attributes |= {new: legacy[old] for old, new in _LEGACY_FIELDS.items() if legacy.get(old)}
    return generation, {"metageneration": 1, "updated": generation, "attributes": attributes, **sums.values()}


def _read_legacy(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(os.getxattr(path, _LEGACY))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}
