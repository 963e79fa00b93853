"""Reading a YAML file that somebody wrote by hand: plain values only, bounded in size, depth and numbers.

In: text. Out: mappings, lists, texts, numbers, truth values and null, and the line of each key. What else YAML has
(tags, anchors, merge keys, several documents) is refused by name, and dates are text: a file that says something else
than it seems to say is worse than one that is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from retraining.core.errors import SpecError
from retraining.core.untyped import YamlValues

Location = tuple[str | int, ...]

MAX_BYTES = 256_000
MAX_DEPTH = 20
MAX_NUMBER = 2**63
"""Whole numbers are below it: BigQuery's INT64 holds no other."""

# libyaml's loader where PyYAML has it: 15 times faster, and every DAG file reads every spec at each parse.
_SAFE_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PLAIN = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float")}
NO_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")
"""What no text of such a file has."""


class _PlainLoader(_SAFE_LOADER):  # type: ignore[misc]  # one of two classes, known when it runs
    """Takes nothing but null, truth values and numbers for more than text: no dates, no merge keys."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag in _PLAIN]
        for first, resolvers in _SAFE_LOADER.yaml_implicit_resolvers.items()
    }


class SpecText:
    """A parsed YAML file that still knows on which line each key stands.

    Args:
        where: What messages call it.
        values: What it says.
        lines: Of each key.
        places: Of keys that another file says: what messages call that place.
    """

    def __init__(
        self,
        where: str,
        values: YamlValues,
        lines: Mapping[Location, int],
        places: Mapping[Location, str] | None = None,
    ) -> None:
        self.where = where
        self.values = values
        self._lines = lines
        self._places = places or {}

    def with_values(self, where: str, values: YamlValues, places: Mapping[Location, str]) -> SpecText:
        """Return the file with what another one says in place of some of its keys."""
        return SpecText(where, values, self._lines, {**self._places, **places})

    def place(self, location: Location) -> str:
        """Return the file and the line of a key, of whichever file says it."""
        for length in range(len(location), 0, -1):
            if location[:length] in self._places:
                return self._places[location[:length]]
        line = self.line(location)
        return f"{self.where}, line {line}" if line else self.where

    def line(self, location: Location) -> int | None:
        """Return the line (from 1) of a key, or of the nearest one around it."""
        while location and location not in self._lines:
            location = location[:-1]
        return self._lines.get(location)


def plain_id(path: Path) -> str:
    """Return what DAGs of a file are called after: its name, or where no DAG can be called so, something like it."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem)[:200]


def read_spec_file(path: Path) -> SpecText:
    """Read and parse a file.

    Raises:
        SpecError: It cannot be read, or `read_spec_text` refuses it.
    """
    return read_spec_text(read_text(path), path.name)


def read_text(path: Path) -> str:
    """Return the text of a file, and one byte more at most than `read_spec_text` takes.

    Raises:
        SpecError: It cannot be read.
    """
    try:
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(path.name, f"cannot be read ({error})", "a UTF-8 text file") from error


def read_spec_text(text: str, where: str) -> SpecText:
    """Parse YAML without constructing anything but plain values.

    Raises:
        SpecError: It is not YAML, is not plain (see above), has a key twice, or is not a mapping.
    """
    if len(text.encode(errors="replace")) > MAX_BYTES:
        raise SpecError(where, f"more than {MAX_BYTES // 1000} kB", "a file a person can read", "Shorten it")
    lines: dict[Location, int] = {}
    loader = _PlainLoader("")
    try:
        _require_plain(text, where)
        loader = _PlainLoader(text)
        node = loader.get_single_node()
        if node is not None:
            _walk(node, (), lines, where)
        values = None if node is None else loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error)
        raise SpecError(
            _place(where, mark), f"not YAML: {problem}", "YAML", "Look at the indentation and the quotes there"
        ) from error
    except ValueError as error:  # PyYAML's constructors let it out: 5,000 digits, 1:99999…
        raise SpecError(where, f"a number that is none ({error})", "numbers below 2^63", "Correct it") from error
    finally:
        loader.dispose()
    if not isinstance(values, dict):
        raise SpecError(where, f"a {type(values).__name__}", "a mapping with the keys name, data, features, …")
    spec_text = SpecText(where, values, lines)
    for location, value in _leaves(values, ()):
        _require_bounded(value, location, spec_text)
    return spec_text


def _require_plain(text: str, where: str) -> None:
    """Look at the stream of events, which needs no recursion, before anything is built from it."""
    depth = 0
    for event in yaml.parse(text, Loader=_PlainLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        message = _anomaly(event, depth)
        if message:
            raise SpecError(_place(where, event.start_mark), *message)


def _anomaly(event: yaml.Event, depth: int) -> tuple[str, str, str] | None:
    """Return what is not plain about an event, what would be, and the way out."""
    if depth > MAX_DEPTH:
        return f"more than {MAX_DEPTH} levels", "a spec's few levels", "Look at the brackets and the indentation"
    if isinstance(event, yaml.AliasEvent):
        return f"the alias *{event.anchor}", "values as they stand", "Write the value again there"
    anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
    if anchor:
        return f"the anchor &{anchor}", "values without one", "Remove it; put text that begins with & in quotes"
    if tag:
        return f"the tag {_shortened(tag)}", "plain values", "Remove it; put text that begins with ! in quotes"
    if isinstance(event, yaml.ScalarEvent) and (odd := NO_TEXT.search(event.value)):
        return f"the character U+{ord(odd.group()):04X}", "text that can be written down", "Remove it"
    return None


def _walk(node: yaml.Node, location: Location, lines: dict[Location, int], where: str) -> None:
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            key, line = _key(key_node, where), key_node.start_mark.line + 1
            if key in seen:
                raise SpecError(
                    f"{where}, line {line}",
                    f"key {_shortened(key)!r} again",
                    f"it once (first on line {seen[key]})",
                    "Remove one",
                )
            seen[key] = line
            lines[(*location, key)] = line
            _walk(value_node, (*location, key), lines, where)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*location, index)] = item.start_mark.line + 1
            _walk(item, (*location, index), lines, where)


def _key(node: yaml.Node, where: str) -> str:
    if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:str":
        return str(node.value)
    found = _shortened(str(node.value)) if isinstance(node, yaml.ScalarNode) else "a list or a mapping"
    expected = "text; quotes make text of anything"
    raise SpecError(_place(where, node.start_mark), f"a key that is no text: {found}", expected, "Correct the key")


def _leaves(value: object, location: Location) -> Iterator[tuple[Location, object]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _leaves(item, (*location, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*location, index))
    else:
        yield location, value


def _require_bounded(value: object, location: Location, text: SpecText) -> None:
    whole = isinstance(value, int) and abs(value) >= MAX_NUMBER
    if whole or (isinstance(value, float) and not math.isfinite(value)):
        line = text.line(location)
        found = "a whole number of 2^63 or more" if whole else f"{value}, which is no number"
        raise SpecError(
            f"{text.where}, line {line}", f"{'.'.join(map(str, location))} is {found}", "a number", "Correct it"
        )


def _place(where: str, mark: Any) -> str:  # noqa: ANN401 - PyYAML has no types
    return f"{where}, line {mark.line + 1}" if mark else where


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
