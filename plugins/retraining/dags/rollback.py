"""`rollback`: a person gives an earlier version of a model the traffic back."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, chain

from retraining.core.naming import dags as dag_names
from retraining.core.spec.files import find_specs, plain_name
from retraining.operators.airflow.notification import TOLD
from retraining.operators.airflow.params import rollback_params
from retraining.operators.airflow.task_defaults import BOUNDED, FIRST, RETRIES
from retraining.operators.deployment.rollback_end import EndRollbackOperator
from retraining.operators.deployment.version_rollback import RollBackOperator
from retraining.operators.report.models_page import RefreshModelsPageOperator

DAG_ID = dag_names.ROLLBACK
RUNBOOK = (Path(__file__).parent / "runbooks" / "rollback.md").read_text(encoding="utf-8")
GIVEN_UP_AFTER = timedelta(hours=3)  # longer than a deployment is waited for, which then ends by itself


def rollback_dag(include: Path) -> DAG:
    """Make the DAG: the model's rollout says how far `roll_back` came, `show` shows it, `end` settles what is left."""
    with DAG(
        dag_id=DAG_ID,
        description="Gives an earlier version of a model the traffic back",
        doc_md=RUNBOOK,
        schedule=None,
        catchup=False,
        max_active_runs=16,  # of several models; those of one model wait for each other by its rollout
        default_args={"owner": "retraining", **FIRST, **RETRIES, **BOUNDED, **TOLD},
        params=rollback_params([plain_name(path) for path in find_specs(include)]),
        tags=["rollback"],
    ) as dag:
        roll_back = RollBackOperator(task_id="roll_back", timeout=GIVEN_UP_AFTER.total_seconds())
        show = RefreshModelsPageOperator(task_id="show", model="{{ params.model }}")
        # Also when a person ends the run: `roll_back` may live on. `show` stays the leaf that the run's state follows.
        chain(roll_back, show, EndRollbackOperator(task_id="end").as_teardown())
    return dag


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """Return the DAG by its id, where it is not another one that is wanted."""
    return {DAG_ID: rollback_dag(include)} if only in (None, DAG_ID) else {}
