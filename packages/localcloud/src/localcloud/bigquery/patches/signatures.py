"""Patches what DuckDB takes and the service does not: values of types that do not fit, names and signs it has not.

`WHERE id = '5'` of an INT64, also by a parameter, `COALESCE(1, 'a')`, `UPDATE t SET id = 'x'`, a column's new name in
WHERE, `%` and `==` had answers.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.patches import language
from localcloud.bigquery.types.assignments import wrong_value
from localcloud.bigquery.types.names_of_results import twice_in_result
from localcloud.bigquery.types.parameters import give_types, number_positions
from localcloud.bigquery.types.signatures import not_offered, refusal
from localcloud.bigquery.types.typed import type_of_field, typed_queries
from localcloud.bigquery.types.written import Columns, ColumnsOf
from localcloud.untyped import Untyped

MOST_CHARACTERS = 100_000
"""Of a statement that is looked at: one of 1,000 columns and half as long takes a second."""

_Translate = Callable[..., Awaitable[str]]
_Parameters = Sequence[Mapping[str, Any]]
_PARAMETERS: contextvars.ContextVar[_Parameters] = contextvars.ContextVar("query parameters", default=())
"""Those of the statement that is about to be translated, as REST sends them."""


def apply(executor: Untyped) -> None:
    """Refuse such statements before they are translated, also those of scripts."""
    from bqemulator.scripting import interpreter

    for module in (executor, interpreter):
        module.rewrite_and_translate_statement = _checked(module.rewrite_and_translate_statement)
    run = executor._run_single_sql

    @functools.wraps(run)
    async def run_with_parameters(
        project_id: str, bq_sql: str, query_params: _Parameters | None, *args: Untyped, **kwargs: Untyped
    ) -> Untyped:
        token = _PARAMETERS.set(query_params or ())
        try:
            return await run(project_id, bq_sql, query_params, *args, **kwargs)
        finally:
            _PARAMETERS.reset(token)

    executor._run_single_sql = run_with_parameters


def current_parameters() -> _Parameters:
    """Return those of the statement that is about to be translated, as REST sends them."""
    return _PARAMETERS.get()


def _checked(translate: _Translate) -> _Translate:
    @functools.wraps(translate)
    async def translate_checked(bq_sql: str, **kwargs: Untyped) -> str:
        check(bq_sql, _PARAMETERS.get(), kwargs["project_id"], kwargs["ctx"])
        return str(await translate(bq_sql, **kwargs))

    return translate_checked


def check(statement: str, parameters: _Parameters, project: str, ctx: Untyped) -> None:
    """Refuse a statement as the service does, before it runs.

    Args:
        parameters: As REST sends them.

    Raises:
        InvalidQueryError: The service refuses it.
        UnsupportedFeatureError: It is more than is offered here.
    """
    from bqemulator.domain.errors import InvalidQueryError, UnsupportedFeatureError

    language.check(statement, language.temporary_functions(statement))
    wrong, missing = complaints(statement, lambda table: columns_of_table(table, project, ctx), parameters)
    if wrong:
        raise InvalidQueryError(wrong)
    if missing:
        raise UnsupportedFeatureError(f"The local cloud has no {missing}")


def complaints(statement: str, columns_of: ColumnsOf, parameters: _Parameters = ()) -> tuple[str | None, str | None]:
    """Return what the service says of a statement that it refuses, and what of one is not offered here.

    Args:
        statement: In GoogleSQL.
        columns_of: Gives the columns of a table that it reads or changes; None: they are not known.
        parameters: As REST sends them; without those of a statement nothing is said of them.
    """
    if len(statement) > MOST_CHARACTERS:
        return None, None
    try:
        trees = sqlglot.parse(number_positions(statement) if parameters else statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return None, None  # bqemulator says what is wrong with it
    if len(trees) != 1 or trees[0] is None:
        return None, None
    queries = typed_queries(give_types(trees[0], parameters) if parameters else trees[0], columns_of)
    wrong = (refusal(query) or wrong_value(query) or _twice(trees[0], query) for query in queries)
    return next(filter(None, wrong), None), next(filter(None, map(not_offered, queries)), None)


def _twice(tree: exp.Expression, query: exp.Expression) -> str | None:
    return twice_in_result(query) if isinstance(tree, exp.Create) else None


def columns_of_table(table: exp.Table, project: str, ctx: Untyped) -> Columns | None:
    """Return the columns of a table of the catalog with their types; None where there is none of its name."""
    from bqemulator.domain.errors import DomainError

    if not table.db or not table.name:
        return None
    try:
        stored = ctx.catalog.get_table(table.catalog or project, table.db, table.name)
        return {field.name: type_of_field(field) for field in stored.schema_.fields} if stored else None
    except DomainError:
        return None
