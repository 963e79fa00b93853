"""What is wrong with a model's YAML file, in words: every message with its line, keys that exist, a suggestion."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from retraining.core.errors import SpecError, suggest
from retraining.core.program import command_line
from retraining.core.spec.yaml_file import Location, SpecText

Finding = tuple[str, str, str, str]
"""The four parts of a message: where, what was found, what was expected, the way out."""

_SHOWN_FINDINGS = 20
_SHOWN_CHARACTERS = 80
# Pydantic speaks of Python; who wrote the file speaks of YAML.
_EXPECTATIONS = {
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "dict_type": "a mapping",
    "tuple_type": "a list",
    "string_type": "text (put it in quotes)",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "finite_number": "a finite number",
}


def explain(error: ValidationError, text: SpecText, model: type[BaseModel]) -> SpecError:
    """Turn pydantic's findings into one message: a line per place, with line number and suggestion."""
    by_place: dict[Location, list[ErrorDetails]] = {}
    for item in error.errors():
        if item["type"] == "too_short" and item["input"]:
            continue  # pydantic counts what was right; what was not is an error of its own
        by_place.setdefault(_place(item, text.values), []).append(item)
    # A union's member that is a list may find fault with an item; that another kind of value was given says it all.
    inner = {place for place in by_place for length in range(len(place)) if place[:length] in by_place and length}
    findings = [_finding(place, items, text, model) for place, items in by_place.items() if place not in inner]
    return _together(text.where, findings)


def raise_findings(where: str, findings: Sequence[Finding]) -> None:
    """Raise all findings as one error, if there are any.

    Raises:
        SpecError: There are.
    """
    if findings:
        raise _together(where, findings)


def _together(where: str, findings: Sequence[Finding]) -> SpecError:
    if len(findings) == 1:
        return SpecError(*findings[0])
    shown = [f"  - {SpecError(*finding)}" for finding in findings[:_SHOWN_FINDINGS]]
    if len(findings) > len(shown):
        shown.append(f"  - and {len(findings) - len(shown)} more.")
    listed = "\n".join(shown)
    return SpecError(
        where, f"{len(findings)} errors:\n{listed}\n ", "none", f"Correct each and run {command_line('check-models')}"
    )


def _place(item: ErrorDetails, values: Mapping[str, Any]) -> Location:
    """Return the keys of the file that lead to an error.

    Pydantic also names the members of unions on the way: no such key.
    """
    value: Any = values
    place: list[str | int] = []
    for part in item["loc"]:
        inside = isinstance(value, Mapping) and part in value
        if inside or (isinstance(value, list | tuple) and isinstance(part, int) and part < len(value)):
            value = value[part]
            place.append(part)
    if item["type"] == "missing":
        place.append(item["loc"][-1])
    if item["type"].startswith("union_tag_"):
        place.append("kind")
    return tuple(place)


def _finding(place: Location, items: Sequence[ErrorDetails], text: SpecText, model: type[BaseModel]) -> Finding:
    """Return one message about a place; what several members of a union expect there is one expectation."""
    item, where, dotted = items[0], text.place(place), ".".join(map(str, place))
    match item["type"]:
        case "extra_forbidden":
            known, key = _known_keys(model, item["loc"][:-1]), str(place[-1])
            inside = f" in {'.'.join(map(str, place[:-1]))}" if place[:-1] else ""
            return where, f"unknown key {shorten(key)}{inside}", f"one of: {', '.join(known)}", suggest(key, known)
        case "missing":
            return where, f"{dotted} is missing", "it to be there", "Add it; include/models holds an example"
        case "union_tag_invalid" | "union_tag_not_found":
            kinds = _kinds(_annotation(model, item["loc"]))
            given = item.get("ctx", {}).get("tag")
            found = f"{dotted} is missing" if given is None else f"{dotted} is {shorten(given)}"
            return where, found, f"one of: {', '.join(kinds)}", suggest(str(given), kinds) if given else "Add it"
        case "value_error":
            message = item["msg"].removeprefix("Value error, ")
            return where, f"{dotted}: {message}" if dotted else message, "", ""
    allowed = re.findall(r"'([^']*)'", item["ctx"]["expected"]) if item["type"] == "literal_error" else []
    hint = suggest(str(item["input"]), allowed) if isinstance(item["input"], str) else ""
    expected = " or ".join(dict.fromkeys(map(_expectation, items)))
    return where, f"{dotted or 'the file'} is {shorten(item['input'])}", expected, hint


def _expectation(item: ErrorDetails) -> str:
    message = _EXPECTATIONS.get(item["type"], item["msg"])
    for prefix in ("Input should be ", "String should "):
        message = message.removeprefix(prefix)
    return message


def shorten(value: object) -> str:
    """Return a value for a message, cut."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of more digits than Python writes
        text = "a huge number"
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _known_keys(model: type[BaseModel], location: Location) -> list[str]:
    """Return the keys of the section at a pydantic error location (which names the variant of a union as a step)."""
    section = _section(_annotation(model, location))
    return list(_fields(section)) if section else []


def _fields(section: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return a section's fields as the file calls them."""
    return {field.alias or name: field for name, field in section.model_fields.items()}


def _annotation(model: type[BaseModel], location: Location) -> object:
    annotation: object = model
    for part in location:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel):
            if isinstance(part, str) and part in _fields(annotation):
                annotation = _fields(annotation)[part].annotation
            continue
        annotation = _variant(annotation, part)
    return annotation


def _kinds(annotation: object) -> list[str]:
    """Return the values of `kind` that tell the members of a union apart."""
    tags = [section.model_fields["kind"] for section in _sections(annotation) if "kind" in section.model_fields]
    return [kind for tag in tags for kind in get_args(tag.annotation)]


def _variant(annotation: object, part: str | int) -> object:
    """Step into a container, or pick the member of a tagged union."""
    for candidate in _sections(annotation):
        kind = candidate.model_fields.get("kind")
        if kind is not None and part in get_args(kind.annotation):
            return candidate
    if isinstance(part, str):
        section = _section(annotation)
        if section is not None and part in _fields(section):
            return _fields(section)[part].annotation
    return annotation


def _section(annotation: object) -> type[BaseModel] | None:
    return next(iter(_sections(annotation)), None)


def _sections(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _sections(argument)]
