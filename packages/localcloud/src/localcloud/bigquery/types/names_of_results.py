"""Names that the columns of a result, or of a table in FROM, have twice.

In: a typed query (`typed`), with its stars written out. Out: what the service says of such names, or nothing.

Source: cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#duplicate_aliases.
"""

from __future__ import annotations

from collections import Counter

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.typed import is_unnamed


def twice_in_result(query: exp.Expression) -> str | None:
    """Return what is said of a query whose result is stored, as that of each job is, with a name twice."""
    twice = _twice(query)
    if not twice:
        return None
    found = ", ".join(sorted(twice))
    return f"Duplicate column names in the result are not supported. Found duplicate(s): {found}"


def ambiguous(select: exp.Select) -> str | None:
    """Return what is said of a column that a query in FROM has twice."""
    sources = {
        source.alias: twice for source in _sources(select) if source.alias and (twice := _twice(_query_of(source)))
    }
    if not sources:
        return None
    for column in select.find_all(exp.Column):
        if column.name.lower() in sources.get(column.table, ()) and column.parent_select is select:
            return f"Column name {column.name} is ambiguous"
    return None


def _sources(select: exp.Select) -> list[exp.Expression]:
    from_ = select.args.get("from_") or select.args.get("from")
    return [each.this for each in (from_, *(select.args.get("joins") or [])) if each is not None]


def _query_of(source: exp.Expression) -> exp.Expression | None:
    return source.this if isinstance(source, exp.Subquery) else None


def _twice(query: exp.Expression | None) -> set[str]:
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select) or any(value.is_star for value in query.selects):
        return set()
    names = Counter(value.alias_or_name.lower() for value in query.selects)
    return {name for name, count in names.items() if name and count > 1 and not is_unnamed(name)}
