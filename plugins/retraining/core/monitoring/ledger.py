"""The ledger: what came of the orders in its rows, and its table in BigQuery, a row for each decision of a monitor.

In: rows, the documents that a run has left so far, the states of DAG runs. Out: results, and statements for the table
`retraining_ledger` of all models. The documents are what counts; the table is for whoever asks about many.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from datetime import datetime

from retraining.core.data.sql import Parameter, Query, render
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
from retraining.core.documents.document import canonical_json, format_time
from retraining.core.documents.ledger import ResultState
from retraining.core.errors import DataError
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.monitoring.orders import ORDERS
from retraining.core.naming.vertex import version_id_of

FINAL: tuple[ResultState, ...] = ("promoted", "rejected", "rolled_back")
"""A failed run may be cleared, and come to something after all."""
_FAILED = "failed"
_NOT_SENT = (_FAILED, "upstream_failed", "skipped", "removed")


def orders(rows: Sequence[Ledger]) -> list[Ledger]:
    """Return the rows that started something, oldest first; those of earlier releases have no id, and no result."""
    ordered = (row for row in rows if row.outcome in ORDERS and row.ledger_id)
    return sorted(ordered, key=lambda row: row.as_of)


def final_results(rows: Sequence[Ledger]) -> dict[str, LedgerResult]:
    """Return what earlier rows know for good, by the id of the row that ordered it."""
    reported = (result for row in rows if row.facts for result in row.facts.results)
    return {result.ledger_id: result for result in reported if result.state in FINAL}


def last_results(rows: Sequence[Ledger]) -> dict[str, LedgerResult]:
    """Return what the newest row that speaks of it knows of each order, by the id of the row that ordered it."""
    newest = sorted(rows, key=lambda row: row.as_of)
    return {result.ledger_id: result for row in newest if row.facts for result in row.facts.results}


def open_orders(rows: Sequence[Ledger], known: Sequence[LedgerResult]) -> list[Ledger]:
    """Return the orders of which nothing is known to have begun, and whose monitor run can be asked about."""
    begun = {result.ledger_id for result in known if result.state != "unknown"}
    return [row for row in orders(rows) if row.ledger_id not in begun and row.dag_run_id]


def sending_task(row: Ledger) -> str:
    """Return the task of the monitor with whose success an order is out."""
    return "roll_back" if row.outcome == "rollback" else "decide"


def is_lost(state: str | None) -> bool:
    """Return whether an order did not go out, by the state of that task: one that may run yet, or is unknown, may."""
    return state in _NOT_SENT


def replaced_orders(rows: Sequence[Ledger]) -> set[str]:
    """Return the ids of lost orders after which another was given: their own task does not send them any more."""
    return {lost for row in rows if row.outcome in ORDERS and row.facts for lost in row.facts.lost_orders}


def is_started_by(plan: Plan, ledger_uri: str) -> bool:
    """Return whether a run was started by a ledger row, by its address; several may have started the same run."""
    return any(event.ledger_uri == ledger_uri for event in plan.trigger.events)


def unknown_result(row: Ledger) -> LedgerResult:
    """Return what is known of an order whose run has left nothing yet."""
    return LedgerResult(
        ledger_id=str(row.ledger_id),
        ordered_at=row.as_of,
        cause=row.cause,
        dag_run_id=None,
        run_key=None,
        state="unknown",
        version_id=None,
        gain=None,
    )


def result_of_run(
    row: Ledger,
    plan: Plan,
    *,
    checks: Checks | None,
    decision: Decision | None,
    evaluation: Evaluation | None,
    registration: Registration | None,
    deployment: Deployment | None,
    state: str | None,
) -> LedgerResult:
    """Return what came of a retraining.

    Args:
        row: That ordered it.
        plan: Of the run.
        checks: Of its data: they say whether it had anything new.
        decision: Of the run, as all that follow; None: there is none yet.
        evaluation: For the metric's gain.
        registration: For the version.
        deployment: Whether the version serves.
        state: Of the DAG run, as Airflow says it; None: it is gone.
    """
    is_ended = decision is None and checks is not None and checks.repeats is not None
    return unknown_result(row).model_copy(
        update={
            "dag_run_id": plan.dag_run_id,
            "run_key": plan.run_key,
            "state": "rejected" if is_ended else _state_of_retraining(decision, deployment, state),
            "version_id": registration.version_id if registration else None,
            "gain": gain_of_challenger(evaluation) if decision else None,
        }
    )


def result_of_rollback(row: Ledger, dag_run_id: str, done: Rollback | None, state: str | None) -> LedgerResult:
    """Return what came of a rollback.

    Args:
        row: That ordered it.
        dag_run_id: Of the rollback.
        done: Its document; None: there is none yet.
        state: Of the DAG run, as Airflow says it; None: it is gone, or never was.
    """
    reached: ResultState = (
        "rolled_back" if done else "failed" if state == _FAILED else "running" if state else "unknown"
    )
    version_id = version_id_of(done.version_name) if done and done.version_name else None
    update = {"dag_run_id": dag_run_id, "state": reached, "version_id": version_id}
    return unknown_result(row).model_copy(update=update)


def gain_of_challenger(evaluation: Evaluation | None) -> float | None:
    """Return by how much the challenger was better than the champion in the metric that decides; below 0: worse."""
    difference = evaluation.difference if evaluation else None
    if difference is None:
        return None
    return difference.mean if difference.metric in HIGHER_IS_BETTER else -difference.mean


def _state_of_retraining(decision: Decision | None, deployment: Deployment | None, state: str | None) -> ResultState:
    if decision is not None and decision.verdict != "promote":
        return "rejected"
    if deployment is not None:
        return "promoted" if deployment.deployed else "rejected"
    return "failed" if state in (None, _FAILED, "success") else "running"


SCHEMA_VERSION = 1
TABLE_COLUMNS = (
    "schema_version",
    "model",
    "ledger_id",
    "as_of",
    "outcome",
    "because",
    "cause",
    "causes",
    "named_states",
    "severity",
    "words",
    "champion_version",
    "champion_run_key",
    "requests",
    "window_hours",
    "signals",
    "policy",
    "facts",
    "ledger_uri",
    "signals_uri",
    "retrain_as_of",
    "last_retrain_as_of",
    "result",
)


def render_table(table: str) -> Query:
    """Return the statement that makes the table where it is missing."""
    return Query(sql=render("ledger_table.sql.j2", table=table))


def require_columns(table: str, columns: Collection[str]) -> None:
    """Refuse a table that is not the ledger's.

    Args:
        table: Its name.
        columns: That it has.

    Raises:
        DataError: One is missing.
    """
    if missing := [name for name in TABLE_COLUMNS if name not in columns]:
        raise DataError(
            table,
            f"a table without {', '.join(missing)}",
            f"the ledger, of version {SCHEMA_VERSION} (docs/monitoring.md)",
            "Rename or delete it: the next decision makes it anew; add the column where it is of an earlier release",
        )


def render_rows(table: str, model: str, since: datetime, until: datetime) -> Query:
    """Return the query for the rows that the table has: `ledger_id, state` (of the result; null: none yet)."""
    times = {"since": since, "until": until}
    parameters = [Parameter(name=name, type="TIMESTAMP", value=format_time(time)) for name, time in times.items()]
    return Query(
        sql=render("ledger_rows.sql.j2", table=table), parameters=(_string_parameter("model", model), *parameters)
    )


def render_insert(table: str, row: Ledger, signals: Signals | None, ledger_uri: str) -> Query:
    """Return the statement that adds a row, unless it is there.

    Args:
        table: Its name.
        row: What was decided.
        signals: What it was decided by; None: they are gone.
        ledger_uri: Where the row's document is.
    """
    champion = row.facts.champion if row.facts else None
    stored = row.to_json()
    values = {
        **{name: stored[name] for name in TABLE_COLUMNS if name in stored and name not in ("policy", "facts")},
        "schema_version": SCHEMA_VERSION,
        "named_states": [{"cause": cause, "state": state} for cause, state in row.named_states.items()],
        "champion_version": champion.version_id if champion else None,
        "champion_run_key": champion.run_key if champion else None,
        "requests": signals.requests if signals else None,
        "window_hours": signals.window_hours if signals else None,
        "signals": [signal.model_dump(mode="json") for signal in signals.signals] if signals else [],
        "policy": _json_text(stored["policy"]),
        "facts": _json_text(stored["facts"]),
        "ledger_uri": ledger_uri,
    }
    parameters = (
        *_row_key(row.model, str(row.ledger_id), row.as_of),
        _string_parameter("row", canonical_json(values).decode()),
    )
    return Query(sql=render("ledger_insert.sql.j2", table=table), parameters=parameters)


def render_result(table: str, model: str, result: LedgerResult) -> Query:
    """Return the statement that completes the row of an order by what came of it."""
    parameters = (
        *_row_key(model, result.ledger_id, result.ordered_at),
        _string_parameter("dag_run_id", result.dag_run_id or ""),
        _string_parameter("run_key", result.run_key or ""),
        _string_parameter("state", result.state),
        _string_parameter("version_id", result.version_id or ""),
        _string_parameter("gain", "" if result.gain is None else repr(result.gain)),
    )
    return Query(sql=render("ledger_result.sql.j2", table=table), parameters=parameters)


def _row_key(model: str, ledger_id: str, as_of: datetime) -> tuple[Parameter, ...]:
    time = Parameter(name="as_of", type="TIMESTAMP", value=format_time(as_of))
    return _string_parameter("model", model), _string_parameter("ledger_id", ledger_id), time


def _string_parameter(name: str, value: str) -> Parameter:
    return Parameter(name=name, type="STRING", value=value)


def _json_text(value: object) -> str | None:
    return None if value is None else json.dumps(value, sort_keys=True)
