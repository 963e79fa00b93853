"""The columns that a model's examples query gives, asked before there is a plan."""

from __future__ import annotations

from retraining.core.data.columns import own_columns
from retraining.core.data.snapshot import render_columns_sql
from retraining.core.spec.model import ModelSpec
from retraining.hooks.ports import WarehousePort


def query_columns(warehouse: WarehousePort, spec: ModelSpec, sql: str) -> list[str]:
    """Return the names of the query's columns in its order; none, and nothing asked, of a spec without patterns.

    Raises:
        RetrainingError: BigQuery refuses the query.
    """
    if not spec.patterns:
        return []
    where = spec.data.source_name
    return [
        column.name for column in own_columns(warehouse.dry_run(render_columns_sql(spec, sql), where).schema, where)
    ]
