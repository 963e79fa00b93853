"""One way to read a JSON value as an annotated type: its types and limits are all that there is to know.

`Limits` and `Named` stand in the documents' annotations: what a field's type cannot say, and another name in JSON.

Comes in: a dataclass of `trainer.contract.documents`, and what `json.loads` gave. Goes out: the dataclass, or `Wrong`
with the path of the field, what was found there and what was expected. The messages are those of the Airflow side.
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import json
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a value may be, beyond its type.

    Attributes:
        minimum: The least number.
        above: All numbers are greater.
        maximum: The greatest number.
        below: All numbers are less.
        pattern: Of a whole text.
        min_length: The fewest characters of a text, or entries of a list.
        max_length: The most of them.
        one_of: All texts that will do; empty: any.
        distinct: Whether no entry of a list stands twice.
        required: Keys that a mapping has.
    """

    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None
    below: float | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    one_of: tuple[str, ...] = ()
    distinct: bool = False
    required: tuple[str, ...] = ()


@dataclass(frozen=True)
class Named:
    """The field's name in JSON."""

    name: str


_SHOWN_CHARACTERS = 120
_Class = TypeVar("_Class")
Json = Any
"""A JSON value, or what is made of one: which, only the annotation says, when the program runs."""
Read = Callable[[Json], Json]
Annotation = Any
"""A type as it stands after a field's name."""


class Wrong(ValueError):
    """A value is not what the contract says.

    Args:
        found: What was found, as a sentence without its subject.
        expected: What would have been right.
    """

    def __init__(self, found: str, expected: str) -> None:
        super().__init__(found, expected)
        self.found, self.expected = found, expected
        self.path = ""

    def inside(self, step: str) -> Wrong:
        """Return this, seen from one level up."""
        self.path = step + (f".{self.path}" if self.path and not self.path.startswith("[") else self.path)
        return self


def read_as(target: type[_Class], value: object) -> _Class:
    """Return a JSON value as a dataclass.

    Raises:
        Wrong: It has another form, a key too many or too few, or a value beyond its limits.
    """
    document: _Class = _reader(typing.cast(Annotation, target))(value)
    return document


@functools.cache
def json_names(target: type) -> Mapping[str, str]:
    """Return the names in JSON of a dataclass's fields, by the fields' own names."""
    hints = typing.get_type_hints(target, include_extras=True)
    return {
        field.name: next((note.name for note in _notes(hints[field.name], Named)), field.name)
        for field in dataclasses.fields(target)
    }


@functools.cache
def _reader(annotation: Annotation) -> Read:
    origin, arguments = _origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        limits: list[Limits] = list(_notes(annotation, Limits))
        return _limited(_reader(arguments[0]), limits[0]) if limits else _reader(arguments[0])
    if origin is Literal:
        return _one_of(arguments)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is tuple:
        return _list(_reader(arguments[0]))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(_reader(arguments[0]), _reader(arguments[1]))
    if dataclasses.is_dataclass(annotation):
        return _class(annotation)  # type: ignore[arg-type]  # an annotation is a type
    return _plain(annotation)


def _origin(annotation: Annotation) -> Annotation:
    return typing.get_origin(annotation)


def _notes(annotation: Annotation, kind: type[_Class]) -> Iterator[_Class]:
    notes = typing.get_args(annotation)[1:] if _origin(annotation) is Annotated else ()
    return (note for note in notes if isinstance(note, kind))


_PLAIN: dict[type, tuple[tuple[type, ...], str]] = {
    str: ((str,), "text"),
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    type(None): ((type(None),), "null"),
}


def _plain(annotation: Annotation) -> Read:
    taken, expected = _PLAIN[annotation]

    def read_value(value: Json) -> Json:
        if not isinstance(value, taken) or (isinstance(value, bool) and bool not in taken):
            raise Wrong(f"is {shorten(value)}", expected)
        return float(value) if annotation is float else value  # type: ignore[arg-type]  # see `taken`

    return read_value


def _one_of(choices: tuple[object, ...]) -> Read:
    def read_value(value: Json) -> Json:
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise Wrong(f"is {shorten(value)}", f"one of: {', '.join(map(json.dumps, choices))}")
        return value

    return read_value


def _list(item: Read) -> Read:
    def read_value(value: Json) -> Json:
        if not isinstance(value, list):
            raise Wrong(f"is {shorten(value)}", "a list")
        return tuple(_at(f"[{index}]", item, part) for index, part in enumerate(value))

    return read_value


def _mapping(key: Read, item: Read) -> Read:
    def read_value(value: Json) -> Json:
        if not isinstance(value, dict):
            raise Wrong(f"is {shorten(value)}", "an object")
        return {_at(name, key, name): _at(name, item, part) for name, part in value.items()}

    return read_value


def _class(target: type) -> Read:
    hints = typing.get_type_hints(target, include_extras=True)
    named = {name: (field, _reader(hints[field])) for field, name in json_names(target).items()}
    missing = (dataclasses.MISSING, dataclasses.MISSING)
    needed = [
        json_names(target)[field.name]
        for field in dataclasses.fields(target)
        if (field.default, field.default_factory) == missing
    ]

    def read_value(value: Json) -> Json:
        if not isinstance(value, dict):
            raise Wrong(f"is {shorten(value)}", "an object")
        for name in value:
            if name not in named:
                close = difflib.get_close_matches(name, named, n=1)
                hint = f". Did you mean {close[0]!r}?" if close else ""
                raise Wrong(
                    f"has the unknown key {repr(name)[:_SHOWN_CHARACTERS]}", f"one of: {', '.join(named)}{hint}"
                )
        _require_keys(value, needed)
        return target(**{named[name][0]: _at(name, named[name][1], item) for name, item in value.items()})

    return read_value


def _require_keys(value: Mapping[str, object], needed: typing.Iterable[str]) -> None:
    for name in needed:
        if name not in value:
            raise Wrong(f"has no key {name!r}", f"all of: {', '.join(needed)}")


def _union(options: tuple[Annotation, ...]) -> Read:
    tags = {kind: option for option in options for kind in _tags(option)}
    if tags:
        return _tagged({kind: _reader(option) for kind, option in tags.items()})
    readers = [_reader(option) for option in options]

    def read_value(value: Json) -> Json:
        failures: list[Wrong] = []
        for option in readers:
            try:
                return option(value)
            except Wrong as wrong:
                failures.append(wrong)
        raise _nearest(failures)

    return read_value


def _tags(option: Annotation) -> tuple[str, ...]:
    if not dataclasses.is_dataclass(option):
        return ()
    kind = typing.get_type_hints(option).get("kind")
    return typing.get_args(kind) if _origin(kind) is Literal else ()


def _tagged(by_kind: Mapping[str, Read]) -> Read:
    choose = _one_of(tuple(by_kind))

    def read_value(value: Json) -> Json:
        if not isinstance(value, dict):
            raise Wrong(f"is {shorten(value)}", "an object")
        _require_keys(value, ["kind"])
        return by_kind[_at("kind", choose, value["kind"])](value)

    return read_value


def _nearest(failures: list[Wrong]) -> Wrong:
    """Return what is wrong inside a value of the right form, or else all forms that there are."""
    inner = [wrong for wrong in failures if wrong.path or not wrong.found.startswith("is ")]
    if inner:
        return inner[0]
    expected = [wrong.expected for wrong in failures if wrong.expected != "null"]
    return Wrong(failures[0].found, " or ".join(dict.fromkeys(expected)))


def _limited(inner: Read, limits: Limits) -> Read:
    def read_value(value: Json) -> Json:
        built = inner(value)
        if expected := broken_limit(limits, value):
            raise Wrong(f"is {shorten(value)}", expected)
        if limits.required:
            _require_keys(value, limits.required)
        return built

    return read_value


def broken_limit(limits: Limits, value: Json) -> str | None:
    """Return the limit that a value of the right type is beyond, as text; None when it keeps to all."""
    unit = "characters" if isinstance(value, str) else "entries"
    rules = (
        (limits.minimum, lambda limit: value >= limit, "at least {}"),
        (limits.above, lambda limit: value > limit, "above {}"),
        (limits.maximum, lambda limit: value <= limit, "at most {}"),
        (limits.below, lambda limit: value < limit, "below {}"),
        (limits.min_length, lambda limit: len(value) >= limit, f"at least {{}} {unit}"),
        (limits.max_length, lambda limit: len(value) <= limit, f"at most {{}} {unit}"),
        (limits.pattern, lambda limit: re.fullmatch(limit, value), "text like {}"),
        (", ".join(limits.one_of) or None, lambda _: value in limits.one_of, "one of: {}"),
        (limits.distinct or None, lambda _: len(set(value)) == len(value), "each entry once"),
    )
    return next(
        (message.format(limit) for limit, holds, message in rules if limit is not None and not holds(limit)), None
    )


def _at(step: str, read_value: Read, value: Json) -> Json:
    try:
        return read_value(value)
    except Wrong as wrong:
        raise wrong.inside(step) from None


def shorten(value: object) -> str:
    """Return a value for a message, cut."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else text[: _SHOWN_CHARACTERS - 1] + "…"
