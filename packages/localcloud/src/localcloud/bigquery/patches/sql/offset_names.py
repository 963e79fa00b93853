"""Patches `WITH OFFSET AS o`: DuckDB counts from one, and whatever is called `o` anywhere would be lessened by one.

Also what another SELECT made of it, which then was -1, and columns of other tables with that name; `*` would show it
counted from one, and an array of structs beside it was refused. Here a subquery counts in its place, under a name that
nothing else has.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.sql.calls import call

MACROS: Mapping[str, str] = {"localcloud_elements(a)": "a"}
"""An array whose elements sqlglot does not see: of structs it would make columns, beside no count."""


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    nodes = [node for node in tree.find_all(exp.Unnest) if node.args.get("offset")]
    wholes = {column.name.lower() for column in tree.find_all(exp.Column) if not column.table}
    for index, node in reversed(list(enumerate(nodes))):  # inner ones first
        join = node.parent
        if isinstance(join, exp.Join) and join.side and not join.args.get("on") and not join.args.get("using"):
            join.set("on", exp.true())
        node.replace(_counted(node, index, wholes))
    return bool(nodes)


def _counted(node: exp.Unnest, index: int, wholes: set[str]) -> exp.Expression:
    """Return the subquery in the place of an UNNEST; `wholes` are the names of columns that the statement reads."""
    offset = node.args["offset"]
    place = offset.copy() if isinstance(offset, exp.Identifier) else exp.to_identifier("offset", quoted=True)
    count = exp.to_identifier(f"localcloud_offset_{index}")
    named = _element_of(node)
    element = named or exp.to_identifier(f"localcloud_element_{index}")
    has_fields = bool(node.args.get("explode_array")) and element.name.lower() not in wholes
    array = call("localcloud_elements", node.expressions[0], type_=None)
    unnest = exp.Unnest(
        expressions=[array if node.args.get("explode_array") else each.copy() for each in node.expressions],
        alias=exp.TableAlias(columns=[element.copy()]),
        offset=count.copy(),
    )
    value = exp.Column(this=exp.Star(), table=element.copy()) if has_fields else exp.column(element.copy())
    query = exp.Select(expressions=[value, exp.alias_(exp.column(count), place)]).from_(unnest)
    name = element.copy() if has_fields and named else exp.to_identifier(f"localcloud_array_{index}")
    return exp.Subquery(this=query, alias=exp.TableAlias(this=name))


def _element_of(node: exp.Unnest) -> exp.Identifier | None:
    alias = node.args.get("alias")
    columns = alias.args.get("columns") if alias is not None else None
    return columns[0] if columns else (alias.this if alias is not None else None)
