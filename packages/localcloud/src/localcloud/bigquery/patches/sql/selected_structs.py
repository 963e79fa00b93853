"""Patches the fields of structs that a query makes: those without a name, and those that are aliases too.

| GoogleSQL | without it |
|---|---|
| `SELECT AS STRUCT f(x) AS n … ORDER BY n` | n is a field of a struct |
| `SELECT AS STRUCT 1, 'a'`: fields without names | `1`, `a` |
| `STRUCT(x, 'a')`: x, and a field without a name, in results `_field_2` | `_1` |
| `SELECT AS STRUCT * EXCEPT (y) FROM t`, `(SELECT AS STRUCT t.*)` | refused |
| `(SELECT AS STRUCT t.* EXCEPT (y))`, a row of another query's table without columns, is refused by name | refused |
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.refusals import refuse

_ROW = "localcloud_row"


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    selects = [select for select in tree.find_all(exp.Select) if select.args.get("kind") == "STRUCT"]
    stars = [select for select in selects if any(each.is_star for each in select.expressions)]
    for select in reversed(stars):  # inner ones first
        _select_row(select)
    selects = [select for select in selects if select not in stars]
    for select in selects:
        aliases = {each.alias: each.this for each in select.expressions if isinstance(each, exp.Alias)}
        for clause in filter(None, (select.args.get("order"), select.args.get("group"))):
            for column in list(clause.find_all(exp.Column)):
                if not column.table and column.name in aliases:
                    column.replace(aliases[column.name].copy())
        select.set("kind", None)
        select.set("expressions", [exp.Struct(expressions=_named(select.expressions))])
    structs = [
        struct for struct in tree.find_all(exp.Struct) if len({bool(_name(each)) for each in struct.expressions}) > 1
    ]
    for struct in reversed(structs):  # inner ones first
        struct.set("expressions", _named(struct.expressions))
    return bool(selects or stars or structs)


def _select_row(select: exp.Expression) -> None:
    """Make a struct of what stars stand for: a row of a table is one."""
    select.set("kind", None)
    if select.args.get("from_") or select.args.get("from"):
        rows = exp.Subquery(this=select.copy(), alias=exp.TableAlias(this=exp.to_identifier(_ROW)))
        select.replace(exp.select(exp.column(_ROW)).from_(rows))
        return
    (star, *others) = select.expressions
    if others or not isinstance(star, exp.Column) or star.this.args.get("except_") or star.this.args.get("replace"):
        refuse("SELECT AS STRUCT of a star beside others, or without columns, and without FROM")
    select.set("expressions", [exp.column(star.table)])


def _named(fields: list[exp.Expression]) -> list[exp.Expression]:
    """Return fields with names: those without one are called after their place, as in results; all, they have none."""
    names = [_name(each) for each in fields]
    if not any(names):
        return [each.copy() for each in fields]
    return [
        each.copy()
        if isinstance(each, exp.PropertyEQ)
        else exp.PropertyEQ(
            this=exp.to_identifier(name or f"_field_{place}", quoted=True), expression=each.unalias().copy()
        )
        for place, (name, each) in enumerate(zip(names, fields, strict=True), start=1)
    ]


def _name(field: exp.Expression) -> str:
    """Return the name of a field; "" where it has none."""
    if isinstance(field, exp.Alias | exp.PropertyEQ):
        return str(field.alias or field.this.name)
    return str(field.name) if isinstance(field, exp.Column | exp.Dot) else ""
