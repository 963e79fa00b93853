"""BigQuery in memory: prepared rows by purpose."""

from __future__ import annotations

from typing import Any

from retraining.hooks.warehouse import Answer


class FakeWarehouse:
    """BigQuery that gives prepared rows by purpose, and notes which jobs it was asked for."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.schemas: dict[str, list[dict[str, str]]] = {}
        self.tables: list[Any] = []
        self.asked: list[str] = []

    def dry_run(self, query: Any, where: str) -> Any:
        """As the hook."""
        del query
        self.asked.append(f"dry {where}")

    def run(self, query: Any, job_id: str, where: str) -> Any:
        """As the hook."""
        del query
        self.asked.append(job_id)
        return Answer(rows=self.rows.get(where, []), bytes_processed=7)

    def table_schema(self, table: str) -> list[dict[str, str]] | None:
        """As the hook."""
        return self.schemas.get(table)

    def list_tables(self, dataset: str) -> list[Any]:
        """As the hook."""
        del dataset
        return self.tables
