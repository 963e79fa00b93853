"""`rollback__<model>`, and `rollback` for all: a person gives an earlier version of a model the traffic back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, chain

from retraining.core.naming import dags as dag_names
from retraining.core.spec.teams import find_specs, plain_name
from retraining.operators.airflow.notification import TOLD
from retraining.operators.airflow.params import rollback_params
from retraining.operators.airflow.task_defaults import BOUNDED, FIRST, RETRIES
from retraining.operators.deployment.rollback_end import EndRollbackOperator
from retraining.operators.deployment.version_rollback import RollBackOperator
from retraining.operators.report.models_page import RefreshModelsPageOperator

DAG_ID = dag_names.ROLLBACK
RUNBOOK = (Path(__file__).parent / "runbooks" / "rollback.md").read_text(encoding="utf-8")
GIVEN_UP_AFTER = timedelta(hours=3)  # longer than a deployment is waited for, which then ends by itself


def rollback_dag(models: Sequence[str], only: str | None = None) -> DAG:
    """Make the DAG: the model's rollout says how far `roll_back` came, `show` shows it, `end` settles what is left.

    Args:
        models: Those that the form proposes.
        only: The one model that it is of; None: of all, those without a file among them.
    """
    dag_id = DAG_ID if only is None else dag_names.rollback_dag_id(only)
    with DAG(
        dag_id=dag_id,
        description=f"Gives an earlier version of {only or 'a model'} the traffic back",
        doc_md=RUNBOOK.replace(f"# {DAG_ID}", f"# {dag_id}", 1),
        schedule=None,
        is_paused_upon_creation=False,  # whoever has to go back in the night starts it, and nothing else does
        catchup=False,
        max_active_runs=16,  # of several models; those of one model wait for each other by its rollout
        default_args={"owner": "retraining", **FIRST, **RETRIES, **BOUNDED, **TOLD},
        params=rollback_params(models, only),
        tags=["rollback", *([only] if only else [])],
    ) as dag:
        roll_back = RollBackOperator(task_id="roll_back", timeout=GIVEN_UP_AFTER.total_seconds())
        show = RefreshModelsPageOperator(task_id="show", model="{{ params.model }}")
        # Also when a person ends the run: `roll_back` may live on. `show` stays the leaf that the run's state follows.
        chain(roll_back, show, EndRollbackOperator(task_id="end").as_teardown())
    return dag


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """Return the DAG of all models and that of each, by their ids; `only`: that one, if it is one of them.

    Nothing is read but the files' names: a model whose file is wrong can be taken back too.
    """
    models = [plain_name(path) for path in find_specs(include)]
    known: dict[str, str | None] = {DAG_ID: None, **{dag_names.rollback_dag_id(model): model for model in models}}
    return {dag_id: rollback_dag(models, model) for dag_id, model in known.items() if only in (None, dag_id)}
