"""A statement's queries with the types of their expressions, as far as these are known before they run.

In: a statement's tree, with types of its parameters (`parameters`), and the columns of the tables that it reads. Out:
copies of its queries in which each column is named with its table and each expression has its type, or none.

The types are sqlglot's. On the documented answers of the suite it knows 97 of 100, and those that it gets wrong are not
taken for known.
"""

from __future__ import annotations

import logging
import re

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot.errors import SqlglotError  # type: ignore[import-not-found]
from sqlglot.optimizer.annotate_types import annotate_types  # type: ignore[import-not-found]
from sqlglot.optimizer.qualify import qualify  # type: ignore[import-not-found]
from sqlglot.schema import MappingSchema  # type: ignore[import-not-found]

from localcloud.bigquery.types.parameters import is_parameter
from localcloud.bigquery.types.written import ColumnsOf, queries_of
from localcloud.untyped import Untyped

NUMBERS = frozenset({"INT64", "FLOAT64", "NUMERIC", "BIGNUMERIC"})
NO_TIME = "[.][0-9]{7,}|(^|[ Tt])[0-9]{1,2}:[0-9]{1,2}([^0-9:]|$)"
"""A text that is no time of the service's: it has parts of a microsecond, or no seconds."""
TIMES = frozenset({"DATE", "DATETIME", "TIME", "TIMESTAMP"})
_SCALARS = frozenset({*NUMBERS, *TIMES, "STRING", "BYTES", "BOOL", "JSON", "GEOGRAPHY", "INTERVAL"})
_NAMED = (exp.Alias, exp.Column, exp.Dot, exp.Star)
_UNNAMED = "localcloud_unnamed_"
_PLACE = "localcloud_place"
_WIRE_NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}


def type_of_field(field: Untyped) -> str:
    """Return the type of a field of a table's schema, as GoogleSQL writes it."""
    kind = _WIRE_NAMES.get(field.type.upper(), field.type.upper())
    if kind == "STRUCT":
        kind = f"STRUCT<{', '.join(f'`{each.name}` {type_of_field(each)}' for each in field.fields)}>"
    return f"ARRAY<{kind}>" if field.mode == "REPEATED" else kind


_FUNCTIONS = (
    (exp.DatetimeAdd, exp.TimestampAdd),
    (exp.DatetimeSub, exp.TimestampSub),
    (exp.DatetimeTrunc, exp.TimestampTrunc),
)
"""What is alike of a DATETIME and of a TIMESTAMP."""
_ALIKE = tuple(function for alike in _FUNCTIONS for function in alike)
_OF_KIND = (("datetime", "timestamp"), ("timestamptz",))
"""Types of the two, as sqlglot names them: its `timestamp` has no zone."""


def typed_queries(tree: exp.Expression, columns_of: ColumnsOf) -> list[exp.Expression]:
    """Return a statement's queries with types; those are left out of which too little is known for them.

    They are the statement itself, what a table is made of, or the rows and the values that a change is about.

    Args:
        tree: Of one statement; it stays as it is.
        columns_of: Gives the columns of a table that it reads or changes.
    """
    found = (_typed(query, columns_of) for query in queries_of(tree, columns_of))
    return [query for query in found if query is not None]


def is_unnamed(name: str) -> bool:
    """Return whether a column of a typed query has a name that the statement does not give it."""
    return name.startswith(_UNNAMED)


def _name_columns(query: exp.Expression) -> None:
    """Name each column that has no name, by what no statement has: sqlglot names `CAST(x AS INT64)` x."""
    for number, select in enumerate(list(query.find_all(exp.Select))):
        if select.args.get("kind"):  # of STRUCT or VALUE: these are fields
            continue
        for place, value in enumerate(select.selects):
            if not isinstance(value, _NAMED):
                value.replace(exp.alias_(value.copy(), f"{_UNNAMED}{number}_{place}"))


def _typed(query: exp.Expression, columns_of: ColumnsOf) -> exp.Expression | None:
    _name_columns(query)
    made = {cte.alias for cte in query.find_all(exp.CTE)}
    schema = MappingSchema(dialect="bigquery")
    for number, table in enumerate(list(query.find_all(exp.Table))):
        if not table.db and table.name in made:
            continue
        columns = columns_of(table)
        if not columns:
            return None
        _rename(table, f"table_{number}")
        schema.add_table(f"table_{number}", columns, dialect="bigquery")
    return _with_types(query, schema)


def _rename(table: exp.Table, name: str) -> None:
    """Give a table a name that no other table and no query has; it keeps what the statement calls it."""
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name, quoted=True)))
    table.set("this", exp.to_identifier(name))
    table.set("db", None)
    table.set("catalog", None)


def _with_types(query: exp.Expression, schema: MappingSchema) -> exp.Expression | None:
    try:
        named = qualify(
            query,
            schema=schema,
            dialect="bigquery",
            validate_qualify_columns=False,
            quote_identifiers=False,
            identify=False,
            expand_alias_refs=False,
        )
        _type_offsets(named)
        typed = annotate_types(named, schema=schema, dialect="bigquery")
        while _follow_arguments(typed):
            typed = annotate_types(typed, schema=schema, dialect="bigquery")
        return typed
    except (SqlglotError, KeyError, AttributeError, TypeError, ValueError) as error:  # what it has no types for
        logging.getLogger(__name__).debug("no types: %s", error)
        return None


def _follow_arguments(query: exp.Expression) -> bool:
    """Give functions of times the kind of what they are asked of: TIMESTAMP_ADD of a DATETIME is one. Tell of a change.

    Source: cloud.google.com/bigquery/docs/reference/standard-sql/timestamp_functions#timestamp_add.
    """
    changed = False
    for node in list(query.find_all(*_ALIKE)):
        kind = node.this.type
        place = next(
            (number for number, kinds in enumerate(_OF_KIND) if kind is not None and kind.is_type(*kinds)), None
        )
        alike = next(alike for alike in _FUNCTIONS if type(node) in alike)
        if place is not None and type(node) is not alike[place]:
            node.replace(alike[place](**{name: value for name, value in node.args.items() if value is not None}))
            changed = True
    return changed


def _type_offsets(query: exp.Expression) -> None:
    """Say of places in arrays, `WITH OFFSET`, that they are whole numbers: sqlglot takes them for elements."""
    offsets = {
        (unnest.alias, unnest.args["offset"].name)
        for unnest in query.find_all(exp.Unnest)
        if isinstance(unnest.args.get("offset"), exp.Expression)
    }
    for column in list(query.find_all(exp.Column)):
        if (column.table, column.name) in offsets:
            place = exp.cast(column.copy(), "INT64", dialect="bigquery")
            place.meta[_PLACE] = True
            column.replace(place)


def is_place(node: exp.Expression) -> bool:
    """Return whether a cast is none of the statement's, but says of a place in an array that it is a whole number."""
    return bool(node.meta.get(_PLACE))


def kind_of(node: exp.Expression | None) -> str:
    """Return the type of an expression as GoogleSQL writes it, without lengths; "" where it is not surely known."""
    if isinstance(node, exp.TsOrDsToDatetime):  # sqlglot has no type for `DATETIME(x)`
        return "DATETIME"
    if not isinstance(node, exp.Expression) or _is_doubtful(node) or node.type is None:
        return ""
    name = str(node.type.sql("bigquery"))
    if name.startswith(("ARRAY<", "STRUCT<", "RANGE<")):
        return "" if "UNKNOWN" in name or "NULL" in name else name
    name = name.partition("(")[0]
    return name if name in _SCALARS else ""


def _is_doubtful(node: exp.Expression) -> bool:
    """Return whether the type of an expression may be wrong, or stands for no value of its own."""
    match node.unnest():
        case exp.DPipe() | exp.Anonymous() | exp.Parameter() | exp.Placeholder() | exp.Null() | exp.Star():
            return True
        case exp.Dot() as field:
            return not _is_known_field(field)
        case exp.Subquery() | exp.Query():
            return True
        case exp.Column() as column:
            return not column.table or (column.type is not None and bool(column.type.is_type("struct", "unknown")))
        case exp.Add() | exp.Sub() as sum_:
            return not {kind_of(sum_.this), kind_of(sum_.expression)} <= NUMBERS
        case exp.Pow() as power:  # sqlglot says FLOAT64 of a NUMERIC's
            return not {kind_of(power.this), kind_of(power.expression)} <= {"INT64", "FLOAT64"}
        case exp.Extract() as part:
            return bool(part.this.name.upper() == "DATETIME")
    return False


def _is_known_field(field: exp.Dot) -> bool:
    """Return whether a field is that of a column, of an element of one, or of a parameter, and known by its name."""
    of: exp.Expression = field.this
    while isinstance(of, exp.Dot | exp.Bracket):
        of = of.this
    is_sure = is_parameter(of) or (isinstance(of, exp.Column) and bool(of.table))
    kind = field.this.type
    return (
        is_sure and kind is not None and bool(kind.is_type("struct")) and isinstance(field.expression, exp.Identifier)
    )


def can_stand_for(node: exp.Expression | None, kind: str) -> bool:
    """Return whether a text that is written there, or a parameter of type STRING, may stand for a value of a type.

    Args:
        kind: One of dates and times, BYTES and INTERVAL.
    """
    if isinstance(node, exp.Expression) and is_parameter(node.unnest()):
        return kind_of(node) == "STRING" and kind in TIMES
    if not isinstance(node, exp.Expression) or not is_text(node):
        return False
    text = node.unnest().name
    return ":" not in text if kind == "DATE" else kind not in TIMES or re.search(NO_TIME, text) is None


def is_text(node: exp.Expression | None) -> bool:
    """Return whether an expression is a text that is written there: it may stand for a date or a time."""
    return isinstance(node, exp.Expression) and isinstance(node.unnest(), exp.Literal) and bool(node.unnest().is_string)
