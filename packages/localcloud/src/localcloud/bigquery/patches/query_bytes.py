"""Patches a query's `totalBytesProcessed`, which is 0: a cost estimate needs it.

BigQuery charges for every column that a query names, over all rows of its tables. In: a statement and a connection to
the stored tables. Out: a number of bytes in the sizes of https://cloud.google.com/bigquery/pricing#data (INT64 8,
STRING 2 + its UTF-8 length, …). Clusters are not pruned, so it is an upper bound, as a dry run's answer is.
"""

from __future__ import annotations

import functools

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.patches.kept_fields import asked_configuration
from localcloud.bigquery.types.columns import quoted
from localcloud.bigquery.types.trees import trees_of
from localcloud.statements import statement
from localcloud.untyped import Untyped

_FIXED_BYTES = {
    "BOOLEAN": 1,
    "BIGINT": 8,
    "INTEGER": 8,
    "SMALLINT": 8,
    "TINYINT": 8,
    "HUGEINT": 8,
    "DOUBLE": 8,
    "FLOAT": 8,
    "DATE": 8,
    "TIME": 8,
    "TIMESTAMP": 8,
    "TIMESTAMP WITH TIME ZONE": 8,
}
_NUMERIC_BYTES = 16
_STRING_OVERHEAD_BYTES = 2
_MINIMUM_BILLED_BYTES = 10 * 1024 * 1024


def apply(routes: Untyped) -> None:
    """Count the bytes of each query, and tell them with its job and its answer."""
    original = routes.execute_query_job
    attach = routes._attach_query_metadata

    @functools.wraps(original)
    async def execute(
        project_id: str, job_id: str, bq_sql: str, params: Untyped, ctx: Untyped, **kwargs: Untyped
    ) -> Untyped:
        size = estimate(bq_sql, project_id, ctx.engine)  # before a CREATE OR REPLACE changes it
        _check_limit(size)
        job = await original(project_id, job_id, bq_sql, params, ctx, **kwargs)
        write_bytes(job.statistics, size)
        return job

    def attach_with_bytes(response: dict[str, Untyped], job: Untyped) -> None:
        attach(response, job)
        response["totalBytesProcessed"] = (job.statistics or {}).get("totalBytesProcessed", "0")

    routes.execute_query_job = execute
    routes._attach_query_metadata = attach_with_bytes


def _check_limit(size: int) -> None:
    """Let a query pass that is charged no more bytes than its request allows.

    Raises:
        InvalidQueryError: It is charged more.
    """
    from bqemulator.domain.errors import InvalidQueryError

    query = asked_configuration().get("query")
    limit = query.get("maximumBytesBilled") if isinstance(query, dict) else None
    billed = _billed(size)
    if limit is not None and billed > int(limit):
        error = InvalidQueryError(f"Query exceeded limit for bytes billed: {limit}. {billed} or higher required.")
        error.bq_reason = "bytesBilledLimitExceeded"
        raise error


def _billed(size: int) -> int:
    return max(size, _MINIMUM_BILLED_BYTES) if size else 0


def write_bytes(statistics: dict[str, Untyped], size: int) -> None:
    """Fill in what a job says of its bytes."""
    billed = _billed(size)
    statistics["totalBytesProcessed"] = str(size)
    statistics.setdefault("query", {}).update(
        {"totalBytesProcessed": str(size), "totalBytesBilled": str(billed), "totalSlotMs": "0"}
    )


def estimate(statement: str, project: str, connection: Untyped) -> int:
    """Return the bytes that a statement reads; 0 when it reads no stored table or cannot be parsed."""
    return sum(_read_by(tree, project, connection) for tree in trees_of(statement))


def tables_read(statement: str, project: str) -> list[tuple[str, str, str]]:
    """Return project, dataset and name of each table that a statement reads; none when it cannot be parsed."""
    return sorted({table for tree in trees_of(statement) for table in _tables(tree, project)})


def tables_named(statement: str, project: str) -> set[tuple[str, str, str]]:
    """Return project, dataset and name of each table that a statement reads or writes; none of what is not parsed."""
    tables = (table for tree in trees_of(statement) for table in tree.find_all(exp.Table) if table.db)
    return {(table.catalog or project, table.db, table.name) for table in tables}


def _tables(tree: exp.Expression, project: str) -> dict[tuple[str, str, str], str]:
    """Return each table that is read, with its alias."""
    target = tree.find(exp.Table) if isinstance(tree, exp.Create | exp.Insert) else None
    return {
        ((node.catalog or project), node.db, node.name): node.alias_or_name
        for node in tree.find_all(exp.Table)
        if node.db and node is not target
    }


def _read_by(tree: exp.Expression, project: str, connection: Untyped) -> int:
    named = {identifier.name.lower() for identifier in tree.find_all(exp.Identifier)}
    star = any(not isinstance(node.parent, exp.Count) for node in tree.find_all(exp.Star))
    total = 0
    for (owner, dataset, table), alias in _tables(tree, project).items():
        rows_named = {column.name.lower() for column in tree.find_all(exp.Column) if not column.table}
        whole = star or alias.lower() in rows_named  # TO_JSON_STRING(t) reads every column of t
        for each in _found(connection, owner, dataset, table):
            total += table_bytes(connection, owner, dataset, each, None if whole else named)
    return total


def _found(connection: Untyped, project: str, dataset: str, table: str) -> list[str]:
    """Return the tables that a name stands for: several where it ends with a wildcard."""
    if not table.endswith("*"):
        return [table]
    found = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = ? AND starts_with(table_name, ?)",
        [f"{project}__{dataset}", table.removesuffix("*")],
    ).fetchall()
    return [name for (name,) in found if name != table.removesuffix("*")]


def table_bytes(connection: Untyped, project: str, dataset: str, table: str, columns: set[str] | None) -> int:
    """Return the bytes of some columns of a table (lower-case names; None: of all); 0 where there is no table."""
    schema = f"{project}__{dataset}"
    stored = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = ? AND table_name = ?", [schema, table]
    ).fetchall()
    chosen = [(name, kind) for name, kind in stored if columns is None or name.lower() in columns]
    if not chosen:
        return 0
    sizes = ", ".join(_size(quoted(name), kind) for name, kind in chosen)  # a sum of thousands of terms is too deep
    where = f"{quoted(schema)}.{quoted(table)}"
    row = connection.execute(
        statement("SELECT coalesce(list_sum([{sizes}]), 0) FROM {table}", sizes=sizes, table=where)
    ).fetchone()
    return int(row[0])


def _size(column: str, kind: str) -> str:
    if kind in _FIXED_BYTES:
        return f"{_FIXED_BYTES[kind]} * count({column})"
    if kind.startswith("DECIMAL("):
        return f"{_NUMERIC_BYTES} * count({column})"
    text = column if kind == "VARCHAR" else f"CAST({column} AS VARCHAR)"
    return f"coalesce(sum({_STRING_OVERHEAD_BYTES} + strlen({text})), 0)"
