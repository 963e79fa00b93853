"""Faults of Cloud Storage: looks at each request first, and lets it go wrong when a fault says so.

In: requests to a storage host and the shelf of faults. Out: the choice of `StorageNames` while no fault is in
force; else the fault's answer, or what would have been answered. Events are named by the methods of the JSON API
(https://cloud.google.com/storage/docs/json_api/v1): `storage.objects.insert gs://bucket/name`. A resumable upload is
one insert for its start and one, without
the object's name, for each of its pieces.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

from localcloud.codes import HTTP_STATUS
from localcloud.faults import Action, FaultShelf
from localcloud.http import upstream
from localcloud.http.http1 import Head, Request, Response
from localcloud.http.routes import Address, Handler

if TYPE_CHECKING:
    from localcloud.storage.names import StorageNames

# Storage answers a precondition that does not hold with 412, where Google's other APIs say 400.
_STATUS = {**HTTP_STATUS, "FAILED_PRECONDITION": 412}
_NAME_IN_BODY = re.compile(rb'"name"\s*:\s*("(?:[^"\\]|\\.)*")')
_METADATA_BYTES = 64 * 1024
_OBJECT_VERBS = {"GET": "get", "HEAD": "get", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}
_DESTINATIONS = {"rewriteTo": "rewrite", "copyTo": "copy"}


@dataclass(frozen=True)
class Event:
    """A call of the JSON API: the method's id, and the object or bucket it concerns ("" where the request hides it)."""

    method: str
    about: str


class StorageFaults:
    """Stands in front of all that storage is made of.

    Args:
        names: Chooses who answers a request that nothing goes wrong with.
    """

    def __init__(self, names: StorageNames, shelf: FaultShelf) -> None:
        self._names = names
        self._shelf = shelf

    def choose(self, head: Head) -> Address | Handler:
        """Give the target of a request to a storage host."""
        if self._shelf.is_empty():
            return self._names.choose(head)
        event = event_of(head)
        if event.method == "storage.objects.insert" and not event.about:
            return self._insert
        return self._choose(head, event)

    def _choose(self, head: Head, event: Event) -> Address | Handler:
        action = self._shelf.take(event.method, event.about)
        if action is None:
            return self._names.choose(head)

        async def suffer(request: Request) -> Response:
            return await self._suffer(action, request)

        return suffer

    async def _insert(self, request: Request) -> Response:
        """Answer an upload whose object's name stands in its body."""
        body = await request.read_body()
        name = _NAME_IN_BODY.search(body[:_METADATA_BYTES])
        about = f"gs://{_bucket(request.head)}/{json.loads(name[1]) if name else ''}"
        request = Request(host=request.host, head=request.head, body=_pieces(body))
        action = self._shelf.take("storage.objects.insert", about)
        return await (self._pass_on(request) if action is None else self._suffer(action, request))

    async def _suffer(self, action: Action, request: Request) -> Response:
        if action["kind"] == "delay":
            await asyncio.sleep(float(action["seconds"]))
            return await self._pass_on(request)
        if action["kind"] == "lost_response":
            await self._pass_on(request)
        return Response.of_error(_STATUS[action["code"]], action["message"], action["code"])

    async def _pass_on(self, request: Request) -> Response:
        return await upstream.pass_on(self._names.choose(request.head), request)


def event_of(head: Head) -> Event:
    """Name the call that a request is."""
    split = urlsplit(head.target)
    query = {key: values[-1] for key, values in parse_qs(split.query, keep_blank_values=True).items()}
    if re.match(r"/(?:resumable/)?upload/storage/", split.path):
        known = "name" in query or "upload_id" in query  # a piece of a resumable upload names its session only
        return Event("storage.objects.insert", f"gs://{_bucket(head)}/{query.get('name', '')}" if known else "")
    parts = re.fullmatch(r"(?:/download)?/storage/v1/b(?:/([^/]+)(?:/(o)(?:/([^/]+)(?:/(.+))?)?)?)?", split.path)
    if parts is None:
        bucket, _, name = split.path.lstrip("/").partition("/")  # the XML API's address of an object
        kind = "objects" if name else "buckets"
        return Event(f"storage.{kind}.{_OBJECT_VERBS.get(head.method, 'get')}", f"gs://{bucket}/{unquote(name)}")
    bucket, objects, name, rest = (unquote(part or "") for part in parts.groups())
    if not objects:
        verb = _OBJECT_VERBS.get(head.method, "insert") if bucket else {"GET": "list"}.get(head.method, "insert")
        return Event(f"storage.buckets.{verb}", f"gs://{bucket}" if bucket else "")
    if not name:
        return Event("storage.objects.list", f"gs://{bucket}/{query.get('prefix', '')}")
    moved = re.fullmatch(r"(rewriteTo|copyTo)/b/([^/]+)/o/(.+)", rest)
    if moved is not None:
        return Event(f"storage.objects.{_DESTINATIONS[moved[1]]}", f"gs://{moved[2]}/{unquote(moved[3])}")
    verb = "compose" if rest == "compose" else _OBJECT_VERBS.get(head.method, "get")
    return Event(f"storage.objects.{verb}", f"gs://{bucket}/{name}")


def _bucket(head: Head) -> str:
    match = re.search(r"/b/([^/?]+)/o", head.target)
    return unquote(match[1]) if match else ""


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    yield body
