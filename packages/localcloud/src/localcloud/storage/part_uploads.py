"""Uploads of the XML API in parts: https://cloud.google.com/storage/docs/multipart-uploads.

In: a start, parts in any order and many at once, an end with their list. Out: one object of the parts that are listed.
A restart of the local cloud ends uploads under way: their ids are unknown then (404), and clients start anew.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import escape

from localcloud.http.http1 import Response
from localcloud.storage.calls import Call, Document
from localcloud.storage.hashes import check_hashes
from localcloud.storage.objects import Incoming, Objects, StoredObject
from localcloud.storage.refusals import RefusedError
from localcloud.storage.uploads import object_attributes

SMALLEST_BYTES = 5 * 1024 * 1024
"""Of each part but the last."""
MOST_PARTS = 10_000
_LIST_LIMIT = 4 * 1024 * 1024
_XMLNS = "http://s3.amazonaws.com/doc/2006-03-01/"
_LISTED = 1000
_Value = str | int | list[Mapping[str, "_Value"]]


@dataclass(kw_only=True)
class _Upload:
    """An upload under way: its object, and its parts by number."""

    bucket: str
    name: str
    attributes: Document
    parts: dict[int, Incoming] = field(default_factory=dict)

    def discard_parts(self) -> None:
        """Forget them."""
        for part in self.parts.values():
            part.discard()


class PartUploads:
    """All uploads in parts.

    Args:
        directory: Where parts lie until their object is whole.
    """

    def __init__(self, objects: Objects, directory: Path) -> None:
        self._objects = objects
        self._directory = directory
        self._uploads: dict[str, _Upload] = {}
        self._steps: Mapping[str, Callable[[Call], Awaitable[Response]]] = {
            "start": self._start,
            "take": self._take,
            "finish": self._finish,
            "end": self._end,
            "list": self._list,
        }

    async def answer(self, call: Call) -> Response:
        """Answer one step of an upload.

        Raises:
            RefusedError: There is no such upload or bucket, or what came is not what was promised.
        """
        return await self._steps[call.parts](call)

    async def _start(self, call: Call) -> Response:
        self._objects.require_bucket(call.bucket)
        upload_id = uuid.uuid4().hex
        self._uploads[upload_id] = _Upload(bucket=call.bucket, name=call.name, attributes=object_attributes(call))
        named: dict[str, _Value] = {"Bucket": call.bucket, "Key": call.name, "UploadId": upload_id}
        return _document("InitiateMultipartUploadResult", named)

    async def _take(self, call: Call) -> Response:
        upload = self._require(call)
        if call.part is None or not 1 <= call.part <= MOST_PARTS:
            raise RefusedError(400, f"Invalid argument. partNumber: expected 1 to {MOST_PARTS:,}.")
        with contextlib.ExitStack() as unfinished:
            incoming = Incoming(self._directory)
            unfinished.callback(incoming.discard)
            if call.content is not None:
                async for piece in call.content:
                    incoming.write(piece)
            incoming.write(b"")  # a part of nothing is a file, too
            check_hashes(call.hashes, incoming.hashes())
            self._require(call)  # it may have ended meanwhile
            unfinished.pop_all()
        incoming.close()
        if before := upload.parts.get(call.part):
            before.discard()
        upload.parts[call.part] = incoming
        hashes = incoming.hashes()
        sums = f"crc32c={hashes['crc32c']},md5={hashes['md5Hash']}"
        return Response(fields={"ETag": f'"{_etag(incoming)}"', "X-Goog-Hash": sums})

    async def _finish(self, call: Call) -> Response:
        upload = self._require(call)
        parts = _listed_parts(upload, await _read_list(call))
        whole = Incoming(self._directory)
        whole.has_md5 = False
        with contextlib.ExitStack() as unfinished:
            unfinished.callback(self._uploads.__setitem__, call.upload, self._uploads.pop(call.upload))
            unfinished.callback(whole.discard)
            for part in parts:  # which nobody changes meanwhile
                with part.path.open("rb") as file:
                    await asyncio.to_thread(whole.append, file)
            stored = self._objects.put(upload.bucket, upload.name, whole, upload.attributes, call.conditions)
            unfinished.pop_all()
        upload.discard_parts()
        return _document("CompleteMultipartUploadResult", _finished(stored))

    async def _end(self, call: Call) -> Response:
        self._require(call).discard_parts()
        del self._uploads[call.upload]
        return Response(status=204)

    async def _list(self, call: Call) -> Response:
        upload = self._require(call)
        parts: list[Mapping[str, _Value]] = [
            {"PartNumber": number, "ETag": f'"{_etag(part)}"', "Size": part.size}
            for number, part in sorted(upload.parts.items())
        ]
        if len(parts) > _LISTED:
            raise RefusedError(501, f"Lists of more than {_LISTED:,} parts are not offered.")
        named: dict[str, _Value] = {"Bucket": call.bucket, "Key": call.name, "UploadId": call.upload}
        return _document("ListPartsResult", {**named, "IsTruncated": "false", "Part": parts})

    def _require(self, call: Call) -> _Upload:
        upload = self._uploads.get(call.upload)
        if upload is None or (upload.bucket, upload.name) != (call.bucket, call.name):
            message = "The requested upload was not found. Start it again."
            raise RefusedError(404, message, xml_code="NoSuchUpload")
        return upload


async def _read_list(call: Call) -> list[tuple[int, str]]:
    """Read the list of parts, with their ETags, that ends an upload.

    Raises:
        RefusedError: It is none.
    """
    body = b""
    if call.content is not None:
        async for piece in call.content:
            body += piece
            if len(body) > _LIST_LIMIT:
                raise _malformed("it is longer than a list of parts can be")
    reader = _ListReader()
    try:
        reader.parser.Parse(body, True)
    except expat.ExpatError as error:
        raise _malformed(expat.ErrorString(error.code)) from None
    if not reader.parts:
        raise _malformed("it names no part")
    return reader.parts


class _ListReader:
    """Reads `<CompleteMultipartUpload>`: no document type and so no entities but XML's own."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, str]] = []
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._read
        self._part: dict[str, str] = {}
        self._text = ""

    def _refuse(self, *_: object) -> None:
        raise _malformed("it has a document type")

    def _start(self, tag: str, _attributes: object) -> None:
        self._text = ""
        if tag.rpartition(" ")[2] == "Part":
            self._part = {}

    def _read(self, text: str) -> None:
        self._text += text

    def _end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        if name in ("PartNumber", "ETag"):
            self._part[name] = self._text.strip()
        if name == "Part":
            number = self._part.get("PartNumber", "")
            if not (number.isascii() and number.isdigit() and len(number) < 6 and "ETag" in self._part):
                raise _malformed("a part needs PartNumber and ETag")
            self.parts.append((int(number), self._part["ETag"].strip('"')))


def _listed_parts(upload: _Upload, listed: list[tuple[int, str]]) -> list[Incoming]:
    """Return the parts of an object.

    Raises:
        RefusedError: They are out of order, did not come, came otherwise, or are too small.
    """
    numbers = [number for number, _ in listed]
    if numbers != sorted(set(numbers)):
        message = "The list of parts was not in ascending order. Parts must be ordered by part number."
        raise RefusedError(400, message, xml_code="InvalidPartOrder")
    found = []
    for number, etag in listed:
        part = upload.parts.get(number)
        if part is None or _etag(part) != etag:
            message = f"Part {number} could not be found: it did not come, or its ETag is another one."
            raise RefusedError(400, message, xml_code="InvalidPart")
        found.append(part)
    for part in found[:-1]:
        if part.size < SMALLEST_BYTES:
            message = f"A part of {part.size} bytes is too small. Expected {SMALLEST_BYTES} at least, but for the last."
            raise RefusedError(400, message, xml_code="EntityTooSmall")
    return found


def _etag(part: Incoming) -> str:
    return base64.b64decode(part.hashes()["md5Hash"]).hex()


def _finished(stored: StoredObject) -> dict[str, _Value]:
    location = f"http://{stored.bucket}.storage.googleapis.com/{stored.name}"
    return {"Location": location, "Bucket": stored.bucket, "Key": stored.name, "ETag": f'"{stored.etag}"'}


def _document(kind: str, values: Mapping[str, _Value]) -> Response:
    text = f"<?xml version='1.0' encoding='UTF-8'?><{kind} xmlns='{_XMLNS}'>{_elements(values)}</{kind}>"
    return Response(body=text.encode(), content_type="application/xml; charset=UTF-8")


def _elements(values: Mapping[str, _Value]) -> str:
    text = ""
    for name, value in values.items():
        for each in value if isinstance(value, list) else [value]:
            text += f"<{name}>{_elements(each) if isinstance(each, Mapping) else escape(str(each))}</{name}>"
    return text


def _malformed(why: str) -> RefusedError:
    message = f"The XML you provided was not well-formed or did not validate against our published schema: {why}."
    return RefusedError(400, message, xml_code="MalformedXML")
