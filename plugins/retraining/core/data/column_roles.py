"""Which columns a model's roles take: by the table of column types, and what the SQL here adds to it.

In: a spec and the columns of its query. Out: the columns that could not be read, before anything is paid for, and how
SQL reads the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from retraining.core.column_types import (
    COLUMN_TYPES,
    EVENT_TIME_TYPES,
    KEY_TYPES,
    READ_BY_TENSORFLOW_IO,
    READ_FROM_TABLE,
    ROLE_TYPES,
    WITHOUT_CSV,
)
from retraining.core.documents.snapshot import Column
from retraining.core.errors import suggest
from retraining.core.spec.features import Feature
from retraining.core.spec.model import ModelSpec

_CAST = "cast it in the query"


@dataclass(frozen=True, kw_only=True)
class Mismatch:
    """A column that is missing or that a role cannot take: what is, what should be, a sentence with the way out."""

    column: str
    found: str
    expected: str
    message: str


@dataclass(frozen=True, kw_only=True)
class _Role:
    """What a spec wants of a column: `part` names it in sentences, `is_list` a REPEATED column."""

    part: str
    types: tuple[str, ...]
    is_list: bool = False
    way_out: str = "cast it in the query, or change its kind in the spec"
    of_array: str = "unnest it or take one element in the query"


def role_of(feature: Feature) -> str:
    """Return the role of a feature's column: its kind, of a sequence that of its elements."""
    if feature.kind == "image" and feature.objects:
        return "image_address"
    return feature.of if feature.kind == "sequence" else feature.kind


def types_of(role: str) -> tuple[str, ...]:
    """Return the column types of a feature's role, of a label's kind, or of a slice."""
    return ROLE_TYPES[role]


def reading(role: str, type_: str) -> str:
    """Return how SQL reads a column in a role.

    `number`, `truth`, `text`, `bytes`, `address`, `time`; `none`: the role does not take the type.
    """
    if type_ not in types_of(role):
        return "none"
    if role in ("categorical", "slice"):
        return "text"
    if role == "time":
        return "time"
    if role == "image_address":
        return "address"
    return COLUMN_TYPES[type_].reading


def missing_columns(spec: ModelSpec, columns: Sequence[Column]) -> list[Mismatch]:
    """Return the columns the spec names and the query does not give."""
    known = [column.name for column in columns]
    roles = [
        *((name, f"feature {name!r}") for name in spec.feature_names),
        (spec.label.name, "the label"),
        *((label.name, "the auxiliary label") for label in spec.auxiliary_labels),
        (spec.data.key, "the key"),
        *([(spec.data.event_time, "the event time")] if spec.data.event_time else []),
        *([(spec.data.weight, "the weight")] if spec.data.weight else []),
        *((column, f"the baseline {name!r}") for name, column in spec.evaluation.baselines.items()),
        *([(spec.evaluation.group, "the group")] if spec.evaluation.group else []),
    ]
    return [
        Mismatch(
            column=name,
            found=f"no column {name!r}",
            expected=f"one of: {', '.join(known)}",
            message=f"{role} is not among the query's columns. {suggest(name, known)}".strip(),
        )
        for name, role in roles
        if name not in known
    ]


def mismatches(spec: ModelSpec, columns: Sequence[Column]) -> Iterator[Mismatch]:
    """Yield the columns that a role of the spec, or its `training.input`, cannot take.

    The first role of each column.
    """
    by_name = {column.name: column for column in columns}
    for name, role in _roles(spec):
        column = by_name.get(name)
        if column and (column.type not in role.types or (column.mode == "REPEATED") != role.is_list):
            yield _mismatch(by_name.pop(name), role)
    if spec.training.input == "csv":
        yield from _without_csv(columns)


def _roles(spec: ModelSpec) -> Iterator[tuple[str, _Role]]:
    """Yield every column that the spec names, with what it wants of it."""
    for feature in spec.features:
        what = f"{'an' if feature.kind == 'image' else 'a'} {feature.kind} feature"
        what += ": with objects it has addresses" if role_of(feature) == "image_address" else ""
        is_list, types = feature.kind == "sequence", types_of(role_of(feature))
        if feature.kind == "time" and "hour" in feature.parts:
            what, types = "a time feature with the part hour", tuple(name for name in types if name != "DATE")
        role = _Role(part=what, types=types, is_list=is_list)
        if feature.kind == "bag":
            role = replace(
                role, of_array=f"join it in the query, ARRAY_TO_STRING({feature.name}, ','), which skips NULLs"
            )
        yield feature.name, role
    for label in (spec.label, *spec.auxiliary_labels):
        part = f"a {label.kind} label"
        yield label.name, _Role(part=part, types=types_of(label.kind), way_out=_CAST)
    group = ((spec.evaluation.group, "group"),) if spec.evaluation.group else ()
    for name, part in (*((name, "slice") for name in spec.evaluation.slice_columns), *group):
        key = f"evaluation.{'slices' if part == 'slice' else part}"
        way_out = f"evaluate by another column ({key}), or make classes of it in the query"
        yield name, _Role(part=f"a {part}", types=types_of("slice"), way_out=way_out)
    for column in spec.evaluation.baselines.values():
        yield column, _Role(part="a baseline", types=types_of("numeric"), way_out=_CAST)
    if spec.data.event_time:
        times = _Role(part="the event time", types=EVENT_TIME_TYPES, way_out=_CAST)
        yield spec.data.event_time, times
    weights = (spec.data.weight,) if spec.data.weight else ()
    yield from ((name, _Role(part="a weight", types=types_of("weight"), way_out=_CAST)) for name in weights)
    yield spec.data.key, _Role(part="the key", types=KEY_TYPES, way_out=_CAST)
    if spec.training.input == "bigquery":
        by_io = spec.training.reader == "tensorflow_io"
        direct = _Role(
            part="read from the table itself",
            types=READ_BY_TENSORFLOW_IO if by_io else READ_FROM_TABLE,
            way_out="cast it in the query, or set training.input to tfrecord",
        )
        labels = (label.name for label in (spec.label, *spec.auxiliary_labels))
        keys = (spec.data.key,) if spec.evaluation.needs_validation else ()  # the judge reads the validation split too
        read = (*spec.feature_names, *labels, *spec.evaluation.baselines.values(), *weights, *keys)
        yield from ((name, direct) for name in read)


def _mismatch(column: Column, role: _Role) -> Mismatch:
    is_list = column.mode == "REPEATED"
    mode = " REPEATED" if role.is_list else ""
    what = f"{column.type} REPEATED" if is_list else column.type
    if is_list and not role.is_list:
        message = f"{column.name} is an array: {role.of_array}"
    elif role.is_list and not is_list:
        message = f"{column.name} is {column.type}, no array: {role.way_out}"
    else:
        message = f"{column.name} is {what} and cannot be {role.part}: {role.way_out}"
    expected = f"one of {', '.join(f'{type_}{mode}' for type_ in sorted(role.types))}"
    return Mismatch(column=column.name, found=what, expected=expected, message=message)


def _without_csv(columns: Sequence[Column]) -> Iterator[Mismatch]:
    """Yield columns that no file can hold: all are exported, also those that the model does not read."""
    for column in columns:
        if column.mode == "REPEATED" or column.type in WITHOUT_CSV:
            what = f"{column.type} REPEATED" if column.mode == "REPEATED" else column.type
            yield Mismatch(
                column=column.name,
                found=what,
                expected=f"no REPEATED column and no {' or '.join(WITHOUT_CSV)}",
                message=f"{column.name} is {what}, which a CSV file cannot hold: leave it out of the query, or set "
                "training.input to tfrecord",
            )
