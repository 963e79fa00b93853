r"""Patches the backslash in patterns of LIKE: it takes the next `%`, `_` or backslash for a letter, in DuckDB for none.

https://cloud.google.com/bigquery/docs/reference/standard-sql/operators#like_operator. A pattern without a backslash,
written out, means the same in both.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

_BACKSLASH = "\\"


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether it is concerned."""
    found = False
    for like in list(tree.find_all(exp.Like)):
        pattern = like.expression
        is_plain = isinstance(pattern, exp.Literal) and _BACKSLASH not in pattern.name
        if isinstance(like.parent, exp.Escape) or is_plain or isinstance(pattern, exp.Any | exp.All):
            continue
        like.replace(exp.Escape(this=like.copy(), expression=exp.Literal.string(_BACKSLASH)))
        found = True
    return found
