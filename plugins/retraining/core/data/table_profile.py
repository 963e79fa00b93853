"""What a table holds, as far as a first model of it needs to know: three statements, and what their rows say.

In: which columns are key, time and label, and the table's schema. Out: rows, the days that have some, the label's
values, and of each column its NULLs and distinct values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

from retraining.core.column_types import EVENT_TIME_TYPES, KEY_TYPES
from retraining.core.data.column_roles import types_of
from retraining.core.data.sql import Query, render
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError, SpecError, suggest
from retraining.core.spec.files import name_problem
from retraining.core.spec.source_files import SourceFiles
from retraining.core.untyped import Row

_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_TABLE = re.compile(r"([a-z][a-z0-9.:-]{4,100}\.)?[A-Za-z0-9_]{1,1024}\.[A-Za-z0-9_-]{1,1024}")
_QUOTABLE = re.compile(r"[^`\\\x00-\x1f]{1,300}")
MAX_CLASSES = 1000
"""Values of a label that are counted one by one."""
MAX_DAYS = 3651
"""Days with rows that are counted, the newest: one more than the longest window has."""
QUANTILE_STEPS = 20
FEATURE_TYPES = frozenset(type_ for kind in ("numeric", "categorical", "time") for type_ in types_of(kind))
"""That a first model reads."""
_ONLY_CATEGORIES = frozenset(types_of("categorical")) - frozenset(types_of("numeric"))
_LEAST_COUNTED = 20
"""Rows from which on whole numbers without a gap are taken for their count."""

KeyKind = Literal["column", "text", "columns", "row"]
"""What an example's key is: a column, one as text beside itself, several in one text, or a hash of the row."""


@dataclass(frozen=True, kw_only=True)
class NewModel:
    """What its user says of a new model: its name, `dataset.table` or `project.dataset.table`, and its columns.

    Without a time the examples are split by a hash of their keys. `key` may name several columns, with commas, or none.
    Of files the table is where they are loaded into.
    """

    name: str
    table: str
    label: str
    key: str = ""
    time: str = ""
    files: SourceFiles | None = None

    def __post_init__(self) -> None:
        """Refuse names that no model and no table can have.

        Raises:
            SpecError: One is none.
        """
        if not _NAME.fullmatch(self.name):
            expected = "a small letter, then up to 40 small letters, digits and _"
            raise SpecError("NAME", repr(self.name), expected, "For example NAME=flight_delays")
        if problem := name_problem(self.name):
            raise SpecError("NAME", *problem, "Choose another name")
        if not _TABLE.fullmatch(self.table):
            expected = "dataset.table or project.dataset.table"
            raise SpecError("TABLE", repr(self.table), expected, "For example TABLE=flights.flights")

    def full_table(self, project: str) -> str:
        """Return the table with its project: the given one, unless it names its own."""
        return self.table if self.table.count(".") > 1 else f"{project}.{self.table}"

    @property
    def source(self) -> str:
        """Where the examples come from, as its user says it."""
        return ", ".join(self.files.uris) if self.files else self.table

    def way_out(self, view: str) -> str:
        """Return what to do where a view would help: one that does something, of a table."""
        loaded = "Load the files into a table, make" if self.files else "Make"
        return f"{loaded} a view that {view}, and name that"

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that the key is made of."""
        return tuple(name.strip() for name in self.key.split(",") if name.strip())

    @property
    def key_kind(self) -> KeyKind:
        """What an example's key is."""
        if len(self.keys) != 1:
            return "columns" if self.keys else "row"
        return "text" if self.keys[0] == self.time else "column"

    @property
    def roles(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Each argument with its column, or one of its columns, and the types that this may have."""
        kinds = ("binary", "multiclass", "regression")
        labels = tuple(dict.fromkeys(["STRING", *(type_ for kind in kinds for type_ in types_of(kind))]))
        return [
            *(("KEY", name, KEY_TYPES) for name in self.keys),
            *([("TIME", self.time, EVENT_TIME_TYPES)] if self.time else []),
            ("LABEL", self.label, labels),
        ]


@dataclass(frozen=True, kw_only=True)
class ColumnProfile:
    """A column. `distinct` is about right (HyperLogLog++); None for what cannot be counted, like `nulls` of it.

    `width` is the difference of the greatest and the least of its whole numbers, `quantiles` are those of its numbers
    in 5 % steps, the least and the greatest among them.
    """

    column: Column
    nulls: int | None = None
    distinct: int | None = None
    width: float | None = None
    quantiles: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A value, and how many rows have it."""

    value: str
    rows: int


@dataclass(frozen=True, kw_only=True)
class FilledDay:
    """A UTC day that has rows."""

    day: date
    rows: int


@dataclass(frozen=True, kw_only=True)
class TableProfile:
    """A table's rows, where examples have a time those that do.

    `label_low` and `label_high` are of the label's values, where these are numbers. `classes` are its values where
    they are whole numbers or texts, the most frequent first: all of them or, one too many, `MAX_CLASSES` + 1. `days`
    are the newest that have rows, newest first.
    """

    table: str
    rows: int
    key_values: int
    first: date | None
    last: date | None
    label_low: float | None
    label_high: float | None
    columns: tuple[ColumnProfile, ...]
    classes: tuple[Counted, ...] = ()
    days: tuple[FilledDay, ...] = ()

    def of_column(self, name: str) -> ColumnProfile:
        """Return one column's."""
        return next(found for found in self.columns if found.column.name == name)


def require_columns(model: NewModel, columns: Sequence[Column]) -> None:
    """Refuse columns that are not there, stand for two things, or whose type cannot be what they shall be.

    The time may be the key, or a part of it.

    Raises:
        DataError: Names the argument, and the way out.
    """
    by_name = {column.name: column for column in columns}
    taken: dict[str, str] = {}
    for role, name, types in model.roles:
        where, column = f"{role} of {model.source}", by_name.get(name)
        if column is None:
            known = list(by_name)
            raise DataError(where, f"no column {name!r}", f"one of: {', '.join(known)}", suggest(name, known))
        if name in taken and (role, taken[name]) != ("TIME", "KEY"):
            raise DataError(where, f"{name!r}, which is {taken[name]} too", "different columns", "Name another")
        taken[name] = role
        if reason := _unusable(column):
            raise DataError(where, f"{name!r}: {reason}", "a plain column", model.way_out("renames or unnests it"))
        if column.type not in types:
            out = model.way_out(f"casts it{_of_a_year(column) if role == 'TIME' else ''}")
            out += ". Or leave out TIME" if role == "TIME" else ""
            raise DataError(where, f"{name!r} is {column.type}", f"one of {', '.join(types)}", out)


def _of_a_year(column: Column) -> str:
    return f" (a year as DATE(CAST({column.name} AS INT64), 1, 1))" if column.type in ("INTEGER", "FLOAT") else ""


def _unusable(column: Column) -> str | None:
    """Say why no role can have a column whatever its type; None: it may."""
    if column.mode == "REPEATED":
        return "an array"
    return None if _QUOTABLE.fullmatch(column.name) else "a name that SQL cannot quote"


def reason_left_out(found: ColumnProfile, rows: int) -> str | None:
    """Say why a column is no feature of a first model; None: it is one."""
    column = found.column
    if reason := _unusable(column):
        return reason
    if column.type == "BYTES":
        return "bytes, an image?"
    if column.type not in FEATURE_TYPES or found.distinct is None:
        return column.type
    if not found.distinct:
        return "all NULL"
    if found.distinct == 1:
        return "one value"
    if column.type in _ONLY_CATEGORIES and found.distinct > max(2, rows / 2):
        return "nearly a value per row"
    if found.width is not None and rows >= _LEAST_COUNTED and found.distinct > 0.99 * rows > 0.49 * found.width:
        return "counts the rows"
    return None


def render_profile_sql(model: NewModel, table: str, columns: Sequence[Column]) -> Query:
    """Return the statement about a table, of which `require_columns` has nothing to say."""
    sql = render(
        "table_profile.sql.j2",
        table=table,
        model=model,
        label_type=_label_type(model, columns),
        columns=[
            {"name": column.name, "whole": column.type == "INTEGER", "number": column.type in types_of("regression")}
            for column in _countable(columns)
        ],
        steps=QUANTILE_STEPS,
    )
    return Query(sql=sql)


def render_days_sql(model: NewModel, table: str) -> Query:
    """Return the statement about the days that have rows."""
    return Query(sql=render("table_days.sql.j2", table=table, time=model.time, most=MAX_DAYS))


def render_classes_sql(model: NewModel, table: str, columns: Sequence[Column]) -> Query | None:
    """Return the statement about the label's values; None: they are measured numbers, and none is like another."""
    if _label_type(model, columns) == "FLOAT64":
        return None
    sql = render("table_classes.sql.j2", table=table, label=model.label, time=model.time, most=MAX_CLASSES + 1)
    return Query(sql=sql)


def _label_type(model: NewModel, columns: Sequence[Column]) -> str:
    label = next(column for column in columns if column.name == model.label)
    return {"INTEGER": "INT64", "BOOLEAN": "INT64", "STRING": "STRING"}.get(label.type, "FLOAT64")


def build_profile(
    model: NewModel, columns: Sequence[Column], row: Row, days: Iterable[Row] = (), classes: Iterable[Row] = ()
) -> TableProfile:
    """Return what the rows of the three statements say.

    Raises:
        DataError: There is no row, or none has a time.
    """
    if not row["row_count"]:
        found = f"no row with a {model.time}" if model.time else "no row"
        raise DataError(model.source, found, "examples", "Fill the table, or name another TIME")
    places = {column.name: place for place, column in enumerate(_countable(columns))}
    return TableProfile(
        table=model.source,
        rows=int(row["row_count"]),
        key_values=int(row["key_values"]),
        first=_day(row["first_event"]) if model.time else None,
        last=_day(row["last_event"]) if model.time else None,
        label_low=row["label_low"],
        label_high=row["label_high"],
        columns=tuple(
            ColumnProfile(
                column=column,
                nulls=row[f"nulls_{places[column.name]}"],
                distinct=row[f"values_{places[column.name]}"],
                width=row.get(f"width_{places[column.name]}"),
                quantiles=tuple(row.get(f"quantiles_{places[column.name]}") or ()),
            )
            if column.name in places
            else ColumnProfile(column=column)
            for column in columns
        ),
        classes=tuple(Counted(value=str(each["value"]), rows=int(each["row_count"])) for each in classes),
        days=tuple(FilledDay(day=each["day"], rows=int(each["row_count"])) for each in days),
    )


def _countable(columns: Sequence[Column]) -> list[Column]:
    """Return the columns whose values BigQuery tells apart: no JSON, no GEOGRAPHY."""
    return [column for column in columns if column.type in KEY_TYPES and not _unusable(column)]


def _day(value: date | datetime) -> date:
    return value.date() if isinstance(value, datetime) else value
