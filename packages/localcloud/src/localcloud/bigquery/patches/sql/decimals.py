"""Patches products, divisions and functions of NUMERIC and BIGNUMERIC, which DuckDB computes otherwise.

| GoogleSQL | without it |
|---|---|
| NUMERIC / x, SAFE_DIVIDE: all digits of the type, a FLOAT64 only with a FLOAT64 | some fifteen digits |
| NUMERIC * NUMERIC: nine digits behind the point, up to 29 before it | eighteen, up to 20 |
| a BIGNUMERIC with more than ten digits behind the point, which is refused by name | ten digits |
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
_PRODUCT = "localcloud_product(CAST(a AS VARCHAR), CAST(b AS VARCHAR))"
MORE_DIGITS = "[.][0-9]{10}[0-9]*[1-9]"
TOO_FINE = "The local cloud has no BIGNUMERIC with more than ten digits behind the point"
_EXACT = "localcloud_quotient(CAST(a AS VARCHAR), CAST(b AS VARCHAR))"
_IS_BIG = "typeof(a + b) = 'DECIMAL(38,10)'"
MACROS: Mapping[str, str] = {
    # `t` is a text.
    "localcloud_ten_digits(t)": (
        f"CASE WHEN regexp_matches(t, '{MORE_DIGITS}')"
        f" THEN CAST(CAST('{TOO_FINE}: ' || t AS BIGINT) AS VARCHAR) ELSE t END"
    ),
    "localcloud_multiplied(a, b)": (
        f"CASE WHEN {_IS_BIG} THEN cast_to_type(localcloud_ten_digits({_PRODUCT}), a + b)"
        f" WHEN typeof(a) LIKE 'DECIMAL%' AND typeof(b) LIKE 'DECIMAL%' THEN cast_to_type({_PRODUCT}, a + b)"
        " ELSE cast_to_type(a * b, a + b) END"
    ),
    "localcloud_divided(a, b)": (
        "CASE WHEN b = 0 THEN cast_to_type(CAST(CAST('Division by zero: ' || CAST(a AS VARCHAR) || ' / ' ||"
        f" CAST(b AS VARCHAR) AS BIGINT) AS DOUBLE), {_TYPE})"
        f" WHEN {_IS_BIG} THEN cast_to_type(localcloud_ten_digits({_EXACT}), {_TYPE})"
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
    for node in reversed(
        list(tree.find_all(exp.Mul, exp.SafeMultiply, exp.Div, exp.SafeDivide, exp.IntDiv, *_FUNCTIONS))
    ):
        found = _patch(node, known) or found
    return found


def _patch(node: exp.Expression, known: Expressions) -> bool:
    sides = [side for side in (node.this, node.args.get("expression")) if isinstance(side, exp.Expression)]
    if not any(map(known.can_be_decimal, sides)):
        return False
    if isinstance(node, exp.Mul | exp.SafeMultiply):
        if not all(map(known.can_be_decimal, sides)):
            return False
        multiplied = call("localcloud_multiplied", *(side.unnest() for side in sides), type_=None)
        is_safe = isinstance(node, exp.SafeMultiply)
        node.replace(exp.Anonymous(this="TRY", expressions=[multiplied]) if is_safe else multiplied)
        return True
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
