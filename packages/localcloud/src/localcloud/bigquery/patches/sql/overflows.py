"""Patches POW and EXP beyond the greatest FLOAT64, and ACOSH below 1: DuckDB has values that BigQuery refuses.

| GoogleSQL | without it |
|---|---|
| POW(0, -1), POW(10, 400) | infinity |
| EXP(1000) | infinity |
| ACOSH(0.5) | NaN |

Of infinite arguments infinity is the answer. Source: the reference of mathematical functions,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

# A text that is no number ends a statement as `error` would; that one is a side effect to DuckDB, beside no alias.
MACROS: Mapping[str, str] = {
    "localcloud_pow(x, y)": (
        "CASE WHEN isinf(pow(x, y)) AND NOT isinf(CAST(x AS DOUBLE)) AND NOT isinf(CAST(y AS DOUBLE))"
        " THEN CAST('Floating point error in function: POW(' || CAST(x AS VARCHAR) || ', ' || CAST(y AS VARCHAR) || ')'"
        " AS DOUBLE) ELSE pow(x, y) END"
    ),
    "localcloud_exp(x)": (
        "CASE WHEN isinf(exp(x)) AND NOT isinf(CAST(x AS DOUBLE))"
        " THEN CAST('Floating point error in function: EXP(' || CAST(x AS VARCHAR) || ')' AS DOUBLE) ELSE exp(x) END"
    ),
    "localcloud_acosh(x)": (
        "CASE WHEN x < 1"
        " THEN CAST('Floating point error in function: ACOSH(' || CAST(x AS VARCHAR) || ')' AS DOUBLE)"
        " ELSE acosh(x) END"
    ),
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = list(tree.find_all(exp.Pow, exp.Exp, exp.Acosh))
    for node in reversed(nodes):
        if isinstance(node, exp.Pow):
            node.replace(call("localcloud_pow", node.this, node.expression, type_=None))
        else:
            name = "localcloud_exp" if isinstance(node, exp.Exp) else "localcloud_acosh"
            node.replace(call(name, node.this, type_=None))
    return bool(nodes)
