"""`monitor__<model>`: drift of the requests from the champion's training data; over the limit, a retraining."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, BaseOperator, TriggerRule, chain

from retraining.core.errors import SpecError
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import find_specs, plain_name
from retraining.operators.airflow.notification import TOLD
from retraining.operators.airflow.params import give_params, monitor_params
from retraining.operators.airflow.schedules import cron_schedule
from retraining.operators.airflow.task_defaults import BOUNDED, FIRST, of_model
from retraining.operators.monitoring.decision import DecideRetrainingOperator
from retraining.operators.monitoring.measurement import MeasureSignalsOperator
from retraining.operators.monitoring.multivariate import MeasureMultivariateOperator
from retraining.operators.monitoring.new_day import FindNewDayOperator
from retraining.operators.report.models_page import RefreshModelsPageOperator

LOGGER = logging.getLogger(__name__)
RUNBOOK = (Path(__file__).parent / "runbooks" / "monitor.md").read_text(encoding="utf-8")
RETRIES = {"retries": 2, "retry_delay": timedelta(seconds=30), "retry_exponential_backoff": True}


def monitor_dag(spec: ModelSpec) -> DAG:
    """Measure, multivariate (or skip it), decide, show; roll_back and new_day where the spec wants them."""
    with DAG(
        dag_id=f"monitor__{spec.name}",
        description=f"Drift of the requests to {spec.name}",
        doc_md=RUNBOOK.replace("{name}", spec.name),
        schedule=cron_schedule(spec.monitoring.schedule, spec) if spec.monitoring.schedule else None,
        catchup=False,
        max_active_runs=1,  # a ledger row must see the one before it
        default_args={**of_model(spec), **RETRIES, **BOUNDED, **TOLD},
        tags=["monitor", spec.name, *spec.tags],
    ) as dag:
        measure = MeasureSignalsOperator(task_id="measure", model=spec.name)
        multivariate = MeasureMultivariateOperator(task_id="multivariate", model=spec.name)
        # A classifier that nobody asked for, or that failed, holds no decision back. For ALL_DONE_MIN_ONE_SUCCESS a
        # skipped task is not done (Airflow 3.1 to 3.3); after a failed `measure` this one fails by itself.
        decide = DecideRetrainingOperator(task_id="decide", model=spec.name, trigger_rule=TriggerRule.ALL_DONE)
        show = RefreshModelsPageOperator(task_id="show", model=spec.name)
        roll_back = [roll_back_task(spec)] if "rollback" in dict(spec.monitoring.policy.actions).values() else []
        chain(measure, multivariate, decide, [*roll_back, show])
        measure >> decide
        if spec.triggers.new_day:
            FindNewDayOperator(task_id="new_day", model=spec.name)
    give_params(dag, monitor_params(spec))
    return dag


def roll_back_task(spec: ModelSpec) -> BaseOperator:
    """Make the task that starts a rollback, if one may be ordered; its provider is imported only where wanted."""
    from retraining.operators.monitoring.rollback import StartRollbackOperator

    return StartRollbackOperator(task_id="roll_back", model=spec.name, **FIRST)


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """All DAGs by id; a model whose file is broken has none here, `retrain__<model>` says why."""
    dags = {}
    for path in find_specs(include):
        dag_id = f"monitor__{plain_name(path)}"
        if only not in (None, dag_id):
            continue
        try:
            dags[dag_id] = monitor_dag(load_spec(path))
        except SpecError:
            continue
        except Exception:  # whatever is wrong with one file, the other models keep their monitors
            LOGGER.exception("%s has no monitor; the other models have theirs", path.name)
    return dags
