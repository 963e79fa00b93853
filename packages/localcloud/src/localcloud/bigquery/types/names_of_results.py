"""Names that the columns of a result have twice.

In: a typed query (`typed`), with its stars written out. Out: what the service says of such names, or nothing.

Source: cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#duplicate_aliases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.typed import is_unnamed


def twice_in_result(query: exp.Expression) -> str | None:
    """Return what is said of a query whose result is a table or a view, with a name twice; rows may have one twice."""
    return said_of(_twice(query))


def twice_among(names: Iterable[str]) -> str | None:
    """Return what is said of a result that goes to a table, and has one of these names twice."""
    counts = Counter(name.lower() for name in names)
    return said_of({name for name, count in counts.items() if count > 1})


def said_of(twice: Collection[str]) -> str | None:
    """Return the service's sentence for these names; of none nothing."""
    if not twice:
        return None
    found = ", ".join(sorted(twice))
    said = "Duplicate column names in the result are not supported when a destination table is present."
    return f"{said} Found duplicate(s): {found}"


def _twice(query: exp.Expression | None) -> set[str]:
    while isinstance(query, exp.SetOperation | exp.Subquery):
        query = query.this
    if not isinstance(query, exp.Select) or any(value.is_star for value in query.selects):
        return set()
    names = Counter(value.alias_or_name.lower() for value in query.selects)
    return {name for name, count in names.items() if name and count > 1 and not is_unnamed(name)}
