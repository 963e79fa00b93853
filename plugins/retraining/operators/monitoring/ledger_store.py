"""The ledger's table is brought up to the documents: rows that it has not, and what came of orders."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from retraining.core.documents import Ledger, Signals
from retraining.core.monitoring import ledger
from retraining.core.naming import bigquery, storage
from retraining.hooks.ports import CloudPort

MOST_ROWS = 24
"""That one decision adds: its own, and of those before it what was left out when BigQuery could not be reached."""


def store_rows(cloud: CloudPort, rows: Sequence[Ledger], since: datetime, asked_by: str) -> None:
    """Add to the table what it has not; each row once, whatever dies, for its job's id follows from it.

    Args:
        cloud: The hooks.
        rows: All that are known since, oldest first; the last one is this monitor run's.
        since: From when on the table is looked at.
        asked_by: What tells a wanted repetition of a question from a retry.
    """
    settings, own = cloud.settings, rows[-1]
    table = bigquery.ledger_table(settings.project, settings.dataset)

    def job_id(ledger_id: object, purpose: str) -> str:
        return bigquery.ledger_job_id(settings.environment, own.model, f"{ledger_id}|{purpose}")

    columns = cloud.warehouse.table_schema(table)
    if columns is None:
        cloud.warehouse.run_query(ledger.render_table(table), job_id(asked_by, "table"), "ledger_table")
    else:
        ledger.require_columns(table, {column["name"] for column in columns})
    query = ledger.render_rows(table, own.model, since, own.as_of)
    answer = cloud.warehouse.run_query(query, job_id(asked_by, "rows"), "ledger_rows")
    known = {str(found["ledger_id"]): found["state"] for found in answer.rows}
    missing = [row for row in rows if row.as_of >= since and row.ledger_id and row.ledger_id not in known]
    for row in missing[-MOST_ROWS:]:
        uri = storage.ledger_uri(settings.bucket, row.model, str(row.ledger_id))
        insert = ledger.render_insert(table, row, _signals(cloud, row), uri)
        cloud.warehouse.run_query(insert, job_id(row.ledger_id, "insert"), "ledger_insert")
    for result in own.facts.results if own.facts else ():
        if result.ordered_at >= since and known.get(result.ledger_id) != result.state:
            update = ledger.render_result(table, own.model, result)
            told = job_id(own.ledger_id, f"{result.ledger_id}|{result.state}")
            cloud.warehouse.run_query(update, told, "ledger_result")


def _signals(cloud: CloudPort, row: Ledger) -> Signals | None:
    data = cloud.artifacts.read_object(row.signals_uri) if row.signals_uri else None
    return Signals.parse(data, str(row.signals_uri)) if data else None
