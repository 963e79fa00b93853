"""Patches SUM and AVG, whose types are others in DuckDB, and CORR of one pair.

| GoogleSQL | without it |
|---|---|
| SUM of INT64: an INT64, and no answer beyond it | a HUGEINT: a NUMERIC in arrays and structs, a number beyond INT64 |
| AVG of NUMERIC, BIGNUMERIC: of the same type, with its digits | a FLOAT64 |
| CORR of less than two pairs: NULL | NaN |

The type of the answer is that of another expression, which is never asked for a value: `cast_to_type` looks at its type
only. PIVOT takes an aggregate alone, and has it as it is. Source: the reference of aggregate functions,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal, localcontext

import pyarrow as pa
from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

_DIGITS = 40  # behind the point, before DuckDB rounds to those of the type
_MEAN = "localcloud_quotient(CAST(total AS VARCHAR), CAST(number AS VARCHAR))"
MACROS: Mapping[str, str] = {
    # Of an integer a BIGINT, of a DECIMAL and a DOUBLE the same.
    "localcloud_as_sum(total, x)": "cast_to_type(total, x + CAST(0 AS BIGINT))",
    # Of an integer and a DOUBLE a DOUBLE, of a DECIMAL the same: so is the median.
    "localcloud_as_mean(mean, total, number, x)": (
        "CASE WHEN typeof(total) = 'DECIMAL(38,10)'"
        f" THEN cast_to_type(localcloud_ten_digits({_MEAN}), list_median([x]))"
        f" WHEN typeof(total) LIKE 'DECIMAL%' THEN cast_to_type({_MEAN}, list_median([x]))"
        " ELSE cast_to_type(mean, list_median([x])) END"
    ),
    "localcloud_corr(found, pairs)": "CASE WHEN pairs < 2 THEN NULL ELSE found END",
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = [
        node
        for node in tree.find_all(exp.Sum, exp.Avg, exp.Corr)
        if not isinstance(node.this, exp.HavingMax) and node.find_ancestor(exp.Pivot) is None
    ]
    for node in reversed(nodes):
        _patch(node)
    return bool(nodes)


def quotients(totals: pa.Array, numbers: pa.Array) -> pa.Array:
    """Return totals divided by numbers, all of them texts, to forty digits; NULL of NULL, and by 0."""
    pairs = zip(totals.to_pylist(), numbers.to_pylist(), strict=True)
    return pa.array([_quotient(total, number) for total, number in pairs], pa.string())


def products(ones: pa.Array, others: pa.Array) -> pa.Array:
    """Return the products of numbers, all of them texts; NULL of NULL."""
    pairs = zip(ones.to_pylist(), others.to_pylist(), strict=True)
    return pa.array([None if None in pair else _product(*pair) for pair in pairs], pa.string())


def _product(one: str, other: str) -> str:
    with localcontext() as context:
        context.prec = 100
        return format(Decimal(one) * Decimal(other), "f")


def _quotient(total: str | None, number: str | None) -> str | None:
    if total is None or number is None or not Decimal(number):
        return None
    with localcontext() as context:
        context.prec = 100
        step = Decimal(1).scaleb(-_DIGITS)
        return format((Decimal(total) / Decimal(number)).quantize(step, rounding=ROUND_HALF_UP), "f")


def _patch(node: exp.Expression) -> None:
    value = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    window = node.parent if isinstance(node.parent, exp.Window) and node.parent.this is node else None
    place = window or node
    if isinstance(node, exp.Corr):
        pairs = exp.Anonymous(this="REGR_COUNT", expressions=[node.this.copy(), node.expression.copy()])
        place.replace(call("localcloud_corr", place, _over(pairs, window), type_=None))
        return
    if window is None:  # a value of the rows, in the place of the rows
        value = exp.AnyValue(this=value.copy())
    if isinstance(node, exp.Sum):
        place.replace(call("localcloud_as_sum", place, value, type_=None))
        return
    totals = [_over(made(this=node.this.copy()), window) for made in (exp.Sum, exp.Count)]
    place.replace(call("localcloud_as_mean", place, *totals, value, type_=None))


def _over(node: exp.Expression, window: exp.Window | None) -> exp.Expression:
    """Return an aggregate over a window, if there is one."""
    if window is None:
        return node
    copied = window.copy()
    copied.set("this", node)
    return copied
