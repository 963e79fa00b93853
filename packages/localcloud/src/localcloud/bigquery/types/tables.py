"""Tables of bqemulator's catalog: made of a schema, and named as the service answers."""

from __future__ import annotations

from typing import Any

from localcloud.untyped import Untyped

_WIRE_NAMES = {"INT64": "INTEGER", "FLOAT64": "FLOAT", "BOOL": "BOOLEAN", "STRUCT": "RECORD"}


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
    """Return a schema's fields with the type names that tables.get answers with, however they were written."""
    return [
        {**field, "type": _WIRE_NAMES.get(field["type"], field["type"])}
        | ({"fields": legacy_names(field["fields"])} if field.get("fields") else {})
        for field in fields
    ]
