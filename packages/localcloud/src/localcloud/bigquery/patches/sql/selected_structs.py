"""Patches `SELECT AS STRUCT f(x) AS n … ORDER BY n`: DuckDB would see a field of a struct, not an alias."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    selects = [
        select
        for select in tree.find_all(exp.Select)
        if select.args.get("kind") == "STRUCT" and all(each.alias_or_name for each in select.expressions)
    ]
    for select in selects:
        aliases = {each.alias: each.this for each in select.expressions if isinstance(each, exp.Alias)}
        for clause in filter(None, (select.args.get("order"), select.args.get("group"))):
            for column in list(clause.find_all(exp.Column)):
                if not column.table and column.name in aliases:
                    column.replace(aliases[column.name].copy())
        fields = [
            exp.PropertyEQ(this=exp.to_identifier(each.alias_or_name, quoted=True), expression=each.unalias().copy())
            for each in select.expressions
        ]
        select.set("kind", None)
        select.set("expressions", [exp.Struct(expressions=fields)])
    return bool(selects)
