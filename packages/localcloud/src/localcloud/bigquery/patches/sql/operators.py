r"""Patches functions that DuckDB answers by other numbers, and escapes in patterns of LIKE.

| GoogleSQL | without it |
|---|---|
| `-1 >> 1`: the sign is a bit like others | -1 |
| BIT_COUNT(-1): of 64 bits, and of BYTES | 32, refused |
| SIGN of a FLOAT64 | an INT64 |
| UNICODE('') | -1 |
| MAX_BY, MIN_BY of a NULL | another row's |
| `'10%' LIKE '10\\%'` | the backslash was a character |

Source: the reference of operators and of bit, mathematical and string functions,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

MACROS: Mapping[str, str] = {
    "localcloud_bit_count(x)": "CAST(bit_count(CAST(x AS BIT)) AS BIGINT)",
    "localcloud_shift_right(x, n)": (
        "CASE WHEN n >= 64 THEN 0 WHEN n = 0 THEN x"
        " ELSE (CAST(x AS BIGINT) >> n) & (9223372036854775807 >> (n - 1)) END"
    ),
    "localcloud_sign(x)": "CASE WHEN sign(x) IS NULL THEN x ELSE sign(x) END",
    "localcloud_unicode(s)": "CASE WHEN s = '' THEN 0 ELSE unicode(s) END",
    "localcloud_like(s, pattern)": "like_escape(s, pattern, chr(92))",
}


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    kinds = (exp.BitwiseRightShift, exp.BitwiseCount, exp.Sign, exp.Unicode, exp.Like, exp.ArgMax, exp.ArgMin)
    for node in reversed(list(tree.find_all(*kinds))):
        new = _right(node)
        if new is not None:
            node.replace(new)
            found = True
    return found


def _right(node: exp.Expression) -> exp.Expression | None:
    match node:
        case exp.BitwiseRightShift():
            return call("localcloud_shift_right", node.this, node.expression)
        case exp.BitwiseCount():
            is_number = isinstance(node.this, exp.Literal | exp.Neg | exp.BitwiseNot)
            value = exp.cast(node.this.copy(), "INT64", dialect="bigquery") if is_number else node.this
            return call("localcloud_bit_count", value)
        case exp.ArgMax() | exp.ArgMin():
            name = "arg_max_null" if isinstance(node, exp.ArgMax) else "arg_min_null"
            return exp.Anonymous(this=name, expressions=[node.this.copy(), node.expression.copy()])
        case exp.Sign():
            return call("localcloud_sign", node.this, type_=None)
        case exp.Unicode():
            return call("localcloud_unicode", node.this)
        case exp.Like() if isinstance(node.expression, exp.Literal) and "\\" in node.expression.this:
            matched = call("localcloud_like", node.this, node.expression, type_="BOOL")
            return exp.Not(this=matched) if node.args.get("negate") else matched
    return None
