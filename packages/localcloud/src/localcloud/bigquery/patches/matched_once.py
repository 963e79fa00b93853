"""Patches UPDATE … FROM and MERGE: a row that several rows of the source would change took the last one's values.

In: a statement in DuckDB's SQL and its parameters, about to run. Out: it runs, or the service's error where a row of
the target meets more than one of the source. Every row is looked for before, by the table's own row numbers.

https://cloud.google.com/bigquery/docs/reference/standard-sql/dml-syntax#update_statement, #merge_statement
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.untyped import Untyped

WORDS = "UPDATE/MERGE must match at most one source row for each target row"
_CHANGES = re.compile(r"\s*(?:UPDATE\b.*\bFROM\b|MERGE\b)", re.IGNORECASE | re.DOTALL)
_QUESTION = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|\?""")
_NUMBERED = re.compile(r"""'(?:[^']|'')*'|"[^"]*"|\$([0-9]+)""")


def apply(engine: Untyped) -> None:
    """Look before each of them.

    Args:
        engine: The class of what runs statements.
    """
    from bqemulator.domain.errors import InvalidQueryError, UnsupportedFeatureError

    execute = engine.execute

    @functools.wraps(execute)
    def execute_once(self: Untyped, sql: str, parameters: Sequence[Untyped] | None = None) -> Untyped:
        if not _CHANGES.match(sql):
            return execute(self, sql, parameters)
        try:
            look = look_for_more(sql)
        except sqlglot.ParseError as error:
            raise UnsupportedFeatureError("The local cloud has no way to look into this UPDATE or MERGE") from error
        if look is not None:
            text, places = look
            values = [(parameters or [])[place] for place in places]
            if execute(self, text, values or None).fetchone()[0]:
                raise InvalidQueryError(WORDS)
        return execute(self, sql, parameters)

    engine.execute = execute_once


def look_for_more(sql: str) -> tuple[str, list[int]] | None:
    """Return the query that tells whether a row would be changed twice, and which parameters it takes, from 0.

    None: the statement has no second table.

    Raises:
        sqlglot.ParseError: It is not read.
    """
    numbers = itertools.count(1)
    numbered = _QUESTION.sub(lambda found: found.group() if len(found.group()) > 1 else f"${next(numbers)}", sql)
    tree = sqlglot.parse_one(numbered, read="duckdb")
    matched = _matched(tree)
    if matched is None:
        return None
    source, condition = matched
    target = tree.this.copy()
    row = exp.column("rowid", table=exp.to_identifier(target.alias_or_name, quoted=True))
    each = exp.select("1").from_(target).join(source, join_type="cross").where(condition).group_by(row)
    twice = each.having("COUNT(*) > 1").subquery("twice")
    query = exp.select("COUNT(*)").from_(twice)
    places: list[int] = []

    def place(found: re.Match[str]) -> str:
        if found.group(1) is None:
            return found.group()
        places.append(int(found.group(1)) - 1)
        return "?"

    return _NUMBERED.sub(place, query.sql(dialect="duckdb")), places


def _matched(tree: exp.Expression) -> tuple[exp.Expression, exp.Expression] | None:
    """Return the other tables of a statement, and the condition under which a pair of rows is a change."""
    if isinstance(tree, exp.Update):
        source, where = tree.args.get("from_"), tree.args.get("where")
        return (source.this.copy(), where.this.copy()) if source is not None and where is not None else None
    if not isinstance(tree, exp.Merge):
        return None
    whens = [when for when in tree.args["whens"].expressions if when.args.get("matched")]
    if not whens:
        return None
    changes = exp.or_(*(when.args.get("condition") or exp.true() for when in whens))
    return tree.args["using"].copy(), exp.and_(tree.args["on"].copy(), changes)
