"""Patches `SELECT o … WITH OFFSET o`: the column would be called `(o - 1)`, or be unknown without `AS element`."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nameless = [node for node in tree.find_all(exp.Unnest) if node.args.get("offset") and not node.args.get("alias")]
    for index, node in enumerate(nameless):
        node.set("alias", exp.TableAlias(columns=[exp.to_identifier(f"localcloud_element_{index}")]))
    names = {
        offset.name if isinstance(offset, exp.Identifier) else "offset"
        for offset in (node.args.get("offset") for node in tree.find_all(exp.Unnest))
        if offset
    }
    columns = [
        column
        for select in tree.find_all(exp.Select)
        for column in select.expressions
        if isinstance(column, exp.Column) and column.name in names
    ]
    for column in columns:
        column.replace(exp.alias_(column.copy(), column.name))
    return bool(columns or nameless)
