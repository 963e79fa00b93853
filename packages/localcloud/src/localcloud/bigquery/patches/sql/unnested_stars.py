"""Patches `SELECT * FROM UNNEST([STRUCT(1 AS a, 2 AS b)])`: it would have one column, a struct, instead of `a` and `b`.

A field without a name, as of `(1, 2)`, is the column `f0_`, `f1_`. Concerned is an array that is written out, alone in
its FROM clause.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

_NAME = "localcloud_element"


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    expanded = [_expand(select) for select in tree.find_all(exp.Select)]
    return any(expanded)


def _expand(select: exp.Select) -> bool:
    """Put the fields in the place of the star."""
    source = select.args.get("from_")
    unnest = source.this if source is not None and not select.args.get("joins") else None
    star = select.expressions[0] if len(select.expressions) == 1 else None
    if not isinstance(unnest, exp.Unnest) or unnest.args.get("offset"):
        return False
    if not isinstance(star, exp.Star) or any(star.args.values()):  # of EXCEPT, REPLACE
        return False
    array = unnest.expressions[0].unnest()
    first = array.expressions[0].unnest() if isinstance(array, exp.Array) and array.expressions else None
    if not isinstance(first, exp.Struct | exp.Tuple):
        return False
    fields = [_named(field, place) for place, field in enumerate(first.expressions)]
    first.replace(exp.Struct(expressions=fields))
    alias = unnest.args.get("alias")
    columns = alias.args.get("columns") if alias is not None else None
    element = columns[0].name if columns else _NAME
    if not columns:
        unnest.set("alias", exp.TableAlias(columns=[exp.to_identifier(element, quoted=True)]))
    named = [
        exp.alias_(exp.column(field.this.name, table=element, quoted=True), field.this.name, quoted=True)
        for field in fields
    ]
    select.set("expressions", named)
    return True


def _named(field: exp.Expression, place: int) -> exp.PropertyEQ:
    """Return a struct's field with its name, or that of an unnamed column."""
    if isinstance(field, exp.PropertyEQ):
        return field.copy()
    name = field.name if isinstance(field, exp.Column) else f"f{place}_"
    return exp.PropertyEQ(this=exp.to_identifier(name, quoted=True), expression=field.copy())
