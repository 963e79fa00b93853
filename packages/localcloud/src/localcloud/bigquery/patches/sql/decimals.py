"""Patches divisions and functions of NUMERIC and BIGNUMERIC: DuckDB computes them as FLOAT64.

| GoogleSQL | without it |
|---|---|
| NUMERIC / x, SAFE_DIVIDE: all digits of the type, a FLOAT64 only with a FLOAT64 | some fifteen digits |
| DIV of NUMERIC: a whole number | with a fraction |
| SQRT, POW, EXP, LN, LOG of NUMERIC, which are refused by name | a FLOAT64 |

What cannot be of these types (`types.expressions`) is left as it is written. Source: the reference of operators and of
mathematical functions, cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.bigquery.types.expressions import Expressions

# Of integers and DOUBLEs a DOUBLE, of a DECIMAL among them a DECIMAL: so is the median of the sum, asked for its type.
_TYPE = "list_median([a + b])"
_EXACT = "localcloud_quotient(CAST(a AS VARCHAR), CAST(b AS VARCHAR))"
MACROS: Mapping[str, str] = {
    "localcloud_divided(a, b)": (
        "CASE WHEN b = 0 THEN cast_to_type(CAST(CAST('Division by zero: ' || CAST(a AS VARCHAR) || ' / ' ||"
        f" CAST(b AS VARCHAR) AS BIGINT) AS DOUBLE), {_TYPE})"
        f" WHEN typeof(a + b) LIKE 'DECIMAL%' THEN cast_to_type({_EXACT}, {_TYPE})"
        f" ELSE cast_to_type(CAST(a AS DOUBLE) / CAST(b AS DOUBLE), {_TYPE}) END"
    ),
    "localcloud_whole_divided(a, b)": (
        f"CASE WHEN typeof(a + b) LIKE 'DECIMAL%' THEN cast_to_type(split_part({_EXACT}, '.', 1), a + b)"
        " ELSE cast_to_type(a // b, a + b) END"
    ),
    # No function has a value of a type that it would give a wrong one for.
    "localcloud_no_decimal(x, name)": (
        "list_extract([x], CASE WHEN typeof(x) LIKE 'DECIMAL%' THEN CAST('The local cloud has no ' || name ||"
        " ' of NUMERIC: cast it to FLOAT64' AS BIGINT) ELSE 1 END)"
    ),
}
_FUNCTIONS = {exp.Sqrt: "SQRT", exp.Pow: "POW", exp.Exp: "EXP", exp.Ln: "LN", exp.Log: "LOG", exp.Cbrt: "CBRT"}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    known, found = Expressions(tree), False
    for node in reversed(list(tree.find_all(exp.Div, exp.SafeDivide, exp.IntDiv, *_FUNCTIONS))):
        found = _patch(node, known) or found
    return found


def _patch(node: exp.Expression, known: Expressions) -> bool:
    sides = [side for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Expression)]
    if not any(map(known.can_be_decimal, sides)):
        return False
    if isinstance(node, exp.Div | exp.SafeDivide):
        divided = call("localcloud_divided", node.this, node.expression, type_=None)
        if isinstance(node, exp.SafeDivide):
            is_zero = exp.EQ(this=node.expression.copy(), expression=exp.Literal.number(0))
            divided = exp.If(this=is_zero, true=exp.Null(), false=divided)
        node.replace(divided)
    elif isinstance(node, exp.IntDiv):
        node.replace(call("localcloud_whole_divided", node.this.unnest(), node.expression.unnest(), type_=None))
    else:
        for side in sides:
            side.replace(call("localcloud_no_decimal", side, _FUNCTIONS[type(node)], type_=None))
    return True
