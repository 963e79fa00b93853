"""Patches `DELETE t WHERE …`, which is `DELETE FROM t WHERE …`: DuckDB has no table there."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether it is concerned."""
    if not isinstance(tree, exp.Delete) or tree.this or not tree.args.get("tables"):
        return False
    (table,) = tree.args["tables"]
    tree.set("tables", None)
    tree.set("this", table)
    return True
