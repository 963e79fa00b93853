"""The trees of GoogleSQL, for what has nothing to say of a text that cannot be parsed, as bqemulator does."""

from __future__ import annotations

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp


def trees_of(script: str) -> list[exp.Expression]:
    """Return the trees of a script's statements; none where one cannot be parsed, or is nested too deep for it."""
    try:
        return [tree for tree in sqlglot.parse(script, read="bigquery") if tree is not None]
    except (sqlglot.errors.SqlglotError, RecursionError):
        return []


def only_tree(statement: str) -> exp.Expression | None:
    """Return the tree of a statement; None where it cannot be parsed, or is several."""
    trees = trees_of(statement)
    return trees[0] if len(trees) == 1 else None
