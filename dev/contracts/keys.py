"""The tables of a model's YAML keys in the docs: key, values with their bounds, default, and the field's docstring."""

from __future__ import annotations

import functools
import json
import typing
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from contracts.docstrings import field_docstrings
from contracts.models import Annotation, annotations_of, document_models_in, is_union, limits_of, origin_of
from retraining.core.spec.cluster import MachineType
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.scoring import Table
from retraining.core.spec.section import ColumnName, Cron

TABLES: tuple[str, ...] = ("model", "data", "features", "training", "tuning", "evaluation", "report", "deployment")
TABLES += ("monitoring", "notify", "scoring")
_WITH_OTHERS = {"label": "features", "auxiliary_labels": "features"}
"""Keys of the file's first level that stand in another one's table; in `model` stand those without a table."""
_NAMED = (
    (ColumnName, "column"),
    (Cron, "cron expression"),
    (MachineType, "machine type"),
    (Table, "`[project.]dataset.table`"),
)
_PLAIN = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "`true` or `false`",
    date: "date",
    NoneType: "`null`",
}


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key, and the field behind it; a key that several kinds of an entry have is several.

    Attributes:
        name: Dotted, with `[]` behind a list.
        kind: Of the entry, where its section is one of several.
    """

    name: str
    annotation: Annotation
    field: FieldInfo
    docstring: str
    kind: str | None

    @property
    def section(self) -> str:
        """The keys that lead to it."""
        return self.name.rpartition(".")[0]

    @property
    def default(self) -> str:
        """As the page writes it; a section has none of its own."""
        if self.field.is_required():
            return "required"
        value = self.field.get_default(call_default_factory=True)
        if isinstance(value, BaseModel):
            return ""
        return f"`{value if isinstance(value, str) else json.dumps(value)}`"


def keys(model: type[BaseModel] = ModelSpec, prefix: str = "", kind: str | None = None) -> Iterator[Key]:
    """Yield every key below a section, in the order of its fields."""
    for name, annotation in annotations_of(model).items():
        field = model.model_fields[name]
        if field.exclude and field.is_required():  # of the code alone: a pattern's feature
            continue
        sections = list(document_models_in(annotation))
        docstring = field_docstrings(model).get(name) or _docstring_of(model, name, sections)
        key = f"{prefix}{field.alias or name}"
        yield Key(name=key, annotation=annotation, field=field, docstring=docstring, kind=kind)
        below = f"{key}{'[]' if field.annotation and origin_of(field.annotation) is tuple else ''}."
        for section in sections:
            yield from keys(section, below, _kind_of(section) if len(sections) > 1 else None)


def _docstring_of(model: type[BaseModel], name: str, sections: list[type[BaseModel]]) -> str:
    """Return what a key means whose field does not say it: what its section is, or the kind that it names."""
    if name == "kind":
        return f"`{_kind_of(model)}`: {_first_sentence(model)}"
    return str(sections[0].__doc__)


def _first_sentence(section: type[BaseModel]) -> str:
    text, _, _ = str(section.__doc__).partition(".\n")
    return text.partition(". ")[0]


def _kind_of(section: type[BaseModel]) -> str | None:
    kinds = typing.get_args(section.model_fields["kind"].annotation) if "kind" in section.model_fields else ()
    return kinds[0] if len(kinds) == 1 else None


@functools.cache
def render_tables() -> dict[str, str]:
    """Return the tables of the docs, by what they are of: a row for each key."""
    found = list(keys())
    by_name: dict[str, list[Key]] = {}
    kinds: dict[str, set[str | None]] = {}
    for key in found:
        by_name.setdefault(key.name, []).append(key)
        kinds.setdefault(key.section, set()).add(key.kind)
    rows: dict[str, list[str]] = {table: [] for table in TABLES}
    for name, same in by_name.items():
        rows[_table_of(name)].append(_row(name, same, kinds[same[0].section]))
    head = ["| key | values | default | what it is |", "|---|---|---|---|"]
    return {table: "\n".join([*head, *own]) for table, own in rows.items()}


def render_keys(table: str) -> str:
    """Return one of the tables."""
    return render_tables()[table]


def _table_of(name: str) -> str:
    first = name.partition(".")[0].removesuffix("[]")
    return _WITH_OTHERS.get(first, first if first in TABLES else "model")


def _row(name: str, same: list[Key], kinds: Collection[str | None]) -> str:
    texts: dict[str, list[str | None]] = {}
    for key in same:
        texts.setdefault(" ".join(key.docstring.split()).removesuffix("."), []).append(key.kind)
    are_told = name.endswith(".kind")
    what = "; ".join(f"{'' if are_told else _of_kinds(of, kinds)}{text}" for text, of in texts.items())
    values = ", ".join(dict.fromkeys(_values(key.annotation) for key in same))
    cells = [cell.replace("|", "\\|") for cell in (f"`{name}`", values, same[0].default, what)]
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")


def _of_kinds(of: Collection[str | None], kinds: Collection[str | None]) -> str:
    """Return which kinds of an entry a text is of; nothing where it is of all."""
    return "" if None in of or set(of) == {kind for kind in kinds if kind} else f"*{', '.join(map(str, of))}*: "


def _values(annotation: Annotation, limits: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Return which values a key takes, with their bounds."""
    named = next((text for named, text in _NAMED if named == annotation), None)
    origin, arguments = origin_of(annotation), typing.get_args(annotation)
    if named:
        return named
    if origin is Annotated:
        return _values(arguments[0], {**limits, **limits_of(arguments[1:])})
    if origin is Literal:
        return ", ".join(f"`{value}`" for value in arguments)
    if is_union(annotation):
        parts = sorted(arguments, key=lambda part: part is NoneType)
        return " or ".join(dict.fromkeys(_values(part, {} if part is NoneType else limits) for part in parts))
    if origin is tuple:
        inner = _values(arguments[0])
        several = f"{inner}s" if inner in ("section", "column") else inner
        return f"list of {several}{_length(limits)}" if arguments[-1] is Ellipsis else f"list of two: {several}"
    if origin is dict:
        return f"mapping of {_values(arguments[0])} to {_values(arguments[1])}{_length(limits)}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "section"
    return f"{_PLAIN[annotation]}{_bounds(limits)}"


def _bounds(limits: Mapping[str, Any]) -> str:
    """Return the bounds of a number, or of a text's length, as they follow what they are of."""
    if "max_length" in limits:
        return f", {_to(limits, 'min_length', 'max_length')} character{'' if limits['max_length'] == 1 else 's'}"
    above, below = ((f"{name} {limits[name]:,}" if name in limits else None) for name in ("above", "below"))
    last = f"to {limits['maximum']:,}" if above and "maximum" in limits else below
    text = " and ".join(filter(None, (above, last))) if below else " ".join(filter(None, (above, last)))
    text = text or _to(limits, "minimum", "maximum")
    return text and f", {text}"


def _length(limits: Mapping[str, Any]) -> str:
    text = _to(limits, "min_length", "max_length")
    return text and f" ({text})"


def _to(limits: Mapping[str, Any], least: str, most: str) -> str:
    low, high = limits.get(least), limits.get(most)
    if high is None:
        return "" if low is None else f"at least {low:,}"
    low = None if low == high else low
    return f"at most {high:,}" if low is None else f"{low:,} to {high:,}"
