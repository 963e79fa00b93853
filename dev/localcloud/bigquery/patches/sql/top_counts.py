"""Mends APPROX_TOP_COUNT: it would give values without their counts."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = list(tree.find_all(exp.ApproxTopK))
    for node in found:
        node.replace(exp.Anonymous(this="localcloud_top_count", expressions=[node.this.copy(), node.expression.copy()]))
    return bool(found)
