"""Answers calls of Cloud Storage: one method for each of its own.

In: a `Call`. Out: the answer. What concerns all calls (who may, what goes wrong on purpose) comes before, in `front`.
"""

from __future__ import annotations

import asyncio
import re
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from email.utils import formatdate
from pathlib import Path
from typing import BinaryIO

from localcloud.http.http1 import CHUNK_BYTES, Response
from localcloud.projects import Projects
from localcloud.storage.attributes import (
    DEFAULT_TYPE,
    check_address,
    check_custom_time,
    merge,
    merge_bucket,
    read_attributes,
    read_bucket,
)
from localcloud.storage.buckets import Buckets
from localcloud.storage.calls import Call, Document
from localcloud.storage.hashes import check_hashes
from localcloud.storage.listing import take_names, take_page
from localcloud.storage.objects import Incoming, Objects, StoredObject
from localcloud.storage.part_uploads import PartUploads
from localcloud.storage.refusals import RefusedError, no_such_bucket
from localcloud.storage.uploads import Uploads, object_attributes

_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_GZIP_WINDOW = 31  # zlib's way to say: with gzip's head
_FIELDS = {  # of an answer with content, by attribute
    "cacheControl": "Cache-Control",
    "contentDisposition": "Content-Disposition",
    "contentEncoding": "Content-Encoding",
    "contentLanguage": "Content-Language",
}
_Answer = Callable[[Call], Response | Awaitable[Response]]


class StorageService:
    """Cloud Storage on files.

    Args:
        incoming: Where content lies on its way; what a killed process left there goes.
    """

    def __init__(self, objects: Objects, projects: Projects, incoming: Path, *, location: str) -> None:
        self._objects = objects
        self._projects = projects
        self._buckets = Buckets(objects, projects, location)
        self._incoming = incoming
        self.uploads = Uploads(objects, incoming, _describe)
        self._part_uploads = PartUploads(objects, incoming)
        for left_over in incoming.iterdir():
            left_over.unlink()
        self._methods: Mapping[str, _Answer] = {
            "storage.buckets.list": self._list_buckets,
            "storage.buckets.insert": self._insert_bucket,
            "storage.buckets.get": self._get_bucket,
            "storage.buckets.patch": self._change_bucket,
            "storage.buckets.update": self._change_bucket,
            "storage.buckets.delete": self._delete_bucket,
            "storage.buckets.getStorageLayout": self._get_layout,
            "storage.projects.serviceAccount.get": self._get_account,
            "storage.objects.list": self._list,
            "storage.objects.get": self._get,
            "storage.objects.insert": self._insert,
            "storage.objects.patch": self._change,
            "storage.objects.update": self._change,
            "storage.objects.delete": self._delete,
            "storage.objects.rewrite": self._copy,
            "storage.objects.copy": self._copy,
            "storage.objects.move": self._move,
            "storage.objects.compose": self._compose,
        }

    @property
    def methods(self) -> list[str]:
        """What is answered, as the JSON API names it."""
        return list(self._methods)

    async def answer(self, call: Call) -> Response:
        """Answer a call.

        Raises:
            RefusedError: It cannot be answered as it was meant.
        """
        if call.name:
            check_address(call.resource, bucket=call.bucket, name=call.name)
        answer = self._methods[call.method](call)
        return answer if isinstance(answer, Response) else await answer

    def require_bucket(self, bucket: str) -> None:
        """Refuse a call to a bucket that is not there.

        Raises:
            RefusedError: It is not.
        """
        self._buckets.require(bucket)

    def _list_buckets(self, call: Call) -> Response:
        buckets = {bucket.name: bucket for bucket in self._buckets.list_all(call.project, call.listing.prefix)}
        page, token = take_names(buckets, call.listing)
        document: Document = {"kind": "storage#buckets", "items": [buckets[name].resource() for name in page]}
        return Response.of_json({**document, "nextPageToken": token} if token else document)

    def _insert_bucket(self, call: Call) -> Response:
        return Response.of_json(self._buckets.create(call.bucket, call.project, read_bucket(call.resource)).resource())

    def _get_bucket(self, call: Call) -> Response:
        bucket = self._buckets.require(call.bucket)
        if call.generation not in (None, bucket.generation):
            raise no_such_bucket()
        call.conditions.check(bucket, reading=True)
        return Response.of_json(bucket.resource())

    def _change_bucket(self, call: Call) -> Response:
        bucket = self._buckets.require(call.bucket)
        call.conditions.check(bucket)
        old = bucket.document["attributes"]
        if call.method.endswith(".update"):
            old = {"location": old["location"]}
        check_address(call.resource, name=call.bucket)
        new = read_bucket(call.resource)
        if str(new.get("location") or old["location"]).upper() != old["location"]:
            raise RefusedError(400, f"The location of a bucket cannot be changed: it is {old['location']}.")
        changed = merge_bucket(old, {**new, "location": old["location"]})
        return Response.of_json(self._buckets.change(bucket, changed).resource())

    def _delete_bucket(self, call: Call) -> Response:
        bucket = self._buckets.require(call.bucket)
        call.conditions.check(bucket)
        self._buckets.delete(bucket)
        return Response(status=204)

    def _get_layout(self, call: Call) -> Response:
        resource = self._buckets.require(call.bucket).resource()
        kept = {key: resource[key] for key in ("projectNumber", "location", "locationType")}
        flat = {"hierarchicalNamespace": {"enabled": False}, "customPlacementConfig": {}}
        return Response.of_json({"kind": "storage#storageLayout", "bucket": call.bucket, **kept, **flat})

    def _get_account(self, call: Call) -> Response:
        number = self._projects.number(call.project)
        email = f"service-{number}@gs-project-accounts.iam.gserviceaccount.com"
        return Response.of_json({"kind": "storage#serviceAccount", "email_address": email})

    def _list(self, call: Call) -> Response:
        bucket, prefix = call.bucket, call.listing.prefix
        page = take_page(
            self._objects.walk_generations(bucket, prefix)
            if call.listing.versions
            else [(name, path, 0) for name, path in self._objects.walk(bucket, prefix)],
            call.listing,
        )
        document: Document = {"kind": "storage#objects"}
        found = (self._objects.read(bucket, name, path, generation) for name, path, generation in page.items)
        if items := [stored.resource() for stored in found if stored is not None]:
            document["items"] = items
        if page.prefixes:
            document["prefixes"] = page.prefixes
        if page.token:
            document["nextPageToken"] = page.token
        return Response.of_json(document)

    def _get(self, call: Call) -> Response:
        stored = self._objects.require(call.bucket, call.name, call.generation)
        call.conditions.check(stored, reading=True)
        return _content(call, stored) if call.media else _describe(stored)

    async def _insert(self, call: Call) -> Response:
        if call.parts:
            return await self._part_uploads.answer(call)
        if call.upload == "start":
            return self.uploads.start(call)
        if call.upload:
            return await self.uploads.resume(call)
        attributes = object_attributes(call)
        call.conditions.check(self._objects.find(call.bucket, call.name))  # before all of it came, and again after
        incoming = Incoming(self._incoming)
        try:
            if call.content is not None:
                async for piece in call.content:
                    incoming.write(piece)
            check_hashes(call.hashes, incoming.hashes())
            stored = self._objects.put(call.bucket, call.name, incoming, attributes, call.conditions)
        finally:
            incoming.discard()
        if call.xml:
            return Response(content_type="text/html; charset=UTF-8", fields=_fields_of(stored, xml=call.xml))
        return _describe(stored)

    def _change(self, call: Call) -> Response:
        stored = self._objects.find(call.bucket, call.name, call.generation)
        call.conditions.check(stored)
        stored = stored or self._objects.require(call.bucket, call.name, call.generation)
        is_patch = call.method.endswith(".patch")
        changes = read_attributes(call.resource, with_nulls=is_patch)
        attributes = merge(stored.attributes, changes) if is_patch else changes
        check_custom_time(stored.attributes, attributes)
        return _describe(self._objects.change(stored, attributes))

    def _delete(self, call: Call) -> Response:
        stored = self._objects.find(call.bucket, call.name, call.generation)
        call.conditions.check(stored)
        stored = stored or self._objects.require(call.bucket, call.name, call.generation)
        self._objects.delete(stored, for_good=call.generation is not None)
        return Response(status=204)

    async def _copy(self, call: Call) -> Response:
        """Copy content; attributes too, but for the class, unless others come with the call."""
        given = read_attributes(call.resource)
        (source,) = self._read_sources(call)
        own = {name: value for name, value in source.attributes.items() if name != "storageClass"}
        attributes = {"contentType": own.get("contentType"), **given} if given else own
        stored = await self._write_copy(call, [source], {key: value for key, value in attributes.items() if value})
        if call.method == "storage.objects.copy":
            return _describe(stored)
        size = str(stored.size)
        document = {"kind": "storage#rewriteResponse", "done": True, "resource": stored.resource()}
        return Response.of_json({**document, "totalBytesRewritten": size, "objectSize": size})

    async def _move(self, call: Call) -> Response:
        (source,) = self._read_sources(call)
        stored = await self._write_copy(call, [source], source.attributes)
        current = self._objects.find(source.bucket, source.name, source.generation)
        if current is not None and call.objects[0] != call.objects[1]:
            self._objects.delete(current, for_good=False)
        return _describe(stored)

    async def _compose(self, call: Call) -> Response:
        attributes = read_attributes(call.resource)
        return _describe(await self._write_copy(call, self._read_sources(call), attributes, composed=True))

    def _read_sources(self, call: Call) -> list[StoredObject]:
        found = []
        for source in call.sources:
            stored = self._objects.require(source.bucket, source.name, source.generation)
            source.conditions.check(stored)
            found.append(stored)
        return found

    async def _write_copy(
        self, call: Call, sources: list[StoredObject], attributes: Document, *, composed: bool = False
    ) -> StoredObject:
        call.conditions.check(self._objects.find(call.bucket, call.name))
        incoming = Incoming(self._incoming)
        opened = [each.path.open("rb") for each in sources]  # these generations, whatever happens meanwhile
        try:
            for file in opened:
                await asyncio.to_thread(incoming.append, file)
            if composed:
                incoming.components = sum(int(each.document.get("components", 1)) for each in sources)
            return self._objects.put(call.bucket, call.name, incoming, attributes, call.conditions)
        finally:
            for file in opened:
                file.close()
            incoming.discard()


def _describe(stored: StoredObject) -> Response:
    return Response.of_json(stored.resource())


def _content(call: Call, stored: StoredObject) -> Response:
    """Return an object's content, or the range of it that is asked for; unpacked for who takes no gzip."""
    kind = call.answered.get("contentType") or stored.attributes.get("contentType", DEFAULT_TYPE)
    fields = _fields_of(stored, xml=call.xml) | {
        _FIELDS[name]: call.answered[name] for name in _FIELDS if name in call.answered
    }
    is_packed = stored.attributes.get("contentEncoding") == "gzip"
    if is_packed and "gzip" not in call.fields.get("accept-encoding", ""):
        del fields["Content-Encoding"]
        return Response(content_type=kind, fields=fields, stream=_unpacked(stored.path.open("rb")))
    first, end = _read_range(call.fields.get("range", ""), stored.size)
    status = 200 if end is None else 206
    end = stored.size if end is None else end
    if status == 206:
        fields["Content-Range"] = f"bytes {first}-{end - 1}/{stored.size}"
    fields["Accept-Ranges"] = "bytes"
    stream = None if call.verb == "HEAD" else _pieces(stored.path.open("rb"), first, end)
    return Response(status=status, content_type=kind, fields=fields, stream=stream, length=end - first)


def _read_range(text: str, size: int) -> tuple[int, int | None]:
    """Return where a range begins and what comes after it; the whole has no end.

    Raises:
        RefusedError: It begins behind the content.
    """
    match = _RANGE.fullmatch(text.strip())
    if match is None or match[1] == match[2] == "":
        return 0, None
    first = int(match[1]) if match[1] else max(0, size - int(match[2]))
    end = min(size, int(match[2]) + 1) if match[1] and match[2] else size
    if match[1] and match[2] and int(match[2]) < first:
        return 0, None
    if first >= size:
        raise RefusedError(416, "The requested range cannot be satisfied.", fields={"Content-Range": f"bytes */{size}"})
    return first, end


async def _pieces(opened: BinaryIO, first: int, end: int) -> AsyncIterator[bytes]:
    with opened as file:
        file.seek(first)
        while first < end and (piece := file.read(min(CHUNK_BYTES, end - first))):
            first += len(piece)
            yield piece


async def _unpacked(opened: BinaryIO) -> AsyncIterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    with opened as file:
        while piece := file.read(CHUNK_BYTES):
            yield unpacker.decompress(piece)
    yield unpacker.flush()


def _fields_of(stored: StoredObject, *, xml: bool) -> dict[str, str]:
    """Return the header fields that say which object a content is."""
    sums = [
        f"{name}={stored.hashes[key]}"
        for name, key in (("crc32c", "crc32c"), ("md5", "md5Hash"))
        if key in stored.hashes
    ]
    own = {f"x-goog-meta-{name}": value for name, value in (stored.attributes.get("metadata") or {}).items()}
    said = {field: stored.attributes[name] for name, field in _FIELDS.items() if stored.attributes.get(name)}
    return {
        **{name: value for name, value in own.items() if _is_field(name, value)},
        **{name: value for name, value in said.items() if _is_field(name, value)},
        "ETag": f'"{stored.etag}"' if xml else stored.etag,  # the JSON API's is the resource's, as it stands there
        "Last-Modified": formatdate(stored.generation / 1_000_000, usegmt=True),
        "X-Goog-Generation": str(stored.generation),
        "X-Goog-Metageneration": str(stored.metageneration),
        "X-Goog-Hash": ",".join(sums),
        "X-Goog-Storage-Class": stored.attributes.get("storageClass", "STANDARD"),
        "X-Goog-Stored-Content-Encoding": stored.attributes.get("contentEncoding") or "identity",
        "X-Goog-Stored-Content-Length": str(stored.size),
    }


def _is_field(name: str, value: str) -> bool:
    """Whether these can stand in an answer's head."""
    return (
        re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) is not None
        and re.fullmatch(r"[\x20-\x7e]*", value) is not None
    )
