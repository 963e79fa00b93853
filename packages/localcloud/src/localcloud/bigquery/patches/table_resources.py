"""Patches what a table says of itself: its rows and bytes are counted after some kinds of writes only."""

from __future__ import annotations

from localcloud.bigquery.patches.expirations import Expirations
from localcloud.bigquery.patches.query_bytes import table_bytes
from localcloud.bigquery.types.columns import quoted
from localcloud.bigquery.types.tables import legacy_names
from localcloud.statements import statement
from localcloud.untyped import Untyped

_LENGTHS = """SELECT constraint_column_names[1], regexp_extract(expression, '<= ([0-9]+)[)]$', 1)
FROM duckdb_constraints()
WHERE schema_name = ? AND table_name = ? AND constraint_type = 'CHECK'"""

_DIGITS = """SELECT column_name, numeric_precision, numeric_scale
FROM duckdb_columns()
WHERE schema_name = ? AND table_name = ? AND data_type LIKE 'DECIMAL(%)'"""
_OF_NUMERIC = (38, 9)
"""Digits, and those behind the point, of what has no number of them."""


def apply(context: Untyped, expirations: Expirations) -> None:
    """Show a table's rows, bytes, types and expiration as they are."""
    from bqemulator.api.routes import tables

    original, original_item = tables._table_to_rest, tables._table_to_list_item

    def to_rest(table: Untyped) -> dict[str, Untyped]:
        resource: dict[str, Untyped] = original(table)
        if resource.get("schema", {}).get("fields"):
            resource["schema"]["fields"] = legacy_names(resource["schema"]["fields"])
        where = table.project_id, table.dataset_id, table.table_id
        if (ranged := table.range_partitioning) is not None:
            bounds = {"start": str(ranged.start), "end": str(ranged.end), "interval": str(ranged.interval)}
            resource["rangePartitioning"] = {"field": ranged.field, "range": bounds}
        if table.table_type == "VIEW":
            resource["view"] = {"query": table.view_query, "useLegacySql": False}
        if table.table_type == "TABLE":
            stored = f"{quoted(f'{where[0]}__{where[1]}')}.{quoted(where[2])}"
            _tell_lengths(resource, where, context.engine)
            _tell_digits(resource, where, context.engine)
            counted = context.engine.execute(statement("SELECT count(*) FROM {table}", table=stored))
            resource["numRows"] = str(counted.fetchone()[0])
            resource["numBytes"] = str(table_bytes(context.engine, *where, None))
        expires = expirations.get(".".join(where))
        return resource | ({"expirationTime": str(expires)} if expires is not None else {})

    def to_list_item(table: Untyped) -> dict[str, Untyped]:
        item: dict[str, Untyped] = original_item(table)
        expires = expirations.get(f"{table.project_id}.{table.dataset_id}.{table.table_id}")
        return item | ({"expirationTime": str(expires)} if expires is not None else {})

    tables._table_to_rest = to_rest
    tables._table_to_list_item = to_list_item


def _tell_lengths(resource: dict[str, Untyped], where: tuple[str, str, str], engine: Untyped) -> None:
    """Put the lengths of STRING(n) and BYTES(n) into a table's schema; they are CHECKs of DuckDB's (`text_lengths`)."""
    rows = engine.execute(_LENGTHS, [f"{where[0]}__{where[1]}", where[2]]).fetchall()
    lengths = {column.lower(): length for column, length in rows}
    for field in resource.get("schema", {}).get("fields", []):
        if field["name"].lower() in lengths:
            field["maxLength"] = lengths[field["name"].lower()]


def _tell_digits(resource: dict[str, Untyped], where: tuple[str, str, str], engine: Untyped) -> None:
    """Put the digits of NUMERIC(p, s) into a table's schema; BIGNUMERIC has none here."""
    rows = engine.execute(_DIGITS, [f"{where[0]}__{where[1]}", where[2]]).fetchall()
    digits = {column.lower(): (precision, scale) for column, precision, scale in rows}
    for field in resource.get("schema", {}).get("fields", []):
        precision, scale = digits.get(field["name"].lower(), _OF_NUMERIC)
        if field["type"] == "NUMERIC" and (precision, scale) != _OF_NUMERIC:
            field["precision"] = str(precision)
            if scale:
                field["scale"] = str(scale)
