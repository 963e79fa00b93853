"""Patches what DuckDB takes and the service does not: values of types that do not fit, names and signs it has not.

`WHERE id = '5'` of an INT64, `COALESCE(1, 'a')`, a column's new name in WHERE, `%` and `==` had answers.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[import-not-found]

from localcloud.bigquery.types.signatures import not_offered, refusal
from localcloud.bigquery.types.typed import Columns, type_of_field, typed_query
from localcloud.untyped import Untyped

_MOST_CHARACTERS = 100_000
"""Of a statement that is looked at: one of 1,000 columns and half as long takes a second."""

_Translate = Callable[..., Awaitable[str]]


def apply(executor: Untyped) -> None:
    """Refuse such statements before they are translated, also those of scripts."""
    from bqemulator.scripting import interpreter

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = _checked(module.rewrite_and_translate_statement)


def _checked(translate: _Translate) -> _Translate:
    @functools.wraps(translate)
    async def translate_checked(bq_sql: str, **kwargs: Untyped) -> str:
        from bqemulator.domain.errors import InvalidQueryError, UnsupportedFeatureError

        wrong, missing = complaints(bq_sql, lambda table: _columns_of(table, kwargs["project_id"], kwargs["ctx"]))
        if wrong:
            raise InvalidQueryError(wrong)
        if missing:
            raise UnsupportedFeatureError(f"The local cloud has no {missing}")
        return str(await translate(bq_sql, **kwargs))

    return translate_checked


def complaints(statement: str, columns_of: Callable[[exp.Table], Columns | None]) -> tuple[str | None, str | None]:
    """Return what the service says of a statement that it refuses, and what of one is not offered here.

    Args:
        statement: In GoogleSQL.
        columns_of: Gives the columns of a table that it reads; None: they are not known.
    """
    if len(statement) > _MOST_CHARACTERS:
        return None, None
    try:
        if said := _wrong_sign(statement):
            return said, None
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return None, None  # bqemulator says what is wrong with it
    if len(trees) != 1 or trees[0] is None:
        return None, None
    query = typed_query(trees[0], columns_of)
    return (None, None) if query is None else (refusal(query), not_offered(query))


def _wrong_sign(statement: str) -> str | None:
    """Return what is said of signs that GoogleSQL does not have, and the parser of sqlglot takes."""
    for token in sqlglot.tokenize(statement, read="bigquery"):
        if token.token_type == TokenType.MOD and token.text == "%":
            return f'Syntax error: Illegal input character "%" at [{token.line}:{token.col}]'
        if token.token_type == TokenType.EQ and token.text == "==":
            return f'Syntax error: Unexpected "==" at [{token.line}:{token.col}]'
    return None


def _columns_of(table: exp.Table, project: str, ctx: Untyped) -> Columns | None:
    """Return the columns of a table of the catalog with their types; None where there is none of its name."""
    from bqemulator.domain.errors import DomainError

    if not table.db or not table.name:
        return None
    try:
        stored = ctx.catalog.get_table(table.catalog or project, table.db, table.name)
        return {field.name: type_of_field(field) for field in stored.schema_.fields} if stored else None
    except DomainError:
        return None
