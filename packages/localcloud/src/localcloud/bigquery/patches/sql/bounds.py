"""Patches arguments out of bounds: DuckDB gives NULL, an empty text or another answer where BigQuery refuses.

| GoogleSQL | without it |
|---|---|
| `a[OFFSET(9)]`, `a[ORDINAL(0)]` beyond the end | NULL |
| DIV and MOD by 0 | NULL |
| SUBSTR from 0, from before the beginning, of a negative length | a character less, empty, empty |
| ARRAY_SLICE | counted from one |
| TIMESTAMP_ADD and TIMESTAMP_SUB of months and years | an answer |
| REPEAT a negative number of times, GENERATE_ARRAY by steps of 0 | empty |
| GENERATE_ARRAY of FLOAT64 | refused |

Not offered, and refused by name: INSTR from the end, FORMAT with `'` (digits in threes), `%t` or `%T`, ROUND half to
even, TIMESTAMP_TRUNC to hours of a zone (they may begin at half past).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.refusals import refuse

# A text that is no number ends a statement as `error` would; that one is a side effect to DuckDB, beside no alias.
MACROS: Mapping[str, str] = {
    "localcloud_element(a, i)": (
        "CASE WHEN i < 1 OR i > len(a)"
        " THEN CAST('Array index ' || CAST(i - 1 AS VARCHAR) || ' is out of bounds' AS BIGINT) ELSE i END"
    ),
    "localcloud_divisor(n)": (
        "CASE WHEN n = 0 THEN CAST('division by zero: by ' || CAST(n AS VARCHAR) AS BIGINT) ELSE n END"
    ),
    "localcloud_position(s, p)": ("CASE WHEN p = 0 OR p < -length(s) THEN 1 ELSE p END"),
    "localcloud_at_least_0(n, what)": (
        "CASE WHEN n < 0 THEN CAST(what || ' must not be negative, got ' || CAST(n AS VARCHAR) AS BIGINT) ELSE n END"
    ),
    "localcloud_no_timestamp(x, part)": (
        "list_extract([x], CASE WHEN typeof(x) <> 'TIMESTAMP' THEN CAST('A TIMESTAMP has no ' || part"
        " || 's to add: use a DATETIME' || left(CAST(x AS VARCHAR), 0) AS BIGINT) ELSE 1 END)"
    ),
    "localcloud_series(first, last, step)": (
        "list_filter(list_transform("
        "range(CAST(ceil((CAST(last AS DOUBLE) - CAST(first AS DOUBLE)) / step) AS BIGINT) + 2),"
        " lambda place: CAST(first AS DOUBLE) + place * CAST(step AS DOUBLE)),"
        " lambda value: CASE WHEN step > 0 THEN value <= last ELSE value >= last END)"
    ),
    "localcloud_slice(a, first, last)": (
        "list_slice(a,"
        " CASE WHEN first < 0 THEN first ELSE first + 1 END, CASE WHEN last < 0 THEN last ELSE last + 1 END)"
    ),
}
_LONG_PARTS = ("WEEK", "MONTH", "QUARTER", "YEAR")


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    kinds = (
        exp.IntDiv, exp.Mod, exp.Substring, exp.ArraySlice, exp.TimestampAdd, exp.TimestampSub, exp.Repeat,
        exp.GenerateSeries,
    )  # fmt: skip
    for node in reversed(list(tree.find_all(*kinds))):
        found = _bound(node) or found
    for node in list(tree.find_all(exp.StrPosition, exp.Format, exp.Round, exp.TimestampTrunc, exp.RegexpInstr)):
        if missing := _not_offered(node):
            refuse(missing)
    return found


def _bound(node: exp.Expression) -> bool:
    match node:
        case exp.IntDiv() | exp.Mod() if not _is_number(node.expression):
            node.set("expression", call("localcloud_divisor", node.expression, type_=None))
        case exp.Substring() if not _is_number(node.args.get("start")) or not _is_number(node.args.get("length", 1)):
            node.set("start", call("localcloud_position", node.this, node.args["start"]))
            if node.args.get("length") is not None:
                node.set("length", call("localcloud_at_least_0", node.args["length"], "The length of SUBSTR"))
        case exp.ArraySlice():
            node.replace(call("localcloud_slice", node.this, node.args["start"], node.args["end"], type_=None))
        case exp.TimestampAdd() | exp.TimestampSub() if node.args["unit"].name.upper() in _LONG_PARTS:
            kind = exp.DatetimeAdd if isinstance(node, exp.TimestampAdd) else exp.DatetimeSub
            moment = call("localcloud_no_timestamp", node.this, node.args["unit"].name.upper(), type_="DATETIME")
            node.replace(kind(this=moment, expression=node.expression.copy(), unit=node.args["unit"].copy()))
        case exp.Repeat() if not _is_number(node.args["times"]):
            node.set("times", call("localcloud_at_least_0", node.args["times"], "The count of REPEAT"))
        case exp.GenerateSeries() if _is_zero(node.args.get("step")):
            node.replace(_where_taken(node, _error("The step of GENERATE_ARRAY must not be 0", "ARRAY<INT64>")))
        case exp.GenerateSeries() if any(map(_is_fraction, _steps(node))):
            node.replace(call("localcloud_series", *_steps(node), type_="ARRAY<FLOAT64>"))
        case _:
            return False
    return True


def _steps(node: exp.GenerateSeries) -> list[exp.Expression]:
    """Return the first, the last and the step of a series."""
    return [node.args["start"], node.args["end"], node.args.get("step") or exp.Literal.number(1)]


def _is_fraction(value: exp.Expression) -> bool:
    """Return whether a value is a FLOAT64 that is written there."""
    literal = value.this if isinstance(value, exp.Neg) else value
    return isinstance(literal, exp.Literal) and not literal.is_string and not literal.is_int


def _not_offered(node: exp.Expression) -> str | None:
    """Return the name of what would be answered otherwise than by BigQuery."""
    match node:
        case exp.RegexpInstr() if node.args.get("option") is not None and not isinstance(
            node.args["option"], exp.Literal
        ):
            return "REGEXP_INSTR with an end or a start that is not written in the statement"
        case exp.StrPosition() if isinstance(node.args.get("position"), exp.Neg):
            return "INSTR from the end"
        case exp.Format() if "%'" in node.this.name:
            return "FORMAT with digits in threes (%')"
        case exp.Format() if written := re.search(
            r"%[-+ #0]*[0-9*]*(\.[0-9*]+)?[tT]", node.this.name.replace("%%", "")
        ):
            return f"FORMAT with {written.group()}"
        case exp.Round() if node.args.get("truncate") is not None and node.args["truncate"].name.endswith("EVEN"):
            return f"ROUND with {node.args['truncate'].name}"
        case exp.TimestampTrunc() if node.args.get("zone") is not None and node.args["unit"].name.upper() == "HOUR":
            zone = node.args["zone"]
            return None if zone.name == "UTC" else "TIMESTAMP_TRUNC to hours of a zone"
    return None


def _is_number(value: object) -> bool:
    """Return whether a value is a whole number above 0, which is in bounds."""
    if isinstance(value, int):
        return True
    return isinstance(value, exp.Literal) and not value.is_string and value.this.isdigit() and int(value.this) > 0


def _where_taken(node: exp.Expression, error: exp.Expression) -> exp.Expression:
    """Return an error that is none in the branch of an IF that is not taken: DuckDB evaluates its subqueries there."""
    branch = node.find_ancestor(exp.If)
    if branch is None or node.find_ancestor(exp.Subquery, exp.Select) is None or isinstance(branch.parent, exp.Case):
        return error
    inner = node
    while inner.parent is not branch:
        inner = inner.parent
    nothing = exp.cast(exp.Null(), "ARRAY<INT64>", dialect="bigquery")
    if inner.arg_key == "true":
        return exp.If(this=branch.this.copy(), true=error, false=nothing)
    return exp.If(this=branch.this.copy(), true=nothing, false=error) if inner.arg_key == "false" else error


def _is_zero(value: exp.Expression | None) -> bool:
    return isinstance(value, exp.Literal) and value.this == "0"


def _error(message: str, type_: str) -> exp.Expression:
    """Return what ends a statement; without a type it would be NULL beneath another function."""
    found = exp.Anonymous(this="ERROR", expressions=[exp.Literal.string(message)])
    return exp.cast(found, type_, dialect="bigquery")
