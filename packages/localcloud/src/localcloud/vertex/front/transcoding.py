"""REST to requests and back (https://google.aip.dev/127): path templates, query parameters, proto JSON.

Comes in: verb, path, query, body. Goes out: the method and its request message; for the answer, JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from google.protobuf import json_format

from localcloud.vertex.wire.errors import InvalidArgument, NotFound
from localcloud.vertex.wire.fields import check_parameters, is_parameter
from localcloud.vertex.wire.methods import Message, Method, Route, raw

_HTTP_BODY = "google.api.HttpBody"


class Match(NamedTuple):
    """A route that fits an address, with the fields that stand in the path."""

    method: Method
    route: Route
    fields: dict[str, str]


class Router:
    """Finds the method of a REST address."""

    def __init__(self, methods: Iterable[Method]) -> None:
        self._routes: dict[tuple[str, int], list[tuple[re.Pattern[str], list[str], Method, Route]]] = {}
        for method in methods:
            for route in method.routes:
                pattern, fields = _compile(route.template)
                self._routes.setdefault((route.verb, _depth(route.template)), []).append(
                    (pattern, fields, method, route)
                )

    def find_method(self, verb: str, path: str) -> Match:
        """Return the method of an address.

        Raises:
            NotFound: No method has it.
        """
        for pattern, fields, method, route in self._routes.get((verb, path.count("/")), ()):
            match = pattern.fullmatch(path)
            if match is not None:
                return Match(method, route, dict(zip(fields, match.groups(), strict=True)))
        raise NotFound(
            f"The requested URL {path} was not found for {verb}. Expected an address of the Vertex AI v1 API."
        )


def read_request(match: Match, query: Mapping[str, list[str]], body: bytes, content_type: str) -> Message:
    """Return the request message of a REST call.

    Raises:
        InvalidArgument: Bad JSON, an unknown field, a value of the wrong type.
        Unimplemented: A parameter that is not offered.
    """
    request = match.method.request_type()
    inner = raw(request)
    if _takes_raw_body(inner, match.route):
        inner.http_body.data, inner.http_body.content_type = body, content_type
    elif body:
        _read_body(inner, match.route, body)
    check_parameters(query)
    for name, values in query.items():
        if not is_parameter(name):
            _set_parameter(inner, name, values)
    for path, value in match.fields.items():
        target = inner
        *outer, last = path.split(".")
        for part in outer:
            target = getattr(target, part)
        setattr(target, last, value)
    return request


def write_response(response: Message, query: Mapping[str, list[str]]) -> tuple[bytes, str]:
    """Return a response in JSON (or as it is, when it is an HttpBody), and its content type."""
    inner = raw(response)
    if inner.DESCRIPTOR.full_name == _HTTP_BODY:
        return bytes(inner.data), inner.content_type or "application/octet-stream"
    options = ";".join(query.get("$alt", []) + query.get("alt", []))
    _name_special_numbers(inner)
    document = json_format.MessageToDict(inner, use_integers_for_enums="enum-encoding=int" in options)
    return json.dumps(document, indent=2).encode() + b"\n", "application/json; charset=UTF-8"


def _depth(template: str) -> int:
    return re.sub(r"{[\w.]+=([^}]*)}", r"\1", template).count("/")


def _compile(template: str) -> tuple[re.Pattern[str], list[str]]:
    fields: list[str] = []
    pattern, position = "", 0
    for match in re.finditer(r"{(?P<field>[\w.]+)=(?P<form>[^}]*)}", template):
        fields.append(match["field"])
        form = "/".join("[^/:]+" if part == "*" else re.escape(part) for part in match["form"].split("/"))
        pattern += re.escape(template[position : match.start()]) + f"({form})"
        position = match.end()
    return re.compile(pattern + re.escape(template[position:])), fields


def _takes_raw_body(inner: Message, route: Route) -> bool:
    field = inner.DESCRIPTOR.fields_by_name.get("http_body")
    return route.body == "*" and field is not None and field.message_type.full_name == _HTTP_BODY


def _read_body(inner: Message, route: Route, body: bytes) -> None:
    try:
        document = json.loads(body)
    except ValueError as error:
        raise InvalidArgument(f"Invalid JSON payload received. {error}.") from error
    if not isinstance(document, dict):
        raise InvalidArgument(f"Invalid JSON payload received. Expected an object, found {type(document).__name__}.")
    if route.body in (None, "*"):
        _parse(document, inner, "")
    else:
        _parse(document, getattr(inner, route.body), route.body)
        getattr(inner, route.body).SetInParent()


def _parse(document: dict[str, Any], message: Message, where: str) -> None:
    try:
        json_format.ParseDict(document, message)
    except json_format.ParseError as error:
        raise _bad_json(str(error), where) from error


def _bad_json(text: str, where: str) -> InvalidArgument:
    unknown = re.search(r'has no field named "([^"]+)" at "[^".]+((?:\.[^"]*)?)"', text)
    if unknown is None:
        return InvalidArgument(f"Invalid value{f' at {where!r}' if where else ''}: {text}", field=where or None)
    inside = re.sub(r"(?<=[a-z0-9])([A-Z])", lambda m: "_" + m[1].lower(), unknown[2])
    place = (where + inside).strip(".")
    at = f" at '{place}'" if place else ""
    return InvalidArgument(
        f'Invalid JSON payload received. Unknown name "{unknown[1]}"{at}: Cannot find field.', field=place
    )


def _set_parameter(inner: Message, name: str, values: list[str]) -> None:
    target, descriptor = inner, inner.DESCRIPTOR
    *outer, last = name.split(".")
    for part in outer:
        field = _field(descriptor, part, name)
        target, descriptor = getattr(target, field.name), field.message_type
        if descriptor is None:
            raise _unknown_parameter(name)
    field = _field(descriptor, last, name)
    value: Any = values if field.is_repeated else values[-1]
    if field.cpp_type == field.CPPTYPE_BOOL:
        value = {"true": True, "1": True, "false": False, "0": False}.get(values[-1].lower(), values[-1])
    elif field.message_type is not None and field.message_type.full_name == "google.protobuf.FieldMask":
        value = re.sub(r"_([a-z0-9])", lambda m: m[1].upper(), values[-1])
    _parse({field.json_name: value}, target, name)


def _field(descriptor: Message, part: str, name: str) -> Message:
    for field in descriptor.fields:
        if part in (field.name, field.json_name):
            return field
    raise _unknown_parameter(name)


def _unknown_parameter(name: str) -> InvalidArgument:
    return InvalidArgument(
        f'Invalid JSON payload received. Unknown name "{name}": Cannot bind query parameter.'
        f" Field '{name}' could not be found in request message.",
        field=name,
    )


def _name_special_numbers(inner: Message) -> None:
    """Turn NaN inside a `Value`, which proto JSON refuses, into the string that proto JSON has for it elsewhere."""
    if inner.DESCRIPTOR.full_name == "google.protobuf.Value" and inner.WhichOneof("kind") == "number_value":
        number = inner.number_value
        if not math.isfinite(number):
            inner.string_value = "NaN" if math.isnan(number) else ("Infinity" if number > 0 else "-Infinity")
        return
    for field, value in inner.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    _name_special_numbers(value[key])
        elif field.is_repeated:
            for child in value:
                _name_special_numbers(child)
        else:
            _name_special_numbers(value)
