"""Preconditions of Cloud Storage that fake-gcs-server leaves out, kept in front of it.

It holds `ifGenerationMatch` for simple and multipart uploads (atomically), but ignores it for resumable uploads (the
Python client's way above 8 MiB), deletes, patches, rewrites and compositions: a second writer would silently replace
the first one's object. Here a resumable upload is collected in a file, checked against the checksums that came with it,
and then sent as one multipart upload, whose preconditions the server checks atomically; the other calls are checked
first, one at a time.
"""

from __future__ import annotations

import asyncio
import json
import re
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from localcloud.http import http1, upstream
from localcloud.http.http1 import Head, Request, Response
from localcloud.http.routes import Address, Handler
from localcloud.storage.hashes import check_hashes, declared_hashes

_SESSION_PREFIX = "guarded-"
_PRECONDITIONS = ("ifGenerationMatch", "ifGenerationNotMatch", "ifMetagenerationMatch", "ifMetagenerationNotMatch")
_OBJECT = r"/storage/v1/b/(?P<bucket>[^/]+)/o/(?P<object>[^/]+)"
_DESTINATION = re.compile(rf"{_OBJECT}/(?:rewriteTo|copyTo)/b/(?P<to_bucket>[^/]+)/o/(?P<to_object>[^/]+)")
_CHANGED = re.compile(rf"{_OBJECT}(?:/compose)?")
_BOUNDARY = "local-cloud-part"


@dataclass(frozen=True, kw_only=True)
class _Session:
    """A resumable upload under way."""

    bucket: str
    query: dict[str, str]
    metadata: dict[str, Any]
    content_type: str
    path: Path


class StorageGuard:
    """Decides which storage requests need it, and answers those."""

    def __init__(self, server: Address, directory: Path) -> None:
        self._server = server
        self._directory = directory
        self._sessions: dict[str, _Session] = {}
        self._one_change = asyncio.Lock()
        for left_over in directory.iterdir():  # of uploads that a restart cut off
            left_over.unlink()

    def choose(self, head: Head) -> Address | Handler:
        """Give the target of a request to a storage host."""
        if "upload_id=" + _SESSION_PREFIX in head.target:
            return self._continue_upload
        if head.method == "POST" and "uploadType=resumable" in head.target:
            return self._start_upload
        if head.method in ("GET", "HEAD") or not any(f"{name}=" in head.target for name in _PRECONDITIONS):
            return self._server
        return self._server if "/upload/" in head.target else self._change

    async def _start_upload(self, request: Request) -> Response:
        metadata = upstream.json_object(await request.read_body())
        if metadata is None:
            return Response.of_error(400, "Parse Error: an object's metadata is a JSON object.", "INVALID_ARGUMENT")
        bucket = re.search(r"/b/([^/]+)/o", request.path)
        name = request.query.get("name") or metadata.get("name")
        if bucket is None or not name or not isinstance(name, str):
            return Response.of_error(400, "A resumable upload needs a bucket and a name.", "INVALID_ARGUMENT")
        there = await upstream.call(self._server, "GET", f"/storage/v1/b/{bucket.group(1)}", [], None)
        if there.status != 200:
            return there
        refusal = await self._check(bucket.group(1), quote(name, safe=""), request.query)
        if refusal is not None:
            return refusal
        session_id = _SESSION_PREFIX + uuid.uuid4().hex
        path = self._directory / session_id
        path.touch()
        self._sessions[session_id] = _Session(
            bucket=bucket.group(1),
            query={key: request.query[key] for key in _PRECONDITIONS if key in request.query},
            metadata={**metadata, "name": name},
            content_type=request.head.get("x-upload-content-type")
            or metadata.get("contentType", "application/octet-stream"),
            path=path,
        )
        query = urlencode({"uploadType": "resumable", "upload_id": session_id})
        location = f"https://{request.host}/upload/storage/v1/b/{bucket.group(1)}/o?{query}"
        return Response(fields={"Location": location, "X-GUploader-UploadID": session_id})

    async def _continue_upload(self, request: Request) -> Response:
        session_id = request.query["upload_id"]
        session = self._sessions.get(session_id)
        if session is None:
            return Response.of_error(404, f"No upload {session_id}. Start the upload again.", "NOT_FOUND")
        if request.method == "DELETE":
            self._forget(session_id)
            return Response(status=499)
        span = re.fullmatch(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)", request.head.get("content-range") or "bytes */*")
        have = session.path.stat().st_size
        if span is None or (span.group(1) and int(span.group(1)) != have):
            return Response.of_error(400, f"Content-Range does not continue at byte {have}.", "INVALID_ARGUMENT")
        with session.path.open("ab") as file:
            async for piece in request.body:
                file.write(piece)
            have = file.tell()
        whole = not request.head.get("content-range") or (span.group(2) != "*" and have >= int(span.group(2)))
        if not whole:
            return Response(status=308, fields={"Range": f"bytes=0-{have - 1}"} if have else {})
        try:
            with session.path.open("rb") as file:
                pieces = iter(lambda: file.read(http1.CHUNK_BYTES), b"")
                refusal = await check_hashes(declared_hashes(request.head, session.metadata), pieces)
            return refusal or await self._finish(session)
        finally:
            self._forget(session_id)

    async def _finish(self, session: _Session) -> Response:
        query = urlencode({"uploadType": "multipart", **session.query})
        before = (
            f"--{_BOUNDARY}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{json.dumps(session.metadata)}\r\n"
            f"--{_BOUNDARY}\r\nContent-Type: {session.content_type}\r\n\r\n"
        ).encode()
        after = f"\r\n--{_BOUNDARY}--\r\n".encode()
        length = len(before) + session.path.stat().st_size + len(after)

        async def pieces() -> AsyncIterator[bytes]:
            yield before
            with session.path.open("rb") as file:
                while piece := file.read(http1.CHUNK_BYTES):
                    yield piece
            yield after

        fields = [("Content-Type", f"multipart/related; boundary={_BOUNDARY}"), ("Content-Length", str(length))]
        return await upstream.call(
            self._server, "POST", f"/upload/storage/v1/b/{session.bucket}/o?{query}", fields, pieces()
        )

    def _forget(self, session_id: str) -> None:
        session = self._sessions.pop(session_id)
        session.path.unlink(missing_ok=True)

    async def _change(self, request: Request) -> Response:
        """Check a delete, patch, rewrite, copy or composition, then pass it on.

        Its body is read first: one that never comes must not keep all others waiting.
        """
        body = await request.read_body()
        async with self._one_change:
            destination = _DESTINATION.fullmatch(request.path)
            changed = _CHANGED.fullmatch(request.path)
            if destination is not None:
                where = destination.group("to_bucket"), destination.group("to_object")
            elif changed is not None:
                where = changed.group("bucket"), changed.group("object")
            else:
                return Response.of_error(501, f"Preconditions on {request.path} are not offered here", "UNIMPLEMENTED")
            refusal = await self._check(*where, request.query)
            if refusal is not None:
                return refusal
            split = urlsplit(request.head.target)
            query = urlencode([pair for pair in parse_qsl(split.query) if pair[0] not in _PRECONDITIONS])
            fields = [
                *request.head.without("host", "transfer-encoding", "content-length", "connection", "expect").fields,
                ("Content-Length", str(len(body))),
            ]

            async def pieces() -> AsyncIterator[bytes]:
                yield body

            return await upstream.call(self._server, request.method, f"{split.path}?{query}", fields, pieces())

    async def _check(self, bucket: str, quoted_object: str, query: dict[str, str]) -> Response | None:
        """Give the 412 answer when the stored object does not meet the query's preconditions, else None."""
        for name in _PRECONDITIONS:
            if not re.fullmatch(r"-?[0-9]{1,19}", query.get(name, "0")):
                return Response.of_error(
                    400, f"Invalid value for {name}: expected a 64-bit integer.", "INVALID_ARGUMENT"
                )
        stored = await upstream.call(self._server, "GET", f"/storage/v1/b/{bucket}/o/{quoted_object}", [], None)
        resource = json.loads(stored.body) if stored.status == 200 else {}
        current = {
            "Generation": int(resource.get("generation", 0)),
            "Metageneration": int(resource.get("metageneration", 0)),
        }
        for kind, value in current.items():
            required, excluded = query.get(f"if{kind}Match"), query.get(f"if{kind}NotMatch")
            if (required is not None and int(required) != value) or (excluded is not None and int(excluded) == value):
                message = "At least one of the pre-conditions you specified did not hold."
                return Response.of_error(412, message, "FAILED_PRECONDITION")
        return None
