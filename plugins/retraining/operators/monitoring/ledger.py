"""What came of each order of the ledger, by documents and by Airflow, and the rows that the ledger's table lacks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from airflow.sdk import Context

from retraining.core.documents import (
    Checks,
    Decision,
    Deployment,
    Evaluation,
    Ledger,
    LedgerResult,
    Plan,
    Registration,
    Rollback,
    Signals,
)
from retraining.core.monitoring import ledger
from retraining.core.naming import bigquery, dags, storage
from retraining.core.naming.run_keys import stamp
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.dag_run import state_of_run, state_of_task
from retraining.operators.record.run_record import Record


def find_results(
    cloud: CloudPort, context: Context, model: str, rows: Sequence[Ledger], remembered: Collection[str] = ()
) -> tuple[LedgerResult, ...]:
    """Return what is known of each order, oldest first; what an earlier row knows to be final is taken from there.

    Of a remembered order what is known is final: nobody clears a run that long ago.

    Args:
        cloud: The hooks.
        context: Of the task.
        model: Whose.
        rows: Earlier rows of the ledger.
        remembered: Ids of orders of long ago.
    """
    known = ledger.final_results(rows)
    known |= {key: result for key, result in ledger.last_results(rows).items() if key in remembered}
    found = []
    for row in ledger.orders(rows):
        key = str(row.ledger_id)
        if key in known:
            found.append(known[key])
        elif row.outcome == "rollback":
            found.append(_result_of_rollback(cloud, context, row))
        else:
            found.append(_result_of_retraining(cloud, context, model, row))
    return tuple(found)


def find_lost(
    cloud: CloudPort, context: Context, rows: Sequence[Ledger], last: Ledger | None, known: Sequence[LedgerResult]
) -> tuple[str, ...]:
    """Return the ids of the orders that did not go out, and will not unless their task is cleared.

    A row is stored before the event is: a task that fails in between, whatever it died of, leaves an order that nobody
    makes.

    Args:
        cloud: The hooks.
        context: Of the task.
        rows: Earlier rows of the ledger.
        last: The row that ordered something last, which may not be among them.
        known: What came of the orders among the rows.
    """
    if last is not None and last.ledger_id not in {row.ledger_id for row in rows}:
        rows = [*rows, last]
        known = [*known, *find_results(cloud, context, last.model, [last])]
    lost = ledger.replaced_orders(rows)
    for row in ledger.open_orders(rows, known):
        dag_id = dags.monitor_dag_id(row.model)
        if ledger.is_lost(state_of_task(context, dag_id, str(row.dag_run_id), ledger.sending_task(row))):
            lost.add(str(row.ledger_id))
    return tuple(sorted(lost))


def last_by_hand(cloud: CloudPort, model: str, since: datetime, until: datetime) -> datetime | None:
    """Return when a person last started a retraining, of those after a time and up to another."""
    plans = [plan for plan in _plans_since(cloud, model, since) if plan.trigger.kind == "manual"]
    plans = [plan for plan in plans if since < plan.as_of <= until]
    return max((plan.as_of for plan in plans), default=None)


def _result_of_retraining(cloud: CloudPort, context: Context, model: str, row: Ledger) -> LedgerResult:
    """Return what came of a retraining: by the plan that names the row, and what its run has left so far."""
    since = row.retrain_as_of or row.as_of
    uri = storage.ledger_uri(cloud.settings.bucket, model, str(row.ledger_id))
    plan = next((plan for plan in _plans_since(cloud, model, since) if ledger.is_started_by(plan, uri)), None)
    if plan is None:
        return ledger.unknown_result(row)
    record = Record(cloud.artifacts, plan.run_uri)
    return ledger.result_of_run(
        row,
        plan,
        checks=record.find_document(Checks),
        decision=record.find_document(Decision),
        evaluation=record.find_document(Evaluation),
        registration=record.find_document(Registration),
        deployment=record.find_document(Deployment),
        state=state_of_run(context, plan.dag_id, plan.dag_run_id),
    )


def _result_of_rollback(cloud: CloudPort, context: Context, row: Ledger) -> LedgerResult:
    dag_run_id = dags.rollback_run_id(row.model, str(row.ledger_id))
    folder = storage.rollbacks_uri(cloud.settings.bucket, row.model)
    uris = cloud.artifacts.list_uris(folder, suffix=f"-{dags.dag_run_hash(dag_run_id)}/rollback.json")
    found = [Rollback.parse(data) for data in cloud.artifacts.read_many(uris)]
    done = next((rollback for rollback in found if rollback.dag_run_id == dag_run_id), None)
    return ledger.result_of_rollback(row, dag_run_id, done, state_of_run(context, dags.ROLLBACK, dag_run_id))


def _plans_since(cloud: CloudPort, model: str, since: datetime) -> list[Plan]:
    """Return the plans of the runs as of a time and later."""
    folder = storage.runs_uri(cloud.settings.bucket, model)
    uris = cloud.artifacts.list_uris(folder, start=stamp(since), suffix="/plan.json")
    return [Plan.parse(data) for data in cloud.artifacts.read_many(uris)]


MAX_ROWS = 24
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
    for row in missing[-MAX_ROWS:]:
        uri = storage.ledger_uri(settings.bucket, row.model, str(row.ledger_id))
        insert = ledger.render_insert(table, row, _signals_of_row(cloud, row), uri)
        cloud.warehouse.run_query(insert, job_id(row.ledger_id, "insert"), "ledger_insert")
    for result in own.facts.results if own.facts else ():
        if result.ordered_at >= since and known.get(result.ledger_id) != result.state:
            update = ledger.render_result(table, own.model, result)
            updated = job_id(own.ledger_id, f"{result.ledger_id}|{result.state}")
            cloud.warehouse.run_query(update, updated, "ledger_result")


def _signals_of_row(cloud: CloudPort, row: Ledger) -> Signals | None:
    data = cloud.artifacts.read_object(row.signals_uri) if row.signals_uri else None
    return Signals.parse(data, str(row.signals_uri)) if data else None
