"""A call of Cloud Storage, read once: who looks at it later (faults, the IAM table, the service) looks at this value.

In: what `requests` read. Out: method, bucket, object, conditions, metadata, content. Nobody reads the request again.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from localcloud.storage.refusals import RefusedError

Document = dict[str, Any]
_NOT_MET = "At least one of the pre-conditions you specified did not hold."


class Versioned(Protocol):
    """What conditions are held against: a bucket or an object."""

    @property
    def generation(self) -> int:
        """Which content it has."""

    @property
    def metageneration(self) -> int:
        """Which attributes it has."""

    @property
    def etag(self) -> str:
        """Its entity tag."""


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Preconditions of a call; None where it has none."""

    generation: int | None = None
    not_generation: int | None = None
    metageneration: int | None = None
    not_metageneration: int | None = None
    etag: str | None = None
    not_etag: str | None = None

    def check(self, stored: Versioned | None, *, reading: bool = False) -> None:
        """Let a call pass whose conditions hold; what does not exist has generation 0.

        Raises:
            RefusedError: 412, or 304 to a reader that has the same already.
        """
        generation = stored.generation if stored else 0
        metageneration = stored.metageneration if stored else 0
        etag = stored.etag if stored else ""
        for wanted, found in ((self.generation, generation), (self.metageneration, metageneration)):
            if wanted is not None and wanted != found:
                raise RefusedError(412, _NOT_MET)
        if self.etag not in (None, "*", etag) or (self.etag == "*" and stored is None):
            raise RefusedError(412, _NOT_MET)
        same = self.not_generation == generation or self.not_metageneration == metageneration
        if same or (self.not_etag is not None and self.not_etag in ("*", etag) and stored is not None):
            raise RefusedError(304 if reading else 412, _NOT_MET)


@dataclass(frozen=True, kw_only=True)
class Source:
    """An object that a call reads to write another one."""

    bucket: str
    name: str
    generation: int | None = None
    conditions: Conditions = field(default_factory=Conditions)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """What a list of objects asks for."""

    prefix: str = ""
    delimiter: str = ""
    start: str = ""
    end: str = ""
    glob: str | None = None
    keeps_placeholders: bool = False
    versions: bool = False
    most: int = 1000
    token: str = ""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call.

    Attributes:
        method: Its id in the JSON API (`storage.objects.insert`), whichever address it came by.
        bucket: Whose call it is; "" for lists of buckets.
        name: The object that is read or written; "" for calls of buckets and lists.
        sources: The objects that are read to write it.
        resource: The JSON that came, as it came.
        hashes: Checksums of the content that the caller says (`md5Hash`, `crc32c`).
        upload: A resumable upload's start, or the id of the one that a piece belongs to.
        parts: Which step of an upload in parts it is: "start", "take", "finish", "end" or "list"; "": of none.
        part: Which part comes.
        media: Whether the content is asked for.
        fields: Header fields, their names in lower case.
        answered: Attributes that the answer is to have in place of the object's own (`contentType`).
        xml: Whether it came by the XML API.
        principal: Who asks which `permissions` it has, of a question about the IAM table.
    """

    method: str
    bucket: str = ""
    name: str = ""
    generation: int | None = None
    conditions: Conditions = field(default_factory=Conditions)
    sources: tuple[Source, ...] = ()
    project: str = ""
    resource: Document = field(default_factory=dict)
    content: AsyncIterator[bytes] | None = None
    content_type: str = ""
    hashes: Mapping[str, str] = field(default_factory=dict)
    upload: str | Literal["", "start"] = ""
    parts: str = ""
    part: int | None = None
    media: bool = False
    listing: Listing = field(default_factory=Listing)
    host: str = ""
    verb: str = "GET"
    fields: Mapping[str, str] = field(default_factory=dict)
    answered: Mapping[str, str] = field(default_factory=dict)
    xml: bool = False
    principal: str = ""
    permissions: tuple[str, ...] = ()

    @property
    def about(self) -> str:
        """What faults are aimed at: `gs://bucket/name`; of a piece of a resumable upload the bucket alone."""
        if not self.bucket:
            return ""
        if self.method.startswith("storage.buckets."):
            return f"gs://{self.bucket}"
        if self.method == "storage.objects.list":
            return f"gs://{self.bucket}/{self.listing.prefix}"
        return f"gs://{self.bucket}/{'' if self.upload not in ('', 'start') else self.name}"

    @property
    def objects(self) -> list[tuple[str, str]]:
        """Bucket and name of every object that the call is about, the one that is written first."""
        named = [(self.bucket, self.name)] if self.name else []
        return [*named, *((source.bucket, source.name) for source in self.sources)]
