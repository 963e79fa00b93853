"""Cloud Logging's LoggingServiceV2, over gRPC and REST: write, list, list logs, delete a log.

In: requests in Google's own types. Out: entries in the `store` file, which other servers write to directly.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from google.cloud.logging_v2 import types
from google.protobuf import empty_pb2, json_format, timestamp_pb2

from localcloud.access.iam_calls import about, asked
from localcloud.errors import CallError
from localcloud.fields import read_fields
from localcloud.http.fronts import Call, Front
from localcloud.http.http1 import Request, Response
from localcloud.logs.filters import FilterError, compile_filter
from localcloud.logs.store import Entry, LogStore
from localcloud.message_fields import MessageFields
from localcloud.projects import Projects
from localcloud.untyped import Untyped

_log = logging.getLogger("logging")

_KIND = "LoggingServiceV2"
_SERVICE = f"/google.logging.v2.{_KIND}/"
_MAX_PAGE = 1000
_DEFAULT_PAGE = 50
_MAX_NAMES = 100  # as the service
# What is kept of an entry beside what filters look at.
_MORE = ("http_request", "operation", "trace", "span_id", "trace_sampled", "source_location", "split")
FIELDS = MessageFields(read_fields(Path(__file__).with_name("fields.json")), "google.logging.v2.")
"""What becomes of each field."""
_LOG_NAME = re.compile(r"projects/[^/]+/logs/[^/]+")


@dataclass(frozen=True, kw_only=True)
class LogCall(Call):
    """A call: its name and its message."""

    name: str
    message: Untyped


class LogService(Front[LogCall]):
    """The service, in its REST form; `grpc_handler` is its gRPC form."""

    def __init__(self, store: LogStore, projects: Projects) -> None:
        self._store = store
        self._projects = projects
        self._methods: dict[str, tuple[type, Callable[[Any], Any]]] = {
            "WriteLogEntries": (types.WriteLogEntriesRequest, _checked("WriteLogEntries", self.write)),
            "ListLogEntries": (types.ListLogEntriesRequest, _checked("ListLogEntries", self.list)),
            "ListLogs": (types.ListLogsRequest, _checked("ListLogs", self.list_logs)),
            "DeleteLog": (types.DeleteLogRequest, _checked("DeleteLog", self.delete_log)),
        }

    def write(self, request: types.WriteLogEntriesRequest) -> types.WriteLogEntriesResponse:
        """Store entries; the request's log name, resource and labels are defaults for each.

        Raises:
            CallError: One is wrong; with `partial_success` the others are stored.
        """
        entries: list[Entry] = []
        refused: list[CallError] = []
        for entry in request.entries:
            try:
                entries.append(_to_entry(entry, request))
            except CallError as error:
                refused.append(error)
        if not request.dry_run and (request.partial_success or not refused):
            self._store.append(replace(each, log_name=self._projects.with_ids(each.log_name)) for each in entries)
        if refused:
            raise refused[0]
        return types.WriteLogEntriesResponse()

    def list(self, request: types.ListLogEntriesRequest) -> types.ListLogEntriesResponse:
        """Return a page of entries of the named projects that match the filter, oldest first unless asked otherwise."""
        if not request.resource_names:
            raise CallError("ListLogEntries requires at least one resource name, for example projects/my-project.")
        order_by = request.order_by.strip().lower() or "timestamp asc"
        if order_by not in ("timestamp asc", "timestamp desc", "timestamp"):
            raise CallError(f"Unknown order_by {request.order_by!r}. Expected 'timestamp asc' or 'timestamp desc'.")
        try:
            condition, parameters = compile_filter(request.filter)
        except FilterError as error:
            raise CallError(str(error)) from None
        names = [f"{self._projects.with_ids(name.split('/locations/')[0])}/logs/%" for name in request.resource_names]
        if len(names) > _MAX_NAMES:
            raise CallError(f"ListLogEntries takes at most {_MAX_NAMES} resource names.")
        try:
            entries, end = self._store.page(
                where=f"({' OR '.join(['log_name LIKE ?'] * len(names))}) AND {condition}",
                parameters=[*names, *parameters],
                descending=order_by.endswith("desc"),
                limit=min(max(request.page_size, 0) or _DEFAULT_PAGE, _MAX_PAGE),
                after=_read_token(request.page_token),
            )
        except (sqlite3.Error, OverflowError, UnicodeEncodeError) as error:  # a path or number that SQLite refuses
            raise CallError(f"The filter cannot be evaluated: {error}.") from None
        return types.ListLogEntriesResponse(
            entries=[_from_entry(entry) for entry in entries],
            next_page_token="" if end is None else _write_token(end),
        )

    def list_logs(self, request: types.ListLogsRequest) -> types.ListLogsResponse:
        """Return the names of a project's logs that hold entries, a page of them in order."""
        parent = self._projects.with_ids(request.parent)
        found = [name for name in self._store.log_names(f"{parent}/logs/") if name > request.page_token]
        size = min(max(request.page_size, 0) or _MAX_PAGE, _MAX_PAGE)
        token = found[size - 1] if len(found) > size else ""
        return types.ListLogsResponse(log_names=found[:size], next_page_token=token)

    def delete_log(self, request: types.DeleteLogRequest) -> empty_pb2.Empty:
        """Delete a log's entries; those that are written later make it again."""
        name = self._projects.with_ids(request.log_name)
        if not _LOG_NAME.fullmatch(name):
            raise CallError(f"Invalid log name {name!r}. Expected the form projects/<project>/logs/<log>.")
        if not self._store.delete_log(name):
            raise CallError(f"Log not found: {name}.", "NOT_FOUND")
        return empty_pb2.Empty()

    def grpc_handler(self) -> grpc.GenericRpcHandler:
        """Return the methods for a gRPC server."""
        return _Dispatch(self._methods)

    async def read_call(self, request: Request) -> LogCall:
        """Read a REST request: entries:write, entries:list, the list of logs, and a log's end."""
        if request.path in ("/v2/entries:write", "/v2/entries:list"):
            name = "WriteLogEntries" if request.path.endswith("write") else "ListLogEntries"
            document = await request.read_body()
        elif request.path.startswith("/v2/projects/") and request.path.endswith("/logs"):
            name = "ListLogs"
            own = FIELDS.check_parameters(f"{_KIND}.{name}", request.query)
            parent = request.path.removeprefix("/v2/").removesuffix("/logs")
            document = json.dumps({"parent": parent, **own}).encode()
        elif request.method == "DELETE" and (log_name := request.path.removeprefix("/v2/")) != request.path:
            name, document = "DeleteLog", json.dumps({"logName": log_name}).encode()
        else:
            raise CallError(f"{request.path} is not part of the local cloud", "NOT_FOUND")
        if name != "ListLogs" and (own := FIELDS.check_parameters(f"{_KIND}.{name}", request.query)):
            raise CallError(f"{name} takes its fields in its body, not in its address: {', '.join(own)}.")
        kind, _ = self._methods[name]
        with _refusing_malformed():
            message = kind.pb(kind())  # type: ignore[attr-defined]  # proto-plus
            parsed = kind.wrap(json_format.Parse(document or b"{}", message))  # type: ignore[attr-defined]
            method, resources = asked(_SERVICE + name, parsed)
        return LogCall(method=method, resources=resources, about=about(resources), name=name, message=parsed)

    async def answer_call(self, call: LogCall) -> Response:
        """Answer a call."""
        _, method = self._methods[call.name]
        with _refusing_malformed():
            answer = await asyncio.to_thread(method, call.message)  # a slow filter must not hold up other requests
        return Response(body=json_format.MessageToJson(_plain(answer), indent=None).encode())


@contextmanager
def _refusing_malformed() -> Iterator[None]:
    """Refuse what protobuf, a filter or SQLite cannot take."""
    try:
        yield
    except (json_format.ParseError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise CallError(str(error)) from None


class _Dispatch(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    def __init__(self, methods: dict[str, tuple[type, Callable[[Any], Any]]]) -> None:
        self._handlers = {
            _SERVICE + name: grpc.unary_unary_rpc_method_handler(
                _with_request(method),
                request_deserializer=kind.deserialize,  # type: ignore[attr-defined]  # proto-plus
                response_serializer=lambda answer: _plain(answer).SerializeToString(),
            )
            for name, (kind, method) in methods.items()
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        return self._handlers.get(handler_call_details.method)


def _plain(message: Untyped) -> Untyped:
    """Return a message without proto-plus around it."""
    return type(message).pb(message) if hasattr(type(message), "pb") else message


def _checked(name: str, method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a method that drops no field without a word."""

    def answer(request: Untyped) -> Untyped:
        FIELDS.check(f"{_KIND}.{name}", _plain(request))
        return method(request)

    return answer


def _with_request(method: Callable[[Any], Any]) -> Callable[[Any, grpc.ServicerContext], Any]:
    return lambda request, _context: method(request)


def _to_entry(entry: types.LogEntry, request: types.WriteLogEntriesRequest) -> Entry:
    log_name = entry.log_name or request.log_name
    if not log_name.startswith("projects/") or "/logs/" not in log_name:
        raise CallError(f"Invalid log name {log_name!r}. Expected the form projects/<project>/logs/<log>.")
    raw = types.LogEntry.pb(entry)
    resource = raw.resource if raw.HasField("resource") else types.WriteLogEntriesRequest.pb(request).resource
    timestamp = raw.timestamp.ToNanoseconds() if raw.HasField("timestamp") else 0
    now = timestamp_pb2.Timestamp()
    now.GetCurrentTime()
    payload = raw.WhichOneof("payload")
    return Entry(
        log_name=log_name,
        insert_id=entry.insert_id,
        timestamp_ns=timestamp or now.ToNanoseconds(),
        severity=int(entry.severity),
        resource_type=resource.type or "global",
        resource_labels=dict(resource.labels),
        labels={**request.labels, **entry.labels},
        text_payload=raw.text_payload if payload == "text_payload" else None,
        json_payload=json_format.MessageToDict(getattr(raw, payload))
        if payload in ("json_payload", "proto_payload")
        else None,
        more=_read_more(raw),
    )


def _read_more(raw: Untyped) -> dict[str, Any] | None:
    more = type(raw)()
    for field, value in raw.ListFields():
        if field.name in _MORE and field.message_type is not None:
            getattr(more, field.name).CopyFrom(value)
        elif field.name in _MORE:
            setattr(more, field.name, value)
    try:
        return json_format.MessageToDict(more) or None
    except ValueError as error:  # a latency that is no duration
        raise CallError(f"The entry cannot be kept: {error}.") from None


def _from_entry(entry: Entry) -> types.LogEntry:
    message = types.LogEntry(log_name=entry.log_name, insert_id=entry.insert_id, labels=entry.labels)
    raw = types.LogEntry.pb(message)
    if entry.more is not None:
        json_format.ParseDict(entry.more, raw)
    raw.severity = entry.severity
    raw.timestamp.FromNanoseconds(entry.timestamp_ns)
    raw.receive_timestamp.FromNanoseconds(entry.receive_timestamp_ns)
    raw.resource.type = entry.resource_type
    raw.resource.labels.update(entry.resource_labels)
    if entry.json_payload is not None:
        json_format.ParseDict(entry.json_payload, raw.json_payload)
    elif entry.text_payload is not None:
        raw.text_payload = entry.text_payload
    return message


def _write_token(end: tuple[int, int]) -> str:
    return base64.urlsafe_b64encode(json.dumps(end).encode()).decode()


def _read_token(token: str) -> tuple[int, int] | None:
    if not token:
        return None
    try:
        timestamp_ns, row_id = json.loads(base64.urlsafe_b64decode(urllib.parse.unquote(token)))
        return int(timestamp_ns), int(row_id)
    except (ValueError, TypeError):
        raise CallError("Invalid page token.") from None
