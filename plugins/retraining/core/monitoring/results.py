"""What came of an order of the ledger, from the documents that the run it started has left so far."""

from __future__ import annotations

from collections.abc import Sequence

from retraining.core.documents import (
    Decision,
    Deployment,
    Evaluation,
    Ledger,
    LedgerResult,
    Plan,
    Registration,
    Rollback,
)
from retraining.core.documents.ledger import ResultState
from retraining.core.monitoring.policy import ORDERS
from retraining.core.naming.vertex import version_id_of
from retraining.core.spec.metrics import HIGHER_IS_BETTER

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
    told = (result for row in rows if row.facts for result in row.facts.results)
    return {result.ledger_id: result for result in told if result.state in FINAL}


def open_orders(rows: Sequence[Ledger], known: Sequence[LedgerResult]) -> list[Ledger]:
    """Return the orders of which nothing is known to have begun, and whose monitor run can be asked about."""
    begun = {result.ledger_id for result in known if result.state != "unknown"}
    return [row for row in orders(rows) if row.ledger_id not in begun and row.dag_run_id]


def sending_task(row: Ledger) -> str:
    """Return the task of the monitor with whose success an order is out."""
    return "roll_back" if row.outcome == "rollback" else "decide"


def is_lost(state: str | None) -> bool:
    """Tell whether an order did not go out, by the state of that task: one that may run yet, or is unknown, may."""
    return state in _NOT_SENT


def replaced(rows: Sequence[Ledger]) -> set[str]:
    """Return the ids of lost orders after which another was given: their own task does not send them any more."""
    return {lost for row in rows if row.outcome in ORDERS and row.facts for lost in row.facts.lost_orders}


def is_of(plan: Plan, ledger_uri: str) -> bool:
    """Tell whether a run was started by a ledger row, by its address; several may have started the same run."""
    return any(event.ledger_uri == ledger_uri for event in plan.trigger.events)


def unknown(row: Ledger) -> LedgerResult:
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


def of_run(
    row: Ledger,
    plan: Plan,
    *,
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
        decision: Of the run, as all that follow; None: there is none yet.
        evaluation: For the metric's gain.
        registration: For the version.
        deployment: Whether the version serves.
        state: Of the DAG run, as Airflow says it; None: it is gone.
    """
    return unknown(row).model_copy(
        update={
            "dag_run_id": plan.dag_run_id,
            "run_key": plan.run_key,
            "state": _state(decision, deployment, state),
            "version_id": registration.version_id if registration else None,
            "gain": gain(evaluation) if decision else None,
        }
    )


def of_rollback(row: Ledger, dag_run_id: str, done: Rollback | None, state: str | None) -> LedgerResult:
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
    return unknown(row).model_copy(update=update)


def gain(evaluation: Evaluation | None) -> float | None:
    """Return by how much the challenger was better than the champion in the metric that decides; below 0: worse."""
    difference = evaluation.difference if evaluation else None
    if difference is None:
        return None
    return difference.mean if difference.metric in HIGHER_IS_BETTER else -difference.mean


def _state(decision: Decision | None, deployment: Deployment | None, state: str | None) -> ResultState:
    if decision is not None and decision.verdict != "promote":
        return "rejected"
    if deployment is not None:
        return "promoted" if deployment.deployed else "rejected"
    return "failed" if state in (None, _FAILED, "success") else "running"
