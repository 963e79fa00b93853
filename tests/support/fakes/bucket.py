"""A bucket in memory with generations and times, as documents and as objects; each change can be made the last one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime

from retraining.core.data.span_store import StoredObject
from retraining.hooks.objects import Deleted
from tests.support.fakes.cloud import FakeArtifacts


class Killed(BaseException):
    """The process is gone."""


def nothing(number: int, done: bool) -> None:
    """What happens around a change, where nothing does."""


@dataclasses.dataclass
class FakeBucket(FakeArtifacts):
    """Cloud Storage.

    Attributes:
        now: Time of what is written.
        changes: How many writes and deletions there were.
        around: Called before and after each change with its number and whether it is done; may raise `Killed`.
    """

    objects: dict[str, bytes] = dataclasses.field(default_factory=dict)
    found: dict[str, StoredObject] = dataclasses.field(default_factory=dict)
    now: datetime = datetime(2013, 12, 24, 13, tzinfo=UTC)
    generation: int = 1000
    changes: int = 0
    around: Callable[[int, bool], None] = nothing

    def put(self, uri: str, data: bytes) -> None:
        """Write as somebody else would: this counts as no change of ours."""
        self.generation += 1
        self.objects[uri] = data
        self.found[uri] = StoredObject(uri=uri, bytes=len(data), generation=self.generation, created=self.now)

    def take(self, uri: str) -> None:
        """Delete as somebody else would."""
        self.objects.pop(uri, None)
        self.found.pop(uri, None)

    def exists(self, uri: str) -> bool:
        """As the hook."""
        return uri in self.objects

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
        stored = self.found.get(uri)
        return (self.objects[uri], stored.generation) if stored else (b"", 0)

    def write_if(self, uri: str, data: bytes, generation: int) -> int | None:
        """As the hook: compare and set."""
        if self.read_generation(uri)[1] != generation:
            return None
        self._change(lambda: self.put(uri, data))
        return self.found[uri].generation

    def walk(self, folder_uri: str) -> Iterator[StoredObject]:
        """As the hook."""
        for uri in sorted(self.found):
            if uri.startswith(folder_uri + "/") and uri in self.found:
                yield self.found[uri]

    def directly_in(self, folder_uri: str) -> list[StoredObject]:
        """As the hook."""
        return [item for item in self.walk(folder_uri) if item.folder_uri == folder_uri]

    def find(self, uri: str) -> StoredObject | None:
        """As the hook."""
        return self.found.get(uri)

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
