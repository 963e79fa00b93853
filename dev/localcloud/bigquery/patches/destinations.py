"""Mends `configuration.query.destinationTable`: it is taken, and nothing is written to it.

In: a SELECT that ran, its destination and dispositions. Out: the table, and the job with it as its result. Partitioning
and clustering of the destination are a layout without effect here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp

from localcloud.bigquery.types.columns import column_types, quoted
from localcloud.bigquery.types.results import registered
from localcloud.bigquery.types.tables import make_table
from localcloud.statements import statement
from localcloud.untyped import Untyped


@dataclass(frozen=True, kw_only=True)
class _Destination:
    project: str
    dataset: str
    table: str
    write: str
    create: str

    def __str__(self) -> str:
        return f"{self.project}:{self.dataset}.{self.table}"

    def require(self, context: Untyped) -> None:
        """Check that it may be written.

        Raises:
            NotFoundError: its dataset is missing, or itself where it may not be made.
            AlreadyExistsError: it has rows where it must be empty.
        """
        from bqemulator.domain.errors import AlreadyExistsError, NotFoundError
        from bqemulator.storage.sql_identifiers import quoted_table_ref

        if context.catalog.get_dataset(self.project, self.dataset) is None:
            raise NotFoundError(f"Not found: Dataset {self.project}:{self.dataset}")
        stored = context.catalog.get_table(self.project, self.dataset, self.table)
        if stored is None and self.create == "CREATE_NEVER":
            raise NotFoundError(f"Not found: Table {self}")
        if stored is not None and self.write == "WRITE_EMPTY":
            reference = quoted_table_ref(self.project, self.dataset, self.table)
            any_row = statement("SELECT 1 FROM {table} LIMIT 1", table=reference)
            if context.engine.execute(any_row).fetchone() is not None:
                raise AlreadyExistsError(f"Already Exists: Table {self}")

    def fill(self, rows: Untyped, context: Untyped) -> Untyped:
        """Write a result; gives the rows that the table has then.

        Raises:
            ValidationError: a column that the table, which stays, does not have.
        """
        from bqemulator.domain.errors import ValidationError
        from bqemulator.storage.sql_identifiers import quoted_table_ref

        reference = quoted_table_ref(self.project, self.dataset, self.table)
        stored = context.catalog.get_table(self.project, self.dataset, self.table)
        connection = context.engine.connection
        with registered(rows, connection) as relation:
            columns = column_types(connection, relation)
            if stored is None or self.write != "WRITE_APPEND":
                make_table(self.project, self.dataset, self.table, [column.rest_field() for column in columns], context)
            known = {column.name.lower() for column in column_types(connection, reference)}
            strange = [column.name for column in columns if column.name.lower() not in known]
            if strange:
                raise ValidationError(f"Invalid schema update. Cannot add fields (field: {strange[0]})")
            names = ", ".join(quoted(column.name) for column in columns)
            insert = "INSERT INTO {table} ({names}) SELECT {names} FROM {rows}"
            connection.execute(statement(insert, table=reference, names=names, rows=relation))
        return context.engine.fetch_arrow(statement("SELECT * FROM {table}", table=reference))


def apply(routes: Untyped) -> None:
    """Let a query job with a destination write it."""
    original = routes._execute_query_or_failed_meta

    async def execute(**asked: Untyped) -> Untyped:
        destination = _destination_of(asked)
        if destination is None or not _is_select(asked["bq_sql"]):
            return await original(**asked)
        from bqemulator.domain.errors import AlreadyExistsError, NotFoundError, ValidationError

        context, job_id = asked["ctx"], asked["job_id"]
        try:
            destination.require(context)
            config = {key: value for key, value in asked["query_config"].items() if key != "writeDisposition"}
            job = await original(**{**asked, "query_config": config})
            if not job.error_result:
                async with context.engine.write_lock():
                    routes.JOB_RESULTS[job_id] = destination.fill(routes.JOB_RESULTS[job_id], context)
        except (AlreadyExistsError, NotFoundError, ValidationError) as error:
            result = routes._domain_error_to_error_result(error)
            where = (asked["project_id"], job_id, "QUERY", asked["config"])
            return routes._failed_job_meta(*where, result, context.clock.now())
        return job.model_copy(update={"configuration": asked["config"]})

    routes._execute_query_or_failed_meta = execute


def _destination_of(asked: dict[str, Untyped]) -> _Destination | None:
    config: dict[str, Any] = asked["query_config"]
    where = config.get("destinationTable")
    if not where:
        return None
    return _Destination(
        project=where.get("projectId") or asked["project_id"],
        dataset=where["datasetId"],
        table=where["tableId"],
        write=config.get("writeDisposition") or "WRITE_EMPTY",
        create=config.get("createDisposition") or "CREATE_IF_NEEDED",
    )


def _is_select(statement: str) -> bool:
    try:
        trees = sqlglot.parse(statement, read="bigquery")
    except sqlglot.errors.SqlglotError:
        return False
    return len(trees) == 1 and isinstance(trees[0], exp.Query)
