"""Resumable uploads: https://cloud.google.com/storage/docs/performing-resumable-uploads.

In: a start, pieces. Out: 308 with what has come, and at the end an object. Who lost the last answer gets it again. A
restart of the local cloud ends uploads under way: their sessions are unknown then (404), and clients start anew.
"""

from __future__ import annotations

import re
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlencode

from localcloud.http.http1 import Response
from localcloud.storage.attributes import DEFAULT_TYPE, read_attributes
from localcloud.storage.calls import Call, Document
from localcloud.storage.hashes import check_hashes
from localcloud.storage.objects import Incoming, Objects, StoredObject
from localcloud.storage.refusals import RefusedError

_RANGE = re.compile(r"bytes (?:(?P<first>\d{1,18})-(?P<last>\d{1,18})|\*)/(?P<total>\d{1,18}|\*)")
_REMEMBERED = 1000


@dataclass(kw_only=True)
class _Upload:
    """An upload under way; `stored` once it is an object."""

    start: Call
    attributes: Document
    incoming: Incoming
    busy: bool = False
    stored: StoredObject | None = None


class Uploads:
    """All resumable uploads.

    Args:
        directory: Where content lies on its way.
        describe: Gives the answer to who wrote an object.
    """

    def __init__(self, objects: Objects, directory: Path, describe: Callable[[StoredObject], Response]) -> None:
        self._objects = objects
        self._directory = directory
        self._describe = describe
        self._uploads: OrderedDict[str, _Upload] = OrderedDict()

    def find_object(self, session: str) -> tuple[str, str]:
        """Return bucket and name of the object that an upload makes.

        Raises:
            RefusedError: No such upload is known.
        """
        upload = self._uploads.get(session) or _no_upload(session)
        return upload.start.bucket, upload.start.name

    def start(self, call: Call) -> Response:
        """Begin an upload.

        Raises:
            RefusedError: Its metadata is none, a condition does not hold, or there is no such bucket.
        """
        attributes = object_attributes(call)
        call.conditions.check(self._objects.find(call.bucket, call.name))
        session = uuid.uuid4().hex
        self._uploads[session] = _Upload(start=call, attributes=attributes, incoming=Incoming(self._directory))
        self._forget_oldest()
        query = urlencode({"uploadType": "resumable", "upload_id": session})
        location = f"https://{call.host}/upload/storage/v1/b/{call.bucket}/o?{query}"
        return Response(fields={"Location": location, "X-GUploader-UploadID": session})

    async def resume(self, call: Call) -> Response:
        """Take a piece, say what has come, or end the upload.

        Raises:
            RefusedError: The piece does not fit, or what came is not what was promised.
        """
        upload = self._uploads.get(call.upload) or _no_upload(call.upload)
        if call.verb == "DELETE":
            self._drop(call.upload)
            return Response(status=499)
        if upload.stored is not None:
            return self._describe(upload.stored)
        if upload.busy:
            raise RefusedError(409, "Another piece of this upload is on its way.")
        upload.busy = True
        try:
            is_whole = await _take(upload.incoming, call)
        finally:
            upload.busy = False
            upload.incoming.close()  # who never goes on must not keep a file open
        have = upload.incoming.size
        if not is_whole:
            return Response(status=308, fields={"Range": f"bytes=0-{have - 1}"} if have else {})
        try:
            start, found = upload.start, upload.incoming.hashes()
            for declared in (start.hashes, call.hashes):  # with the metadata, and with the last piece
                check_hashes(declared, found)
            upload.stored = self._objects.put(
                start.bucket, start.name, upload.incoming, upload.attributes, start.conditions
            )
        except RefusedError:
            self._drop(call.upload)
            raise
        return self._describe(upload.stored)

    def _drop(self, session: str) -> None:
        self._uploads.pop(session).incoming.discard()

    def _forget_oldest(self) -> None:
        """Forget what ended long ago; an upload that nobody goes on with costs a file until the next start."""
        ended = [session for session, upload in self._uploads.items() if upload.stored is not None]
        for session in ended[: max(0, len(ended) - _REMEMBERED)]:
            del self._uploads[session]


async def _take(incoming: Incoming, call: Call) -> bool:
    """Take a piece; tell whether the upload is whole. Bytes that have come before are not taken twice."""
    text = call.fields.get("content-range", "")
    match = _RANGE.fullmatch(text) if text else None
    if text and match is None:
        raise RefusedError(
            400, f"Invalid Content-Range {text[:100]!r}. Expected 'bytes FIRST-LAST/TOTAL' or 'bytes */TOTAL'."
        )
    first = int(match["first"]) if match and match["first"] else incoming.size if match else 0
    if first > incoming.size:
        raise RefusedError(400, f"Content-Range does not continue at byte {incoming.size}.")
    known, most = incoming.size - first, None if not match or not match["last"] else int(match["last"]) - first + 1
    came = 0
    if call.content is not None:
        async for piece in call.content:
            came += len(piece)
            if most is not None and came > most:
                raise RefusedError(400, f"The piece is longer than its Content-Range {text!r}.")
            fresh, known = piece[known:], max(0, known - len(piece))
            incoming.write(fresh)
    if match is None:
        return True
    if match["total"] == "*":
        return False
    total = int(match["total"])
    if incoming.size > total:
        raise RefusedError(400, f"{incoming.size} bytes have come. Expected {total}, as Content-Range says.")
    return incoming.size == total


def object_attributes(call: Call) -> Document:
    """Return the attributes of the object that a call writes.

    Raises:
        RefusedError: Its metadata is none.
    """
    attributes = read_attributes(call.resource)
    if not attributes.get("contentType"):
        attributes["contentType"] = call.content_type or DEFAULT_TYPE
    return attributes


def _no_upload(session: str) -> NoReturn:
    raise RefusedError(404, f"No upload {session[:100]}. Start the upload again.")
