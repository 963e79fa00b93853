"""Load jobs and table schemas as the service has them: by name, decoded, with the types that were asked for.

In: files, and tables that a load, CREATE TABLE or CREATE TABLE … AS SELECT made. Out: rows, and fields of the catalog.
One mend is one function over bqemulator's modules, before its server starts.
"""

from __future__ import annotations

from typing import Any

from localcloud.bigquery import Untyped
from localcloud.bigquery.column_types import (
    BIGNUMERIC,
    ColumnType,
    column_types,
    load_expression,
    load_type,
    quoted,
)

_WIRE_NAMES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN", "STRUCT": "RECORD"}
_RESULT_KINDS = {"GEOMETRY": "GEOGRAPHY", "JSON": "JSON"}
_TEXT_KINDS = {"BYTES", "GEOGRAPHY"}


def read_files_by_name(executor: Untyped) -> None:
    """Load JSON, CSV and Parquet as BigQuery does.

    bqemulator stores the base64 text of BYTES instead of what it stands for, takes Parquet columns by position, and
    stores NULL for a missing array.
    """
    handlers = executor._LOAD_FORMAT_HANDLERS
    for name in ("NEWLINE_DELIMITED_JSON", "JSON"):
        handlers[name] = _load_json
    handlers["CSV"] = _load_csv
    handlers["PARQUET"] = _load_parquet


def _load_json(path: str, target: str, context: Untyped) -> None:
    columns = column_types(context.engine, target)
    kinds = ", ".join(f"{quoted(column.name)}: '{load_type(column)}'" for column in columns)
    source = f"read_json(?, format = 'newline_delimited', columns = {{{kinds}}})"
    _insert(
        context, target, columns, [load_expression(column, quoted(column.name)) for column in columns], source, path
    )


def _load_csv(path: str, target: str, context: Untyped) -> None:
    columns = column_types(context.engine, target)
    if not _TEXT_KINDS & {column.kind for column in columns}:
        context.engine.execute(f"COPY {target} FROM ? (FORMAT CSV, HEADER)", [path])
        return
    kinds = ", ".join(f"{quoted(column.name)}: '{load_type(column)}'" for column in columns)
    values = [load_expression(column, quoted(column.name)) for column in columns]
    _insert(context, target, columns, values, f"read_csv(?, header = true, columns = {{{kinds}}})", path)


def _load_parquet(path: str, target: str, context: Untyped) -> None:
    stored = {column.name.lower(): column for column in column_types(context.engine, target)}
    cursor = context.engine.execute("SELECT * FROM read_parquet(?) LIMIT 0", [path])
    names = [str(name) for name, *_ in cursor.description]
    columns = [stored[name.lower()] for name in names if name.lower() in stored]
    values = [_parquet_value(column) for column in columns]
    _insert(context, target, columns, values, "read_parquet(?)", path)


def _parquet_value(column: ColumnType) -> str:
    """Parquet holds BYTES as they are, but GEOGRAPHY as text, and a missing array as NULL."""
    if column.repeated:
        return f"coalesce({quoted(column.name)}, [])"
    return f"ST_GeomFromText({quoted(column.name)})" if column.kind == "GEOGRAPHY" else quoted(column.name)


def _insert(
    context: Untyped, target: str, columns: list[ColumnType], values: list[str], source: str, path: str
) -> None:
    names = ", ".join(quoted(column.name) for column in columns)
    context.engine.execute(
        f"INSERT INTO {target} ({names}) SELECT {', '.join(values)} FROM {source}",  # noqa: S608 - names are quoted
        [path],
    )


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


def legacy_names(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give a schema's fields with the type names that tables.get answers with, however they were written."""
    return [
        {**field, "type": _WIRE_NAMES.get(field["type"], field["type"])}
        | ({"fields": legacy_names(field["fields"])} if field.get("fields") else {})
        for field in fields
    ]
