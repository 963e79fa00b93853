"""`notify_test`: a person tries who is told of a model, with this Airflow's settings and connections."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG

from retraining.core.spec.teams import find_specs, plain_name
from retraining.operators.airflow.params import notify_test_params
from retraining.operators.airflow.task_defaults import BOUNDED
from retraining.operators.airflow.trial_message import SendTrialMessageOperator

DAG_ID = "notify_test"
RUNBOOK = (Path(__file__).parent / "runbooks" / "notify_test.md").read_text(encoding="utf-8")
RETRIES = {
    "retries": 2,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}


def notify_test_dag(include: Path) -> DAG:
    """One task."""
    with DAG(
        dag_id=DAG_ID,
        description="Sends a trial message to who is told of a model",
        doc_md=RUNBOOK,
        schedule=None,
        catchup=False,
        max_active_runs=1,
        default_args={"owner": "retraining", **RETRIES, **BOUNDED},
        params=notify_test_params([plain_name(path) for path in find_specs(include)]),
        tags=["notify_test"],
    ) as dag:
        SendTrialMessageOperator(task_id="send", model="{{ params.model }}")
    return dag


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """Return the DAG by its id, where it is not another one that is wanted."""
    return {DAG_ID: notify_test_dag(include)} if only in (None, DAG_ID) else {}
