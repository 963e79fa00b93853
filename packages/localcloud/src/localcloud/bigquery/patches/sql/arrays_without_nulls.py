"""Patches `ARRAY_AGG(x IGNORE NULLS)` with DISTINCT or LIMIT: bqemulator makes SQL of it that nobody can run.

It would ask whether `DISTINCT x` is NULL, and filter the slice in place of what is aggregated. Beside it the macro that
refuses an array with a NULL where one is written (`patches/assigned_arrays.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

MACROS: Mapping[str, str] = {
    "localcloud_full(x)": (
        "list_extract([x], CASE WHEN list_aggregate(x, 'count') < len(x)"
        " THEN CAST('Array cannot have a null element' || left(CAST(len(x) AS VARCHAR), 0) AS BIGINT) ELSE 1 END)"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = [node for node in tree.find_all(exp.IgnoreNulls) if isinstance(node.this, exp.ArrayAgg)]
    for node in nodes:
        operand, most = node.this.this, None
        if isinstance(operand, exp.Limit):
            operand, most = operand.this, operand.expression
        value = operand.this if isinstance(operand, exp.Order) else operand
        if isinstance(value, exp.Distinct):
            (value,) = value.expressions
        is_there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
        array: exp.Expression = exp.Filter(this=exp.ArrayAgg(this=operand.copy()), expression=exp.Where(this=is_there))
        if most is not None:
            array = exp.Anonymous(this="ARRAY_SLICE", expressions=[array, exp.Literal.number(1), most.copy()])
        node.replace(array)
    return bool(nodes)
