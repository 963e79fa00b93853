"""Patches the types of what a statement created: they are asked of Arrow, which has no JSON and no GEOGRAPHY.

These would be called STRING and BYTES, and the sum of whole numbers NUMERIC.
"""

from __future__ import annotations

from localcloud.bigquery.types.columns import column_types
from localcloud.untyped import Untyped


def apply() -> None:
    """Tell the types of created tables by those that DuckDB keeps."""
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
