"""Patches `INSERT ROW` of a MERGE, all columns of the source by their places: DuckDB has no word for it there."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether it is concerned."""
    whens = tree.args["whens"].expressions if isinstance(tree, exp.Merge) and tree.args.get("whens") else []
    inserts = [when.args["then"] for when in whens if isinstance(when.args.get("then"), exp.Insert)]
    rows = [insert for insert in inserts if isinstance(insert.this, exp.Var) and insert.this.name.upper() == "ROW"]
    for insert in rows:
        insert.set("this", None)
    return bool(rows)
