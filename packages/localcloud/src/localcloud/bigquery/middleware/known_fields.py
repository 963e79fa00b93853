"""Holds each call of BigQuery's REST API against `fields.json`: no field or parameter is dropped without a word.

In: requests. Out: the same requests, or 400 for what is unknown and 501 for what is refused, by its name. What a job
was asked for is told to who keeps it, with its labels and limits; and a `jobs.query` that comes again with its
`requestId` gets the answer that it got.
"""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from localcloud.bigquery.middleware.bodies import read_body, replay_body
from localcloud.bigquery.middleware.faults import STATUS, error_document, event_of
from localcloud.fields import Problem, read_fields
from localcloud.untyped import Untyped

FIELDS = read_fields(Path(__file__).parents[1] / "fields.json")
"""What becomes of each field and parameter."""
Remember = Callable[[str, Mapping[str, Any]], None]
"""Takes a request's verb and the configuration of the job that it asks for, {} for none."""
RESOURCES = {
    **{f"bigquery.datasets.{verb}": "Dataset" for verb in ("insert", "patch", "update")},
    **{f"bigquery.tables.{verb}": "Table" for verb in ("insert", "patch", "update")},
    "bigquery.jobs.insert": "Job",
    "bigquery.jobs.query": "QueryRequest",
    "bigquery.tabledata.insertAll": "TableDataInsertAllRequest",
}
_SCHEMAS: tuple[tuple[str, ...], ...] = (("schema",), ("configuration", "load", "schema"))
_QUERIES: tuple[tuple[str, ...], ...] = ((), ("configuration", "query"))
_DIALECT = re.compile(r"\s*#(standard|legacy)SQL\b", re.IGNORECASE)
_AGAIN_S = 15 * 60
_REMEMBERED = 1000
_ANSWERED = 200


def install(remember: Remember) -> None:
    """Put this before the REST application once it is made."""
    from bqemulator import server

    original = server.create_app

    def create_app(context: Untyped) -> Untyped:
        app = original(context)
        app.add_middleware(KnownFields, remember=remember)
        return app

    server.create_app = create_app


class KnownFields:
    """Refuses fields and parameters that the local cloud would drop (ASGI).

    Args:
        remember: Is told what each request asks for, before its application is.
    """

    def __init__(self, app: Untyped, remember: Remember, now: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._remember = remember
        self._now = now
        self._answers: OrderedDict[str, tuple[float, list[dict[str, Untyped]]]] = OrderedDict()

    async def __call__(self, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Serve a request."""
        event, _ = event_of(scope.get("method", ""), scope.get("path", ""))
        query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))
        if event not in FIELDS.parameters or "upload_id" in query:  # a piece of a file: its start was looked at
            await self._app(scope, receive, send)
            return
        document: dict[str, Untyped] = {}
        if event in RESOURCES:
            body = await read_body(receive)
            document, receive = read_document(body), replay_body(body, receive)
        problems = chain(parameter_problems(event, query), field_problems(event, document))
        refused = next(problems, None)
        if refused is not None:
            await _refuse(*refused)(scope, receive, send)
            return
        self._remember(scope["method"], _configuration(event, document))
        request_id = document.get("requestId") if event == "bigquery.jobs.query" else None
        await (
            self._answer_once(str(request_id), scope, receive, send) if request_id else self._app(scope, receive, send)
        )

    async def _answer_once(self, request_id: str, scope: dict[str, Untyped], receive: Untyped, send: Untyped) -> None:
        """Answer a request that may come again."""
        found = self._answers.get(request_id)
        if found is not None and self._now() - found[0] < _AGAIN_S:
            for message in found[1]:
                await send(message)
            return
        messages: list[dict[str, Untyped]] = []

        async def keep(message: dict[str, Untyped]) -> None:
            messages.append(message)
            await send(message)

        await self._app(scope, receive, keep)
        if messages and messages[0].get("status") == _ANSWERED:
            self._answers[request_id] = (self._now(), messages)
            while len(self._answers) > _REMEMBERED:
                self._answers.popitem(last=False)


def read_document(body: bytes) -> dict[str, Untyped]:
    """Return the JSON object that a body is, or that stands first in its parts; {} for none, which others refuse."""
    begin = body.find(b"{")
    try:
        document, _ = json.JSONDecoder().raw_decode(body[begin:].decode("utf-8", "ignore")) if begin >= 0 else ({}, 0)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def parameter_problems(event: str, query: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield code and message of each parameter that a method does not take."""
    for name, value in query.items():
        rule = FIELDS.parameter(event, name)
        if rule is None:
            yield "INVALID_ARGUMENT", f"Unknown parameter {name[:100]!r} of {event}. Leave it out."
        elif not rule.takes("" if value.lower() == "false" else value):
            yield "UNIMPLEMENTED", f"The parameter {name} of {event} is not offered: {rule.reason}. Leave it out."


def field_problems(event: str, document: Mapping[str, Untyped]) -> Iterator[tuple[str, str]]:
    """Yield code and message of each field that a method does not take."""
    resource = RESOURCES.get(event)
    if resource is None:
        return
    for problem in FIELDS.resources[resource].problems(document):
        yield _told(resource, problem)
    for way in _SCHEMAS:
        schema = _at(document, way)
        yield from _schema_problems(schema.get("fields"), ".".join([*way, "fields"]))
    for way in _QUERIES:
        yield from _dialect_problems(resource, way, _at(document, way))
        for each in _at(document, way).get("connectionProperties") or ():
            if isinstance(each, dict) and each.get("key") != "session_id":
                message = f"The connection property {str(each.get('key'))[:100]!r} is not offered. Expected session_id."
                yield "UNIMPLEMENTED", message
    sources = _at(document, ("configuration", "copy")).get("sourceTables") or []
    if len(sources) > 1:
        yield "UNIMPLEMENTED", "Job.configuration.copy.sourceTables is not offered: one table at a time. Copy each."


def _dialect_problems(resource: str, way: tuple[str, ...], query: Mapping[str, Untyped]) -> Iterator[tuple[str, str]]:
    """Yield code and message of a query in legacy SQL, which is that of a request that does not say otherwise."""
    text = query.get("query")
    if not isinstance(text, str):
        return
    written = _DIALECT.match(text)
    is_legacy = written[1].lower() == "legacy" if written else query.get("useLegacySql", True)
    if is_legacy:
        field = ".".join([resource, *way, "useLegacySql"])
        asked = "the default of" if "useLegacySql" not in query else "as asked for by"
        message = f"Legacy SQL, {asked} {field}, is not offered by the local cloud."
        yield "UNIMPLEMENTED", f'{message} Say "useLegacySql": false, or begin the statement with #standardSQL.'


def _schema_problems(fields: Untyped, at: str) -> Iterator[tuple[str, str]]:
    for field in fields if isinstance(fields, list) else ():
        if not isinstance(field, dict):
            continue
        for problem in FIELDS.resources["TableFieldSchema"].problems(field):
            yield _told(f"{at}[{str(field.get('name'))[:100]}]", problem)
        yield from _schema_problems(field.get("fields"), f"{at}[{str(field.get('name'))[:100]}].fields")


def _told(resource: str, problem: Problem) -> tuple[str, str]:
    if problem.rule is not None:
        reason = f"is not offered by the local cloud: {problem.rule.reason}"
        return "UNIMPLEMENTED", f"{resource}.{problem.path} {reason}. Leave it out."
    hint = f" Did you mean {problem.close!r}?" if problem.close else ""
    return "INVALID_ARGUMENT", f"Unknown field {problem.path[:100]!r} of {resource}.{hint}"


def _at(document: Mapping[str, Untyped], way: tuple[str, ...]) -> Mapping[str, Untyped]:
    """Return the object at a way; {} where there is none."""
    found: Untyped = document
    for name in way:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _configuration(event: str, document: Mapping[str, Untyped]) -> Mapping[str, Untyped]:
    """Return the configuration of the job that a request asks for."""
    if event == "bigquery.jobs.insert":
        return _at(document, ("configuration",))
    if event != "bigquery.jobs.query":
        return {}
    of_job = FIELDS.resources["Job"].rules
    query = {name: value for name, value in document.items() if f"configuration.query.{name}" in of_job}
    other = {name: value for name, value in document.items() if f"configuration.{name}" in of_job and name not in query}
    return {"query": query, **other}


def _refuse(code: str, message: str) -> Untyped:
    from starlette.responses import JSONResponse

    return JSONResponse(error_document(code, message), status_code=STATUS[code])
