"""Patches `FROM t, UNNEST(t.x) AS x`: to DuckDB `x` is ambiguous; here it is the element, as an alias comes first.

In: a statement's tree. Out: elements that are called as the array's column have another name; what SELECT gives keeps
its own. A statement stays as it is where `x` stands in a subquery with tables of its own, or beside `*`. Source:
"Ambiguous aliases" in cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

_NAME = "localcloud_element_of_"
_OWN_NAMES = (exp.Order, exp.Group, exp.Having, exp.Qualify)
"""Clauses in which a name given in SELECT comes before a column's."""


def rewrite(tree: exp.Expression) -> bool:
    """Rewrite a statement's tree; tell whether anything in it is concerned."""
    found = False
    for select in reversed(list(tree.find_all(exp.Select))):  # inner ones first
        for number, unnest in enumerate(_unnests(select)):
            alias = _alias_of(unnest)
            if alias is not None and _is_named_as_its_column(unnest, alias.name):
                found = _rename(select, unnest, alias, f"{_NAME}{alias.name}_{number}") or found
    return found


def _unnests(select: exp.Select) -> list[exp.Unnest]:
    sources = [select.args["from_"].this] if select.args.get("from_") else []
    sources += [join.this for join in select.args.get("joins") or []]
    return [source for source in sources if isinstance(source, exp.Unnest)]


def _alias_of(unnest: exp.Unnest) -> exp.Identifier | None:
    alias = unnest.args.get("alias")
    if alias is None:
        return None
    columns = alias.args.get("columns") or []
    return columns[0] if len(columns) == 1 else alias.this


def _is_named_as_its_column(unnest: exp.Unnest, name: str) -> bool:
    return any(column.name.lower() == name.lower() for column in unnest.find_all(exp.Column))


def _rename(select: exp.Select, unnest: exp.Unnest, alias: exp.Identifier, name: str) -> bool:
    """Give an element another name, wherever its SELECT uses it; tell whether that could be done."""
    if select.is_star:
        return False
    uses = [first for first in _firsts(select, unnest) if first.name.lower() == alias.name.lower()]
    if any(_is_hidden(first, select) for first in uses):
        return False
    own = next((each for each in select.expressions if each.alias_or_name.lower() == alias.name.lower()), None)
    is_itself = own is None or any(own.unalias() is use.parent for use in uses)
    for use in uses:
        clause = use.find_ancestor(*_OWN_NAMES, exp.Select)
        if isinstance(clause, _OWN_NAMES) and clause.parent is select and not is_itself:
            continue
        column = use.parent
        if isinstance(column, exp.Column) and column.parent is select and not column.table:
            column.replace(exp.alias_(exp.column(name), exp.to_identifier(use.name, quoted=True)))
        elif isinstance(column, exp.Column) and isinstance(column.parent, exp.Group):
            # In parentheses: sqlglot would write the name that SELECT gives, which to DuckDB is the array's column.
            column.replace(exp.paren(exp.column(name)))
        else:
            use.replace(exp.to_identifier(name))
    alias.replace(exp.to_identifier(name))
    return True


def _firsts(select: exp.Select, unnest: exp.Unnest) -> Iterator[exp.Identifier]:
    """Yield the first name of each column that a SELECT reads where an UNNEST's element is seen."""
    for part in _parts(select, unnest):
        for column in part.find_all(exp.Column):
            yield column.parts[0]


def _parts(select: exp.Select, unnest: exp.Unnest) -> Iterator[exp.Expression]:
    """Yield the parts of a SELECT that see an UNNEST's element: of its sources, those behind it."""
    joins = select.args.get("joins") or []
    place = next((place for place, join in enumerate(joins) if join.this is unnest), -1)
    for number, join in enumerate(joins):
        if number > place and isinstance(join.this, exp.Unnest):
            yield join.this
        if number >= place and join.args.get("on") is not None:
            yield join.args["on"]
    for name, value in select.args.items():
        if name not in {"with_", "from_", "joins"}:
            yield from (
                each for each in (value if isinstance(value, list) else [value]) if isinstance(each, exp.Expression)
            )


def _is_hidden(use: exp.Identifier, select: exp.Select) -> bool:
    """Return whether a subquery's own table may have a column of the name."""
    inner = use.find_ancestor(exp.Select)
    while inner is not None and inner is not select:
        joins = inner.args.get("joins") or []
        sources = [*([inner.args["from_"].this] if inner.args.get("from_") else []), *(join.this for join in joins)]
        if not all(isinstance(source, exp.Unnest) for source in sources):
            return True
        inner = inner.find_ancestor(exp.Select)
    return False
