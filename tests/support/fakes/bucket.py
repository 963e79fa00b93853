"""A bucket in memory with generations and times, as documents and as objects; each change can be made the last one."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from retraining.core.data.span_store import StoredObject
from retraining.hooks.artifacts import parquet_column_names
from retraining.hooks.objects import Deleted
from tests.support.fakes.settings import SETTINGS


class Killed(BaseException):
    """The process is gone."""


def nothing(number: int, done: bool) -> None:
    """What happens around a change, where nothing does."""


class Contents(UserDict[str, bytes]):
    """Bytes by address. What a test writes and deletes here, somebody else wrote and deleted."""

    def __init__(self, bucket: FakeBucket) -> None:
        self._bucket = bucket
        super().__init__()

    def __setitem__(self, uri: str, data: bytes) -> None:
        super().__setitem__(uri, data)
        self._bucket.note(uri, len(data))

    def __delitem__(self, uri: str) -> None:
        super().__delitem__(uri)
        self._bucket.found.pop(uri, None)


class FakeBucket:
    """Cloud Storage, as artifacts and as objects; it has every bucket.

    Attributes:
        objects: Bytes by address.
        found: What a listing has, by address.
        now: Time of what is written.
        locations: Of buckets, by name.
        changes: How many writes and deletions of ours there were.
        around: Called before and after each of them with its number and whether it is done; may raise `Killed`.
    """

    def __init__(self, now: datetime = datetime(2013, 11, 21, tzinfo=UTC)) -> None:
        self.found: dict[str, StoredObject] = {}
        self.objects = Contents(self)
        self.now = now
        self.changes = 0
        self.locations: dict[str, tuple[str, ...]] = {}
        self.around: Callable[[int, bool], None] = nothing
        self._generation = 1000

    def note(self, uri: str, size: int) -> None:
        """Give what is written a generation of its own."""
        self._generation += 1
        self.found[uri] = StoredObject(uri=uri, bytes=size, generation=self._generation, created=self.now)

    def put(self, uri: str, data: bytes) -> None:
        """Write as somebody else would."""
        self.objects[uri] = data

    def take(self, uri: str) -> None:
        """Delete as somebody else would."""
        self.objects.pop(uri, None)

    def bucket_locations(self, bucket: str) -> tuple[str, ...] | None:
        """As the hook."""
        return self.locations.get(bucket)

    def bucket_key(self, bucket: str) -> str | None:
        """As the hook."""
        return "" if bucket == SETTINGS.bucket else None

    def read_object(self, uri: str) -> bytes | None:
        """As the hook."""
        return self.objects.get(uri)

    def read_many(self, uris: list[str]) -> list[bytes]:
        """As the hook."""
        return list(self.read_some(uris).values())

    def read_some(self, uris: list[str]) -> dict[str, bytes]:
        """As the hook."""
        return {uri: self.objects[uri] for uri in uris if uri in self.objects}

    def read_ranges(self, ranges: Mapping[str, tuple[int, int]]) -> dict[str, bytes]:
        """As the hook."""
        return {uri: self.objects[uri][start:end] for uri, (start, end) in ranges.items() if uri in self.objects}

    def parquet_columns(self, sizes: Mapping[str, int]) -> dict[str, list[str] | None]:
        """As the hook."""
        return {uri: parquet_column_names(self.objects[uri]) for uri in sizes if uri in self.objects}

    def exists(self, uri: str) -> bool:
        """As the hook."""
        return uri in self.objects

    def existing(self, uris: list[str]) -> list[str]:
        """As the hook."""
        return [uri for uri in uris if uri in self.objects]

    def write_once(self, uri: str, data: bytes, content_type: str = "application/json") -> bytes:
        """As the hook."""
        del content_type
        if uri not in self.objects:
            self._change(lambda: self.put(uri, data))
        return self.objects[uri]

    def overwrite(self, uri: str, data: bytes, content_type: str) -> None:
        """As the hook."""
        del content_type
        self._change(lambda: self.put(uri, data))

    def read_generation(self, uri: str) -> tuple[bytes, int]:
        """As the hook."""
        return (self.objects[uri], self.found[uri].generation) if uri in self.objects else (b"", 0)

    def write_if(self, uri: str, data: bytes, generation: int, content_type: str = "application/json") -> int | None:
        """As the hook: compare and set."""
        del content_type
        stored, now = self.read_generation(uri)
        if now != generation:
            return now if now and stored == data else None
        self._change(lambda: self.put(uri, data))
        return self.found[uri].generation

    def list_uris(self, folder_uri: str, *, start: str = "", end: str = "", suffix: str = "") -> list[str]:
        """As the hook."""
        paths = sorted(uri[len(folder_uri) + 1 :] for uri in self.objects if uri.startswith(folder_uri + "/"))
        return [f"{folder_uri}/{p}" for p in paths if p >= start and (not end or p < end) and p.endswith(suffix)]

    def list_folders(self, folder_uri: str, *, end: str = "") -> list[str]:
        """As the hook."""
        inside = (uri[len(folder_uri) + 1 :] for uri in self.objects if uri.startswith(folder_uri + "/"))
        names = sorted({path.split("/")[0] for path in inside if "/" in path})
        return [f"{folder_uri}/{name}" for name in names if not end or name < end]

    def walk(self, folder_uri: str) -> Iterator[StoredObject]:
        """As the hook."""
        for uri in sorted(self.found):
            if uri.startswith(folder_uri + "/") and not uri.endswith("/") and uri in self.found:
                yield self.found[uri]

    def directly_in(self, folder_uri: str) -> list[StoredObject]:
        """As the hook."""
        return [item for item in self.walk(folder_uri) if item.folder_uri == folder_uri]

    def find_object(self, uri: str) -> StoredObject | None:
        """As the hook."""
        return self.found.get(uri)

    def match(self, uri: str) -> list[StoredObject]:
        """As the hook."""
        pattern = uri.replace("[", "[[]").replace("?", "[?]")
        return [self.found[name] for name in sorted(self.found) if fnmatchcase(name, pattern)]

    def delete(self, objects: Iterable[StoredObject]) -> Iterator[Deleted]:
        """As the hook, one after the other."""
        for item in objects:
            stored = self.found.get(item.uri)
            if stored is not None and stored.generation == item.generation:
                self._change(lambda uri=item.uri: self.take(uri))
            gone = item.uri not in self.found or self.found[item.uri].generation == item.generation
            yield Deleted(object=item, gone=gone)

    def _change(self, change: Callable[[], None]) -> None:
        self.changes += 1
        number = self.changes
        self.around(number, False)
        change()
        self.around(number, True)
