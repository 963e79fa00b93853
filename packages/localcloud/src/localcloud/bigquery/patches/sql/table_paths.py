"""Patches tables' paths and columns behind them.

| GoogleSQL | without it |
|---|---|
| `SELECT dataset.t.a FROM dataset.t` | refused: DuckDB knows the dataset by another name |
| `FROM my-project.dataset.t`, a project with dashes and no backticks | refused: a syntax error at the dash |
| ``SELECT `d.t_1`.a FROM d.t AS `d.t_1` ``, an alias with dots | refused: taken for the path of a table |

SQLAlchemy writes columns of a table that has no alias by its path, and aliases with the dots of their tables. A table
without alias has the last name of its path.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether it is concerned."""
    tables = list(tree.find_all(exp.Table))
    paths = {tuple(part.name for part in table.parts) for table in tables if not table.alias}
    paths = {path for path in paths if len(path) > 1}
    # Each step, whatever those before it find.
    return any([_quote_dashes(tables), _rename_aliases(tree, tables), _shorten(tree, paths)])


def _quote_dashes(tables: list[exp.Table]) -> bool:
    """Put parts with dashes into backticks."""
    parts = [part for table in tables for part in table.parts if isinstance(part, exp.Identifier)]
    dashed = [part for part in parts if "-" in part.name and not part.quoted]
    for part in dashed:
        part.set("quoted", True)
    return bool(dashed)


def _rename_aliases(tree: exp.Expression, tables: list[exp.Table]) -> bool:
    """Give aliases with dots, and the columns behind them, names without: parsing takes them for paths."""
    dotted = [table for table in tables if "." in table.alias]
    if not dotted:
        return False
    taken = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}
    names: dict[tuple[str, ...], str] = {}
    for table in dotted:
        path = tuple(table.alias.split("."))
        if path not in names:
            names[path] = "_".join(path)
            while names[path].lower() in taken:
                names[path] += "_"
            taken.add(names[path].lower())
        table.args["alias"].set("this", exp.to_identifier(names[path], quoted=True))
    for column in list(tree.find_all(exp.Column)):
        parts = tuple(part.name for part in column.parts)
        path = next((each for each in names if parts[: len(each)] == each and len(parts) > len(each)), ())
        if path:
            put_before(column, exp.to_identifier(names[path], quoted=True), column.parts[len(path) :])
    return True


def _shorten(tree: exp.Expression, paths: set[tuple[str, ...]]) -> bool:
    """Leave the last name of a table's path before a column."""
    found = False
    for column in list(tree.find_all(exp.Column)) if paths else []:
        parts = column.parts
        path = next((each for each in paths if tuple(part.name for part in parts[: len(each)]) == each), None)
        if path is None or len(parts) == len(path):
            continue
        put_before(column, parts[len(path) - 1], parts[len(path) :])
        found = True
    return found


def put_before(column: exp.Column, table: exp.Expression, parts: list[exp.Expression]) -> None:
    """Put a table's name before the parts of a column and its fields; the last part may be a chain of them."""
    first, *fields = parts
    if not fields and column.this is first:
        column.set("table", table.copy())
        column.set("db", None)
        column.set("catalog", None)
        return
    shorter: exp.Expression = exp.column(first.copy(), table=table.copy())
    for field in fields:
        shorter = exp.Dot(this=shorter, expression=field.copy())
    column.replace(shorter)
