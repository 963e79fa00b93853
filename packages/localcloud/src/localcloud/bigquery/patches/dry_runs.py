"""Patches dry runs: they run a SELECT to its end, and do not look inside CREATE TABLE … AS SELECT.

They also store a job, so that the real one of the same id would be refused.
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches import signatures, unnested_fields
from localcloud.bigquery.patches.query_bytes import estimate, write_bytes
from localcloud.bigquery.types.trees import only_tree
from localcloud.untyped import Untyped


def apply(routes: Untyped) -> None:
    """Let a dry run check a whole statement, and run and store nothing."""
    respond = routes._dry_run_response
    build = routes._build_dry_run_query_response

    async def dry_run_response(*, bq_sql: str, **kwargs: Untyped) -> Untyped:
        where, parameters = (kwargs["project_id"], kwargs["ctx"]), kwargs["query_params"] or ()
        named = unnested_fields.named(bq_sql, *where, parameters)
        signatures.check(named, parameters, *where)
        select = _select_of(named)
        probe = named if select is None else f"SELECT * FROM (\n{select}\n) WHERE FALSE"  # noqa: S608
        response = await respond(bq_sql=probe, **kwargs)
        size = estimate(bq_sql, kwargs["project_id"], kwargs["ctx"].engine)
        response["totalBytesProcessed"] = str(size)
        response["statementType"] = routes.classify_statement_type(bq_sql)
        return response

    async def build_response(**kwargs: Untyped) -> Untyped:
        response = await build(**kwargs)
        size = estimate(kwargs["bq_sql"], kwargs["project_id"], kwargs["ctx"].engine)
        write_bytes(response["statistics"], size)
        kwargs["ctx"].catalog.delete_job(kwargs["project_id"], kwargs["job_id"])
        return response

    routes._dry_run_response = dry_run_response
    routes._build_dry_run_query_response = build_response


def _select_of(statement: str) -> str | None:
    """Return the query inside a SELECT or CREATE TABLE … AS SELECT; None for anything else."""
    tree = only_tree(statement)
    if isinstance(tree, exp.Query):
        return statement.strip().rstrip(";")
    if isinstance(tree, exp.Create) and isinstance(tree.expression, exp.Query):
        return str(tree.expression.sql(dialect="bigquery"))
    return None
