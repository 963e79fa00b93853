"""Reading a model's YAML file: safe, duplicate keys refused, every message with its line and a suggestion."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from retraining.core.errors import SpecError

Location = tuple[str | int, ...]
Finding = tuple[str, str, str, str]
"""The four parts of a message: where, what was found, what was expected, the way out."""

# libyaml's loader where PyYAML has it: 15 times faster, and every DAG file reads every spec at each parse.
_SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class SpecText:
    """A parsed YAML file that still knows on which line each key stands."""

    def __init__(self, where: str, values: dict[str, Any], lines: Mapping[Location, int]) -> None:
        self.where = where
        self.values = values
        self._lines = lines

    def line(self, location: Location) -> int | None:
        """The line (from 1) of a key, or of the nearest one around it."""
        while location and location not in self._lines:
            location = location[:-1]
        return self._lines.get(location)


def read_spec_text(text: str, where: str) -> SpecText:
    """Parse YAML without constructing anything but plain values.

    Raises:
        SpecError: It is not YAML, has a key twice, or is not a mapping.
    """
    try:
        node = yaml.compose(text, Loader=_SAFE_LOADER)
        lines: dict[Location, int] = {}
        if node is not None:
            _walk(node, (), lines, where)
        values = yaml.load(text, Loader=_SAFE_LOADER)  # noqa: S506 - safe, in C or in Python
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{where}, line {mark.line + 1}" if mark else where
        problem = getattr(error, "problem", None) or str(error)
        raise SpecError(place, f"not YAML: {problem}", "", "Look at the indentation and the quotes there") from error
    if not isinstance(values, dict):
        raise SpecError(where, f"a {type(values).__name__}", "a mapping with the keys name, data, features, …")
    return SpecText(where, values, lines)


def read_spec_file(path: Path) -> SpecText:
    """Read and parse a file.

    Raises:
        SpecError: It cannot be read, or `read_spec_text` refuses it.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(path.name, f"cannot be read ({error})", "a UTF-8 text file") from error
    return read_spec_text(text, path.name)


def explain(error: ValidationError, text: SpecText, model: type[BaseModel]) -> SpecError:
    """Turn pydantic's findings into one message: a line per finding, with line number and suggestion."""
    return _together(text.where, [_finding(item, text, model) for item in error.errors()])


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
    listed = "\n".join(f"  - {SpecError(*finding)}" for finding in findings)
    return SpecError(where, f"{len(findings)} errors:\n{listed}\n ", "", "Correct each and run make check-models")


def suggest(word: str, known: Sequence[str]) -> str:
    """`Did you mean 'x'?` when one of the known words is near, else nothing."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"Did you mean {near[0]!r}?" if near else ""


def _walk(node: yaml.Node, location: Location, lines: dict[Location, int], where: str) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if key in seen:
                raise SpecError(
                    f"{where}, line {line}", f"key {key!r} again", f"it once (first on line {seen[key]})", "Remove one"
                )
            seen[key] = line
            lines[(*location, key)] = line
            _walk(value_node, (*location, key), lines, where)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*location, index)] = item.start_mark.line + 1
            _walk(item, (*location, index), lines, where)


def _finding(item: ErrorDetails, text: SpecText, model: type[BaseModel]) -> Finding:
    location = tuple(part for part in item["loc"] if part not in ("numeric", "categorical"))
    line = text.line(location)
    where = f"{text.where}, line {line}" if line else text.where
    dotted = ".".join(map(str, location))
    if item["type"] == "extra_forbidden":
        known = _known_keys(model, item["loc"][:-1])
        key = str(location[-1])
        inside = f" in {'.'.join(map(str, location[:-1]))}" if location[:-1] else ""
        return where, f"unknown key {key!r}{inside}", f"one of: {', '.join(known)}", suggest(key, known)
    if item["type"] == "missing":
        return where, f"{dotted} is missing", "it to be there", "Add it; include/models holds an example"
    message = item["msg"].removeprefix("Value error, ")
    if item["type"] == "value_error":
        return where, f"{dotted}: {message}" if dotted else message, "", ""
    return where, f"{dotted} is {item['input']!r}", _expectation(message), ""


def _expectation(message: str) -> str:
    for prefix in ("Input should be ", "String should "):
        if message.startswith(prefix):
            return message.removeprefix(prefix)
    return message


def _known_keys(model: type[BaseModel], location: Location) -> list[str]:
    """Keys of the section at a pydantic error location (which names the variant of a union as a step)."""
    found: object = model
    for part in location:
        if isinstance(found, type) and issubclass(found, BaseModel):
            if isinstance(part, str) and part in found.model_fields:
                found = found.model_fields[part].annotation
            continue
        found = _variant(found, part)
    found = _section(found)
    return list(found.model_fields) if found else []


def _variant(annotation: object, part: str | int) -> object:
    """Step into a container, or pick the member of a tagged union."""
    for candidate in _sections(annotation):
        kind = candidate.model_fields.get("kind")
        if kind is not None and part in get_args(kind.annotation):
            return candidate
    if isinstance(part, str):
        section = _section(annotation)
        if section is not None and part in section.model_fields:
            return section.model_fields[part].annotation
    return annotation


def _section(annotation: object) -> type[BaseModel] | None:
    return next(iter(_sections(annotation)), None)


def _sections(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [section for argument in get_args(annotation) for section in _sections(argument)]
