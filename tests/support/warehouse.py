"""The local cloud's BigQuery as tests of SQL use it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from retraining.core.data.sql import Query
from tests.support.local_cloud import LocalCloud


class Warehouse:
    """What the hook does, in few lines: queries with their parameters, loads of rows."""

    def __init__(self, local_cloud: LocalCloud, dataset: str) -> None:
        """Make the dataset, and the one of run tables, where they are missing."""
        self.bigquery = pytest.importorskip("google.cloud.bigquery")
        self.client = self.bigquery.Client(project=local_cloud.project)
        for name in (dataset, local_cloud.dataset):
            self.client.create_dataset(name, exists_ok=True)

    def run(self, query: Query) -> list[dict[str, Any]]:
        """Rows of a query's result."""
        config = self.bigquery.QueryJobConfig.from_api_repr({"query": query.to_api()})
        return [dict(row) for row in self.client.query(query.sql, job_config=config).result()]

    def load(self, table: str, rows: list[dict[str, Any]], schema: str) -> None:
        """A new table; `schema` is `name:TYPE` or `name:TYPE:MODE` per column."""
        fields = [self.bigquery.SchemaField(*item.split(":")) for item in schema.split()]
        self.client.delete_table(table, not_found_ok=True)
        self.client.create_table(self.bigquery.Table(table, schema=fields))
        config = self.bigquery.LoadJobConfig(schema=fields, source_format="NEWLINE_DELIMITED_JSON")
        data = io.BytesIO("\n".join(json.dumps(row) for row in rows).encode())
        self.client.load_table_from_file(data, table, job_config=config).result()

    def columns(self, table: str) -> list[dict[str, Any]]:
        """A table's columns as jobs.query gives them."""
        fields = self.client.get_table(table).schema
        return [{"name": field.name, "type": field.field_type, "mode": field.mode} for field in fields]
