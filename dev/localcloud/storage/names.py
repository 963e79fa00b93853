"""Object names that are no safe paths (`a//b`, `/a`, `d/`, `../x`, long parts), kept under names that are.

fake-gcs-server stores an object as the file of its name: `/a` would be `a`, `d/` would be lost, and `../x` would lie
outside the bucket. Such a name is stored below `.encoded-names/`, in hexadecimal, and given back as it was: in answers,
and in lists at its place (https://cloud.google.com/storage/docs/objects#naming). A bucket's name that is no bucket's
name is refused.

In: requests to a storage host, before the guard sees them. Out: the same requests with safe names; answers with the
real ones.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from localcloud.http import upstream
from localcloud.http.http1 import Head, Request, Response
from localcloud.http.routes import Handler, Target
from localcloud.storage.globs import compile_glob

_ENCODED = ".encoded-names"
_CHUNK = 200  # hexadecimal digits in a part of a path; a directory's part ends in "_", so it is never a file's
_PART_BYTES = 220  # what a file system takes, less what the server puts behind it
_PATTERN = rf"{re.escape(_ENCODED)}{{slash}}((?:[0-9a-f]{{{{{_CHUNK}}}}}_{{slash}})*[0-9a-f]+)"
_PLAIN, _QUOTED = (re.compile(_PATTERN.format(slash=slash)) for slash in ("/", "%2F"))
# https://cloud.google.com/storage/docs/buckets#naming
_BUCKET = re.compile(r"[a-z0-9](?:[a-z0-9_-]|\.(?!\.)){1,220}[a-z0-9]")
_OBJECT = re.compile(r"(?P<before>.*?/b/(?P<bucket>[^/?]*)/o/)(?P<object>[^/?]*)(?P<after>.*)", re.DOTALL)
_API = re.compile(r"/(?:(?:resumable/)?upload/|download/)?storage/v1")
_METADATA_LIMIT = 1024 * 1024
_PAGE = 1000


def is_safe(name: str) -> bool:
    """Tell whether a name can be a file's path below its bucket."""
    parts = name.split("/")
    return (
        all(part not in ("", ".", "..") and len(part.encode()) <= _PART_BYTES for part in parts)
        and parts[0] != _ENCODED
        and "\0" not in name
    )


def encode(name: str) -> str:
    """Give the name that an object is stored under; a safe one is its own."""
    if is_safe(name):
        return name
    digits = name.encode().hex() or "00"
    chunks = [digits[begin : begin + _CHUNK] for begin in range(0, len(digits), _CHUNK)]
    return "/".join([_ENCODED, *(f"{chunk}_" for chunk in chunks[:-1]), chunks[-1]])


def decode(text: str) -> str:
    """Give a text (a name, an id, an address) with every stored name in it as it was."""
    text = _PLAIN.sub(lambda found: _from_hex(found[1]), text)
    return _QUOTED.sub(lambda found: quote(_from_hex(found[1].replace("%2F", "/")), safe=""), text)


def _from_hex(path: str) -> str:
    return bytes.fromhex(path.replace("_/", "")).decode(errors="replace")


@dataclass(frozen=True, kw_only=True)
class _Listing:
    """What a list request asks for."""

    prefix: str
    delimiter: str
    start: str
    end: str
    keeps_placeholders: bool
    glob: re.Pattern[str] | None

    @classmethod
    def of(cls, query: dict[str, str]) -> _Listing:
        return cls(
            prefix=query.get("prefix", ""),
            delimiter=query.get("delimiter", ""),
            start=query.get("startOffset", ""),
            end=query.get("endOffset", ""),
            glob=compile_glob(query["matchGlob"]) if "matchGlob" in query else None,
            keeps_placeholders=query.get("includeTrailingDelimiter", "").lower() == "true",
        )

    def place(self, name: str) -> tuple[str | None, bool]:
        """Give the common prefix a name falls into (None: none), and whether it is listed itself."""
        if not name.startswith(self.prefix) or name < self.start or (self.end and name >= self.end):
            return None, False
        if self.glob is not None and not self.glob.fullmatch(name):
            return None, False
        cut = name.find(self.delimiter, len(self.prefix)) if self.delimiter else -1
        if cut < 0:
            return None, True
        common = name[: cut + len(self.delimiter)]
        return common, self.keeps_placeholders and common == name


class StorageNames:
    """Stands in front of the guard.

    Args:
        choose: Gives who answers a request with safe names.
        root: Where the server keeps its buckets.
    """

    def __init__(self, choose: Callable[[Head], Target], root: Path) -> None:
        self._inner = choose
        self._root = root

    def choose(self, head: Head) -> Target:
        """Give the target of a request to a storage host."""
        split = urlsplit(head.target)
        if _API.match(split.path) is None:
            return self._choose_address(head, split.path)
        match = _OBJECT.fullmatch(head.target)
        bucket = re.search(r"/b/([^/?]*)", split.path)
        if bucket is not None and not _BUCKET.fullmatch(unquote(bucket[1])):
            return _refuse_bucket(unquote(bucket[1]))
        if match is not None:
            return self._choose_object(head, match)
        if bucket is None:
            return self._create_bucket if head.method == "POST" else self._inner(head)
        query = dict(parse_qsl(split.query, keep_blank_values=True))
        if "/upload/" in split.path or split.path.startswith("/upload"):
            return self._choose_upload(head, query)
        is_list = head.method == "GET" and split.path.endswith("/o")
        if is_list and (self._root / bucket[1] / _ENCODED).exists():
            return self._list
        return self._choose_plain(head)

    def _choose_address(self, head: Head, path: str) -> Target:
        """Take the XML API's address of an object, `/bucket/name`."""
        bucket, slash, quoted = path.removeprefix("/").partition("/")
        if bucket and not _BUCKET.fullmatch(unquote(bucket)):
            return _refuse_bucket(unquote(bucket))
        if bucket and not (self._root / bucket).is_dir():
            return _no_such_bucket
        name = unquote(quoted)
        if not slash or not name or is_safe(name):
            return self._inner(head)
        return self._with(head, head.target.replace(path, f"/{bucket}/{quote(encode(name))}", 1))

    def _choose_object(self, head: Head, match: re.Match[str]) -> Target:
        after = match["after"]
        moved = re.fullmatch(r"(/(?:rewriteTo|copyTo)/b/)([^/?]*)(/o/)([^/?]*)(.*)", after, re.DOTALL)
        if moved is not None:
            if not _BUCKET.fullmatch(unquote(moved[2])):
                return _refuse_bucket(unquote(moved[2]))
            after = f"{moved[1]}{moved[2]}{moved[3]}{_encode_quoted(moved[4])}{moved[5]}"
        target = f"{match['before']}{_encode_quoted(match['object'])}{after}"
        if urlsplit(after).path == "/compose":
            return self._compose(target)
        return self._choose_plain(head) if target == head.target else self._with(head, target)

    def _choose_plain(self, head: Head) -> Target:
        """Take a request that is as it should be; one with a small document is answered whole (see `upstream.call`)."""
        return self._inner(head) if head.method in ("GET", "HEAD", "DELETE") else self._passing

    async def _passing(self, request: Request) -> Response:
        return await upstream.pass_on(self._inner(request.head), request)

    def _choose_upload(self, head: Head, query: dict[str, str]) -> Target:
        if "upload_id" in query:
            return self._decoding if query.pop(_FLAG, "") else self._inner(head)
        if "name" not in query:
            return self._insert
        if is_safe(query["name"]):
            return self._passing if query.get("uploadType") == "resumable" else self._inner(head)
        query["name"] = encode(query["name"])
        return self._with(head, f"{urlsplit(head.target).path}?{urlencode(query)}")

    def _with(self, head: Head, target: str) -> Handler:
        """Give a handler that asks for another target."""

        async def answer(request: Request) -> Response:
            return await self._ask(replace(request, head=_retarget(head, target)))

        return answer

    async def _decoding(self, request: Request) -> Response:
        return await self._ask(request)

    async def _ask(self, request: Request) -> Response:
        """Pass a request with safe names on, and give the answer with the real ones."""
        response = await upstream.pass_on(self._inner(request.head), request)
        location = response.fields.get("Location")
        if location is not None:
            response.fields["Location"] = f"{location}&{_FLAG}=1"
        if response.content_type.startswith("application/json") and _ENCODED.encode() in response.body:
            response.body = json.dumps(_decode_all(json.loads(response.body))).encode()
        return response

    async def _insert(self, request: Request) -> Response:
        """Take an upload whose object's name stands in its body: in a JSON document, or in the first part of two."""
        boundary = re.search(r'boundary="?([^";]+)', request.head.get("content-type"))
        begin = b""
        separator = b"--" + boundary[1].encode() if boundary else b""
        async for piece in request.body:
            begin += piece
            if separator and begin.count(separator) >= 2:
                break
            if len(begin) > _METADATA_LIMIT:
                return Response.of_error(400, "The upload's metadata is too long.", "INVALID_ARGUMENT")
        document = _json_in(begin)
        if document is None:
            return Response.of_error(400, "Parse Error: an object's metadata is a JSON object.", "INVALID_ARGUMENT")
        name = document.get("name")
        if not isinstance(name, str) or is_safe(name):
            return await upstream.pass_on(self._inner(request.head), replace(request, body=_chain(begin, request.body)))
        changed = _replace_json(begin, {**document, "name": encode(name)})
        head = _lengthen(request.head, len(changed) - len(begin))
        return await self._ask(replace(request, head=head, body=_chain(changed, request.body)))

    def _compose(self, target: str) -> Handler:
        async def answer(request: Request) -> Response:
            body = await request.read_body()
            document = _json_in(body)
            if document is None:
                return Response.of_error(400, "Parse Error: a composition is a JSON object.", "INVALID_ARGUMENT")
            sources = document.get("sourceObjects")
            for source in sources if isinstance(sources, list) else []:
                if isinstance(source, dict) and isinstance(source.get("name"), str):
                    source["name"] = encode(source["name"])
            changed = json.dumps(document).encode()
            head = _lengthen(_retarget(request.head, target), len(changed) - len(body))
            return await self._ask(replace(request, head=head, body=_chain(changed)))

        return answer

    async def _create_bucket(self, request: Request) -> Response:
        body = await request.read_body()
        name = (_json_in(body) or {}).get("name")
        if not isinstance(name, str) or not _BUCKET.fullmatch(name):
            return await _refuse_bucket(str(name))(request)
        return await upstream.pass_on(self._inner(request.head), replace(request, body=_chain(body)))

    async def _list(self, request: Request) -> Response:
        """List a bucket that has encoded names: all safe ones and all others, put together and cut into pages here."""
        query = dict(request.query)
        max_results = query.pop("maxResults", "") or str(_PAGE)
        if not re.fullmatch(r"[0-9]{1,9}", max_results):
            return Response.of_error(400, f"Invalid unsigned integer value: '{max_results}'.", "INVALID_ARGUMENT")
        limit = min(int(max_results) or _PAGE, _PAGE)
        token, asked = query.pop("pageToken", ""), _Listing.of(query)
        query.pop("fields", None)
        safe = await self._ask_list(request, query)
        if safe.status != 200:
            return safe
        others = {key: value for key, value in query.items() if key in ("versions", "projection")}
        stored = await self._ask_list(request, {**others, "prefix": f"{_ENCODED}/"})
        document = json.loads(safe.body)
        items = {
            (item["name"], item.get("generation", "")): item
            for item in document.get("items", [])
            if not item["name"].startswith(f"{_ENCODED}/")
        }
        prefixes = {prefix for prefix in document.get("prefixes", []) if prefix != f"{_ENCODED}/"}
        for item in _decode_all(json.loads(stored.body).get("items", [])):
            common, listed = asked.place(item["name"])
            prefixes |= {common} if common is not None else set()
            if listed:
                items[item["name"], item.get("generation", "")] = item
        return Response.of_json(_page(document, items, prefixes, limit=limit, after=_read_token(token)))

    async def _ask_list(self, request: Request, query: dict[str, str]) -> Response:
        """Ask for every page of a list, as one."""
        document: dict[str, Any] = {}
        token = ""
        while True:
            split = urlsplit(request.head.target)
            asked = {**query, **({"pageToken": token} if token else {})}
            head = _retarget(request.head, f"{split.path}?{urlencode(asked)}")
            response = await upstream.pass_on(self._inner(head), replace(request, head=head, body=_chain()))
            if response.status != 200:
                return response
            page = json.loads(response.body)
            for key in ("items", "prefixes"):
                page[key] = document.get(key, []) + page.get(key, [])
            document, token = page, page.pop("nextPageToken", "")
            if not token:
                response.body = json.dumps(document).encode()
                return response


_FLAG = "encoded_name"


def _page(
    document: dict[str, Any],
    items: dict[tuple[str, str], Any],
    prefixes: set[str],
    *,
    limit: int,
    after: tuple[str, str] | None,
) -> dict[str, Any]:
    """Put a page together: names in the order of their bytes, common prefixes among them."""
    entries: list[tuple[tuple[str, str], Any]] = [*items.items(), *(((prefix, ""), None) for prefix in prefixes)]
    entries.sort(key=lambda entry: (entry[0][0].encode(), entry[0][1]))
    left = [entry for entry in entries if after is None or _sort_key(entry[0]) > _sort_key(after)]
    page = {key: value for key, value in document.items() if key not in ("items", "prefixes", "nextPageToken")}
    if listed := [item for _, item in left[:limit] if item is not None]:
        page["items"] = listed
    if common := [key[0] for key, item in left[:limit] if item is None]:
        page["prefixes"] = common
    if len(left) > limit:
        page["nextPageToken"] = base64.urlsafe_b64encode(json.dumps(left[limit - 1][0]).encode()).decode()
    return page


def _sort_key(key: tuple[str, str]) -> tuple[bytes, str]:
    return key[0].encode(), key[1]


def _read_token(token: str) -> tuple[str, str] | None:
    if not token:
        return None
    try:
        name, generation = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError):
        return None
    return str(name), str(generation)


def _encode_quoted(quoted: str) -> str:
    name = unquote(quoted)
    return quoted if is_safe(name) else quote(encode(name), safe="")


def _decode_all(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, str):
        return decode(value)
    if isinstance(value, list):
        return [_decode_all(each) for each in value]
    if isinstance(value, dict):
        return {key: _decode_all(each) for key, each in value.items()}
    return value


def _retarget(head: Head, target: str) -> Head:
    method, _, version = head.first_line.split(" ", 2)
    return Head(first_line=f"{method} {target} {version}", fields=head.fields)


def _lengthen(head: Head, by: int) -> Head:
    length = head.get("content-length")
    if not length or not by:
        return head
    changed = head.without("content-length")
    changed.fields.append(("Content-Length", str(int(length) + by)))
    return changed


def _json_in(body: bytes) -> dict[str, Any] | None:
    """Read the JSON object of a body, or of its first part."""
    if body.lstrip().startswith(b"--"):
        body = body.partition(b"\r\n\r\n")[2].partition(b"\r\n--")[0]
    return upstream.json_object(body)


def _replace_json(body: bytes, document: dict[str, Any]) -> bytes:
    encoded = json.dumps(document).encode()
    if not body.lstrip().startswith(b"--"):
        return encoded
    head, _, rest = body.partition(b"\r\n\r\n")
    return b"".join([head, b"\r\n\r\n", encoded, b"\r\n--", rest.partition(b"\r\n--")[2]])


async def _chain(begin: bytes = b"", rest: AsyncIterator[bytes] | None = None) -> AsyncIterator[bytes]:
    if begin:
        yield begin
    if rest is not None:
        async for piece in rest:
            yield piece


async def _no_such_bucket(_request: Request) -> Response:
    code, message = "NoSuchBucket", "The specified bucket does not exist."
    document = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>{message}</Message></Error>"
    return Response(status=404, body=document.encode(), content_type="application/xml; charset=UTF-8")


def _refuse_bucket(name: str) -> Handler:
    async def refuse(_request: Request) -> Response:
        message = (
            f"Invalid bucket name: {name!r}. Expected 3 to 222 lower-case letters, digits, '-', '_' and single dots."
        )
        return Response.of_error(400, message, "INVALID_ARGUMENT")

    return refuse
