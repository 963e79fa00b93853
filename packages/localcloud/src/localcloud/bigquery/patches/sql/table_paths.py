"""Patches columns behind a table's path, `SELECT dataset.t.a FROM dataset.t`: DuckDB knows the dataset by another name.

SQLAlchemy writes every column of a table that has no alias so. A table without alias has the last name of its path.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether it is concerned."""
    paths = {tuple(part.name for part in table.parts) for table in tree.find_all(exp.Table) if not table.alias}
    paths = {path for path in paths if len(path) > 1}
    found = False
    for column in list(tree.find_all(exp.Column)) if paths else []:
        parts = column.parts
        path = next((each for each in paths if tuple(part.name for part in parts[: len(each)]) == each), None)
        if path is None or len(parts) == len(path):
            continue
        table, first, *fields = parts[len(path) - 1 :]
        if not fields:  # the last part may be a chain of a struct's fields
            column.set("table", table.copy())
            column.set("db", None)
            column.set("catalog", None)
        else:
            shorter: exp.Expression = exp.column(first.copy(), table=table.copy())
            for field in fields:
                shorter = exp.Dot(this=shorter, expression=field.copy())
            column.replace(shorter)
        found = True
    return found
