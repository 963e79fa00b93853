"""What Cloud Storage heeds and fake-gcs-server ignores: `matchGlob`, preconditions of reads, checksums, whose bucket.

In: requests to a storage host, and who answers them without these rules. Out: that choice for all that need none; else
an answer of ours, or the server's, checked. What the server cannot do (versions of objects) is refused by name, with a
code that no client repeats.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Callable
from email.parser import BytesHeaderParser
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from localcloud.http import upstream
from localcloud.http.http1 import Head, Request, Response
from localcloud.http.routes import Target
from localcloud.projects import Projects
from localcloud.storage.globs import compile_glob
from localcloud.storage.hashes import check_hashes, declared_hashes

_BUCKETS = re.compile(r"/storage/v1/b/?")
_BUCKET = re.compile(r"/storage/v1/b/(?P<bucket>[^/]+)/?")
_LIST = re.compile(r"/storage/v1/b/(?P<bucket>[^/]+)/o/?")
_OBJECT = re.compile(r"/(?:download/)?storage/v1/b/(?P<bucket>[^/]+)/o/(?P<object>[^/]+)")
_UPLOAD = re.compile(r"/(?:resumable/)?upload/storage/v1/b/[^/]+/o")
_CONDITIONS = {
    "ifGenerationMatch": ("generation", True),
    "ifGenerationNotMatch": ("generation", False),
    "ifMetagenerationMatch": ("metageneration", True),
    "ifMetagenerationNotMatch": ("metageneration", False),
}
_NO_VERSIONS = "Object versioning is not offered by the local cloud. Leave `versioning` out, or set it to false."


class StorageRules:
    """Stands in front of those who answer storage requests.

    Args:
        choose: Gives who answers a request when no rule is concerned.
    """

    def __init__(self, choose: Callable[[Head], Target], projects: Projects) -> None:
        self._inner = choose
        self._projects = projects

    def choose(self, head: Head) -> Target:
        """Give the target of a request to a storage host."""
        split = urlsplit(head.target)
        if _BUCKETS.fullmatch(split.path) or _BUCKET.fullmatch(split.path):
            return self._buckets
        if head.method in ("GET", "HEAD"):
            if _LIST.fullmatch(split.path):
                return self._match_glob if "matchGlob=" in split.query else self._inner(head)
            conditional = any(f"{name}=" in split.query for name in _CONDITIONS)
            return self._answer_read if conditional and _OBJECT.fullmatch(split.path) else self._inner(head)
        if _UPLOAD.fullmatch(split.path) and "uploadType=resumable" not in split.query:
            hashed = head.get("x-goog-hash") or head.get("content-md5")
            return self._upload if hashed or "uploadType=multipart" in split.query else self._inner(head)
        return self._inner(head)

    async def _match_glob(self, request: Request) -> Response:
        """List what the server lists, less what the glob does not match."""
        split = urlsplit(request.head.target)
        query = [pair for pair in parse_qsl(split.query, keep_blank_values=True) if pair[0] != "matchGlob"]
        pattern = compile_glob(request.query["matchGlob"])
        if pattern is None:
            return Response.of_error(400, f"Invalid matchGlob {request.query['matchGlob']!r}.", "INVALID_ARGUMENT")
        answer = await self._ask(request, "GET", f"{split.path}?{urlencode(query)}")
        if answer.status != 200:
            return answer
        document = json.loads(answer.body)
        document["items"] = [each for each in document.get("items") or [] if pattern.fullmatch(each["name"])]
        return Response.of_json(document)

    async def _answer_read(self, request: Request) -> Response:
        """Check a read's preconditions, then give what is read."""
        path = urlsplit(request.head.target).path.removeprefix("/download")
        stored = await self._ask(request, "GET", path)
        if stored.status != 200:
            return stored
        refusal = _check_conditions(json.loads(stored.body), request.query)
        return refusal or await self._pass_on(request)

    async def _upload(self, request: Request) -> Response:
        """Check the checksums that came with an upload, in its fields or in its metadata."""
        body = await request.read_body()
        declared = declared_hashes(request.head)
        content = body
        if "uploadType=multipart" in request.head.target:
            parts = _parse_multipart(request.head.get("content-type"), body)
            if parts is None:
                return Response.of_error(400, "Malformed multipart body.", "INVALID_ARGUMENT")
            metadata, content = parts
            declared = declared_hashes(request.head, metadata)
        refusal = await check_hashes(declared, [content])
        if refusal is not None:
            return refusal
        return await self._pass_on(Request(host=request.host, head=request.head, body=_pieces(body)))

    async def _buckets(self, request: Request) -> Response:
        """Answer for buckets with their project's number; refuse versions, and projects that do not exist."""
        body = await request.read_body()
        asked = request.query.get("project")
        if asked is not None and self._projects.find_id(asked) is None:
            return Response.of_error(400, f"Unknown project id: {asked}", "INVALID_ARGUMENT")
        resource = upstream.json_object(body)
        if resource is None:
            return Response.of_error(400, "Parse Error", "INVALID_ARGUMENT")
        versioning = resource.get("versioning")
        if isinstance(versioning, dict) and versioning.get("enabled"):
            return Response.of_error(501, _NO_VERSIONS, "UNIMPLEMENTED")
        answer = await self._pass_on(Request(host=request.host, head=request.head, body=_pieces(body)))
        if answer.status != 200 or not answer.body:
            return answer
        document = json.loads(answer.body)
        if not isinstance(document, dict):  # of a bucket that was deleted
            return answer
        if request.method == "POST" and asked is not None:
            self._projects.own(document["name"], asked)
        if document.get("kind") == "storage#buckets":
            items = [self._owned(bucket) for bucket in document.get("items") or []]
            number = self._projects.number(asked)
            return Response.of_json({**document, "items": [each for each in items if each["projectNumber"] == number]})
        return _check_conditions(document, request.query) or Response.of_json(self._owned(document))

    def _owned(self, bucket: dict[str, Any]) -> dict[str, Any]:
        return {**bucket, "projectNumber": self._projects.number(self._projects.owner(bucket["name"]))}

    async def _ask(self, request: Request, method: str, target: str) -> Response:
        head = request.head.without("content-length", "transfer-encoding", "range", "if-none-match", "if-match")
        head.first_line = f"{method} {target} HTTP/1.1"
        return await self._pass_on(Request(host=request.host, head=head, body=_pieces(b"")))

    async def _pass_on(self, request: Request) -> Response:
        return await upstream.pass_on(self._inner(request.head), request)


def _check_conditions(resource: dict[str, Any], query: dict[str, str]) -> Response | None:
    """Give 412 or 304 when a resource does not meet a read's preconditions, else None."""
    for name, (field, must_equal) in _CONDITIONS.items():
        if name in query and (query[name] == str(resource.get(field, "0"))) is not must_equal:
            if not must_equal:
                return Response(status=304)
            message = "At least one of the pre-conditions you specified did not hold."
            return Response.of_error(412, message, "FAILED_PRECONDITION")
    return None


def _parse_multipart(content_type: str, body: bytes) -> tuple[dict[str, Any], bytes] | None:
    """Give metadata and content of a multipart/related body; None when it is not one."""
    boundary = re.search(r'boundary="?([^";]+)"?', content_type)
    if boundary is None:
        return None
    mark = b"--" + boundary[1].strip("'").encode()
    begin, end = body.find(mark), body.rfind(b"\r\n" + mark + b"--")
    middle = body.find(b"\r\n" + mark + b"\r\n", begin + 1)
    if begin < 0 or middle < 0 or end < middle:
        return None
    first = body[begin + len(mark) + 2 : middle]
    second = body[middle + len(mark) + 4 : end]
    _, _, text = first.partition(b"\r\n\r\n")
    fields, _, content = second.partition(b"\r\n\r\n")
    if BytesHeaderParser().parsebytes(fields + b"\r\n\r\n").get("content-transfer-encoding", "binary") == "base64":
        content = base64.b64decode(content)
    try:
        metadata = json.loads(text)
    except ValueError:
        return None
    return (metadata, content) if isinstance(metadata, dict) else None


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body
