"""Patches `STRUCT(a, t.b)`: its fields would have no names instead of `a` and `b`."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    columns = [
        column for node in tree.find_all(exp.Struct) for column in node.expressions if isinstance(column, exp.Column)
    ]
    for column in columns:
        name = exp.to_identifier(column.name, quoted=True)
        column.replace(exp.PropertyEQ(this=name, expression=column.copy()))
    return bool(columns)
