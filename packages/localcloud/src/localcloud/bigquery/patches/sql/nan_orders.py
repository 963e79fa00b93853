"""Patches ORDER BY: NaN comes before all other numbers, where DuckDB has it behind them.

Another key goes before each that can be NaN (`types.expressions`). The rows of UNION and of SELECT DISTINCT are put in
order around them, where DuckDB takes keys that are no columns. As they were stay windows of RANGE with a distance, and
the elements of an aggregate with DISTINCT: DuckDB has no second key there; and a number of a column behind a `*` whose
columns are not known. Source: the reference of data types,
cloud.google.com/bigquery/docs/reference/standard-sql.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call
from localcloud.bigquery.types.expressions import Expressions

MACROS: Mapping[str, str] = {
    "localcloud_nan_first(x)": (
        "CASE WHEN typeof(x) NOT IN ('DOUBLE', 'FLOAT') THEN 1 WHEN x IS NULL THEN NULL"
        " WHEN isnan(TRY_CAST(x AS DOUBLE)) THEN 0 ELSE 1 END"
    ),
}
INSTEAD = "localcloud_instead"
"""Key of a tree's meta: the query that stands in its place."""
_OUTSIDE = ("order", "limit", "offset", "with_", "with")


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    known, found = Expressions(tree), False
    for order in reversed(list(tree.find_all(exp.Order))):
        found = _patch(order, known) or found
    return found


def _patch(order: exp.Order, known: Expressions) -> bool:
    query = order.parent
    if isinstance(order.this, exp.Distinct) or _has_distance(query):
        return False
    selects = known.columns_of(query) if isinstance(query, exp.Query) else []
    asked = [(each, _values_of(each.this, query, known)) for each in order.expressions if isinstance(each, exp.Ordered)]
    concerned = {id(each): values[0] for each, values in asked if any(map(known.can_be_nan, values))}
    if not concerned:
        return False
    around = isinstance(query, exp.SetOperation) or (isinstance(query, exp.Select) and query.args.get("distinct"))
    if around and not all(_name_of(each.this, selects) for each in order.expressions):
        return False
    keys: list[exp.Expression] = []
    for each in order.expressions:
        if id(each) in concerned:
            value = exp.column(_name_of(each.this, selects), quoted=True) if around else concerned[id(each)]
            key = each.copy()
            key.set("this", call("localcloud_nan_first", value, type_=None))
            keys.append(key)
        keys.append(_by_name(each, selects) if around else each)
    order.set("expressions", keys)
    if around:
        _order_around(query)
    return True


def _has_distance(query: exp.Expression | None) -> bool:
    spec = query.args.get("spec") if isinstance(query, exp.Window) else None
    if spec is None or (spec.args.get("kind") or "").upper() != "RANGE":
        return False
    return any(isinstance(spec.args.get(name), exp.Expression) for name in ("start", "end"))


def _values_of(key: exp.Expression, query: exp.Expression | None, known: Expressions) -> list[exp.Expression]:
    """Return what a key stands for, which may be a column's number or name in the result; of a UNION in each part."""
    if not isinstance(query, exp.Query):
        return [key]
    index = _index_of(key, known.columns_of(query))
    if index is None:
        return [key]
    return [columns[index].unalias() for columns in _parts_of(query, known) if index < len(columns)]


def _parts_of(query: exp.Expression, known: Expressions) -> list[list[exp.Expression]]:
    if isinstance(query, exp.SetOperation):
        return [*_parts_of(query.left, known), *_parts_of(query.right, known)]
    inner = query.unnest()
    return [known.columns_of(inner)] if isinstance(inner, exp.Query) else []


def _index_of(key: exp.Expression, selects: list[exp.Expression]) -> int | None:
    if isinstance(key, exp.Literal) and not key.is_string and 0 < int(key.this) <= len(selects):
        return int(key.this) - 1
    if isinstance(key, exp.Column) and not key.table:
        return next((i for i, each in enumerate(selects) if each.alias == key.name), None)
    return None


def _name_of(key: exp.Expression, selects: list[exp.Expression]) -> str:
    """Return the name of the column of the result that a key stands for; "" for none."""
    if isinstance(key, exp.Literal) and not key.is_string and 0 < int(key.this) <= len(selects):
        return str(selects[int(key.this) - 1].alias_or_name)
    is_column = isinstance(key, exp.Column) and key.name in {each.alias_or_name for each in selects}
    return str(key.name) if is_column else ""


def _by_name(ordered: exp.Ordered, selects: list[exp.Expression]) -> exp.Ordered:
    named = ordered.copy()
    named.set("this", exp.column(_name_of(ordered.this, selects), quoted=True))
    return named


def _order_around(query: exp.Query) -> None:
    """Put a query behind FROM of another, which has its order and limit; the tree's own root stays the same object."""
    inner = query.copy()
    for name in _OUTSIDE:
        inner.set(name, None)
    outer = exp.select("*").from_(exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier("localcloud"))))
    for name in _OUTSIDE:
        if query.args.get(name) is not None:
            outer.set(name, query.args[name].copy())
    if query.parent is not None:
        query.replace(outer)
    elif isinstance(query, exp.Select):
        query.args.clear()
        for name, value in outer.args.items():
            query.set(name, value)
    else:
        query.meta[INSTEAD] = outer
