"""Patches what other databases understand and BigQuery does not: sqlglot's parser takes it, and DuckDB answers it.

`LISTAGG`, `x ILIKE y`, `DISTINCT ON`, `SEMI JOIN`, `CAST(x AS VARCHAR)`, a DELETE without WHERE, `SHOW TABLES`, and
`query('SELECT …')`, past whom a table belongs to.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

from localcloud.bigquery.language.check import refusal_of
from localcloud.untyped import Untyped

_TEMPORARY = re.compile(r"\w+___bqemu_temp_[0-9a-f]{32}__\w+")


def apply(routes: Untyped) -> None:
    """Refuse a statement, or those of a script, before they run, and conditions of policies before they are kept."""
    from bqemulator.row_access import policy

    original, validate = routes.execute_query_job, policy._validate_filter_predicate

    @functools.wraps(original)
    async def execute(project_id: str, job_id: str, bq_sql: str, *args: Untyped, **kwargs: Untyped) -> Untyped:
        check(bq_sql)
        return await original(project_id, job_id, bq_sql, *args, **kwargs)

    @functools.wraps(validate)
    def validate_checked(predicate: str) -> None:
        validate(predicate)
        check(f"SELECT {predicate}")

    routes.execute_query_job = execute
    policy._validate_filter_predicate = validate_checked


def temporary_functions(statement: str) -> set[str]:
    """Return the names that bqemulator gave to a script's own functions."""
    return set(_TEMPORARY.findall(statement))


def check(statements: str, known: Collection[str] = ()) -> None:
    """Refuse what is no GoogleSQL.

    Args:
        known: Names of functions that were made before, and belong to no dataset.

    Raises:
        InvalidQueryError: BigQuery refuses it.
        UnsupportedFeatureError: It names a function that is not offered here.
    """
    from bqemulator.domain.errors import InvalidQueryError, UnsupportedFeatureError

    refusal = refusal_of(statements, frozenset(known))
    if refusal is None:
        return
    if refusal.wrong:
        raise InvalidQueryError(refusal.wrong)
    raise UnsupportedFeatureError(f"The local cloud has no {refusal.missing}")
