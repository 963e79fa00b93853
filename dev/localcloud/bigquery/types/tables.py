"""Types of tables and results as the service tells them, where bqemulator loses them on the way through Arrow.

In: tables that a load, CREATE TABLE or CREATE TABLE … AS SELECT made, and results. Out: fields of the catalog. One mend
is one function over bqemulator's modules, before its server starts.
"""

from __future__ import annotations

from typing import Any

from localcloud.bigquery.types.columns import BIGNUMERIC, column_types
from localcloud.untyped import Untyped

_WIRE_NAMES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN", "STRUCT": "RECORD"}
_RESULT_KINDS = {"GEOMETRY": "GEOGRAPHY", "JSON": "JSON"}


def describe_created_tables() -> None:
    """Tell the types of what a statement created: bqemulator asks Arrow, which has no JSON and no GEOGRAPHY.

    It would call them STRING and BYTES, and the sum of whole numbers NUMERIC.
    """
    from bqemulator.api.routes.tables import _parse_schema_fields
    from bqemulator.catalog import ddl_sync
    from bqemulator.catalog.models import TableSchema
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    def introspect(project: str, dataset: str, table: str, context: Untyped) -> Untyped:
        where = quoted_table_ref(project, dataset, table)
        required = ddl_sync._column_notnull_map(where, context)
        fields = [
            column.rest_field("REQUIRED" if required.get(column.name) else "NULLABLE")
            for column in column_types(context.engine, where)
        ]
        return TableSchema(fields=tuple(_parse_schema_fields(fields)))

    ddl_sync._introspect_schema = introspect


def describe_results(executor: Untyped) -> None:
    """Call GEOGRAPHY and arrays of JSON by name in a query's result, too."""
    original = executor._resolve_bq_type

    def resolve(field: Untyped, inner_type: Untyped) -> str:
        stored = (field.metadata or {}).get(b"bqemu.duckdb_type", b"").decode().upper().removesuffix("[]")
        return _RESULT_KINDS.get(stored) or str(original(field, inner_type))

    executor._resolve_bq_type = resolve


def keep_big_decimals() -> None:
    """Give BIGNUMERIC a type that DuckDB has: bqemulator asks for 76 digits, and DuckDB ends at 38."""
    from bqemulator.sql import parameters
    from bqemulator.storage import type_map

    type_map._BQ_TO_DUCKDB["BIGNUMERIC"] = BIGNUMERIC
    parameters._BQ_SCALAR_TO_DUCKDB["BIGNUMERIC"] = BIGNUMERIC


def make_table(project: str, dataset: str, table: str, fields: list[dict[str, Any]], ctx: Untyped) -> None:
    """Make a table of a schema, or give one that is there a new schema."""
    from bqemulator.jobs import executor
    from bqemulator.storage.sql_identifiers import quoted_table_ref

    stored = ctx.catalog.get_table(project, dataset, table)
    reference = quoted_table_ref(project, dataset, table)
    if stored is not None:
        ctx.engine.connection.execute(f"DROP TABLE {reference}")
        schema = executor._build_explicit_schema(ctx, reference, fields)
        ctx.catalog.update_table(stored.model_copy(update={"schema_": schema}))
        return
    executor._maybe_create_load_destination(
        dest_project=project,
        dest_dataset=dataset,
        dest_table_id=table,
        load_config={"schema": {"fields": fields}},
        now=ctx.clock.now(),
        ctx=ctx,
    )


def legacy_names(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a schema's fields with the type names that tables.get answers with, however they were written."""
    return [
        {**field, "type": _WIRE_NAMES.get(field["type"], field["type"])}
        | ({"fields": legacy_names(field["fields"])} if field.get("fields") else {})
        for field in fields
    ]
