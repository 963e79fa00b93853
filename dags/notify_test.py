"""`notify_test`: a person tries who is told of a model, with this Airflow's settings and connections."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, get_parsing_context

from retraining.core.settings import include_path
from retraining.core.spec.files import find_specs, plain_name
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


def notify_test_dag() -> DAG:
    """One task."""
    with DAG(
        dag_id=DAG_ID,
        description="Sends a trial message to who is told of a model",
        doc_md=RUNBOOK,
        schedule=None,
        catchup=False,
        max_active_runs=1,
        default_args={"owner": "retraining", **RETRIES, **BOUNDED},
        params=notify_test_params([plain_name(path) for path in find_specs(include_path())]),
        tags=["notify_test"],
    ) as dag:
        SendTrialMessageOperator(task_id="send", model="{{ params.model }}")
    return dag


if get_parsing_context().dag_id in (None, DAG_ID):
    notify_test = notify_test_dag()
