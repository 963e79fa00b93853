"""Patches `configuration.query.destinationTable`: it is taken, and nothing is written to it.

In: a SELECT that ran, its destination and dispositions. Out: the table, and the job with it as its result. A day of a
partitioned table (`table$20131120`) is written alone; else partitions and clusters are a layout without effect here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.columns import column_types, quoted
from localcloud.bigquery.types.names_of_results import twice_among
from localcloud.bigquery.types.results import registered
from localcloud.bigquery.types.tables import make_table
from localcloud.bigquery.types.trees import only_tree
from localcloud.statements import statement
from localcloud.untyped import Untyped

_DAY = re.compile(r"(\d{4})(\d{2})(\d{2})")


@dataclass(frozen=True, kw_only=True)
class _Destination:
    project: str
    dataset: str
    table: str
    write: str
    create: str
    partition: str = ""

    def __str__(self) -> str:
        return f"{self.project}:{self.dataset}.{self.table}"

    @property
    def reference(self) -> str:
        """Its name in DuckDB."""
        from bqemulator.storage.sql_identifiers import quoted_table_ref

        return str(quoted_table_ref(self.project, self.dataset, self.table))

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
        if self.partition:
            self.day(stored)

    def day(self, stored: Untyped) -> tuple[str, date]:
        """Return the column that a table is partitioned by, and the day that is written.

        Raises:
            ValidationError: it is not partitioned by days of a column, or the decorator is no day.
        """
        from bqemulator.domain.errors import ValidationError

        partitioning = stored and stored.time_partitioning
        if not partitioning or not partitioning.field or partitioning.type != "DAY":
            found = f"Cannot write ${self.partition} of {self}: the local cloud writes days of a table that is there"
            raise ValidationError(f"{found} and is partitioned by a column")
        match = _DAY.fullmatch(self.partition)
        if match is None:
            raise ValidationError(f"Invalid partition decorator ${self.partition} of {self}. Expected $YYYYMMDD")
        return partitioning.field, date(*map(int, match.groups()))

    def fill_day(self, rows: Untyped, context: Untyped) -> Untyped:
        """Write a result into one day, whole; gives the rows that the day has then.

        Raises:
            ValidationError: a column that the table does not have, or a row of another day.
        """
        from bqemulator.domain.errors import ValidationError
        from bqemulator.storage.sql_identifiers import quoted_table_ref

        reference = quoted_table_ref(self.project, self.dataset, self.table)
        field, day = self.day(context.catalog.get_table(self.project, self.dataset, self.table))
        connection = context.engine.connection
        of_day = {"table": reference, "field": quoted(field), "day": f"DATE '{day}'"}
        with registered(rows, connection) as relation:
            columns = [column.name for column in column_types(connection, relation)]
            known = {column.name.lower() for column in column_types(connection, reference)}
            strange = [name for name in columns if name.lower() not in known]
            if strange:
                raise ValidationError(f"Invalid schema update. Cannot add fields (field: {strange[0]})")
            other = "SELECT 1 FROM {rows} WHERE CAST({field} AS DATE) IS DISTINCT FROM {day} LIMIT 1"
            if connection.execute(statement(other, rows=relation, **of_day)).fetchone() is not None:
                message = f"Some rows belong to different partitions rather than destination partition {self.partition}"
                raise ValidationError(message)
            names = ", ".join(map(quoted, columns))
            connection.execute("BEGIN")
            try:
                if self.write == "WRITE_TRUNCATE":
                    connection.execute(statement("DELETE FROM {table} WHERE CAST({field} AS DATE) = {day}", **of_day))
                insert = "INSERT INTO {table} ({names}) SELECT {names} FROM {rows}"
                connection.execute(statement(insert, table=reference, names=names, rows=relation))
                connection.execute("COMMIT")
            except BaseException:  # an interrupt too: the connection is shared, and must not stay in a transaction
                connection.execute("ROLLBACK")
                raise
        return context.engine.fetch_arrow(
            statement("SELECT * FROM {table} WHERE CAST({field} AS DATE) = {day}", **of_day)
        )

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
                if twice := twice_among(routes.JOB_RESULTS[job_id].column_names):
                    raise ValidationError(twice)
                async with context.engine.write_lock():
                    fill = destination.fill_day if destination.partition else destination.fill
                    with context.engine.history.changing(context.engine.connection, destination.reference):
                        routes.JOB_RESULTS[job_id] = fill(routes.JOB_RESULTS[job_id], context)
        except (AlreadyExistsError, NotFoundError, ValidationError) as error:
            result = routes._domain_error_to_error_result(error)
            where = (asked["project_id"], job_id, "QUERY", asked["config"])
            return routes._failed_job_meta(*where, result, context.clock.now())
        return job.model_copy(update={"configuration": asked["config"]})

    check = routes._check_create_disposition

    def check_table(query_config: Untyped, **where: Untyped) -> None:
        asked = query_config.get("destinationTable")
        table = asked and {**asked, "tableId": asked["tableId"].partition("$")[0]}
        check({**query_config, "destinationTable": table}, **where)

    routes._check_create_disposition = check_table
    routes._execute_query_or_failed_meta = execute


def _destination_of(asked: dict[str, Untyped]) -> _Destination | None:
    config: dict[str, Any] = asked["query_config"]
    where = config.get("destinationTable")
    if not where:
        return None
    table, _, partition = where["tableId"].partition("$")
    return _Destination(
        project=where.get("projectId") or asked["project_id"],
        dataset=where["datasetId"],
        table=table,
        partition=partition,
        write=config.get("writeDisposition") or "WRITE_EMPTY",
        create=config.get("createDisposition") or "CREATE_IF_NEEDED",
    )


def _is_select(statement: str) -> bool:
    return isinstance(only_tree(statement), exp.Query)
