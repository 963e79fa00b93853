"""`score__<model>`, for each model with a section `scoring`: a table is scored in bulk into another."""

from __future__ import annotations

import logging
from pathlib import Path

from airflow.sdk import DAG, chain

from retraining.core.errors import SpecError
from retraining.core.jobs.job import JobType
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.scoring import Scoring
from retraining.core.spec.teams import find_specs, plain_name
from retraining.operators.airflow.params import give_params, score_params
from retraining.operators.airflow.schedules import cron_schedule
from retraining.operators.airflow.task_defaults import BOUNDED, RETRIES, of_model
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.ending.conclusion import ConcludeRunOperator
from retraining.operators.scoring.destination import CleanUpScoringOperator, WriteAnswersOperator
from retraining.operators.scoring.prediction import PredictOperator, SnapshotInstancesOperator
from retraining.operators.scoring.scoring_plan import PlanScoringOperator

LOGGER = logging.getLogger(__name__)
RUNBOOK = (Path(__file__).parent / "runbooks" / "score.md").read_text(encoding="utf-8")


def score_dag(spec: ModelSpec, scoring: Scoring) -> DAG:
    """Make the scoring of one model, as tasks."""
    with DAG(
        dag_id=f"score__{spec.name}",
        description=f"Scores {scoring.query or scoring.table or scoring.files} into {scoring.destination}",
        doc_md=RUNBOOK.replace("{name}", spec.name),
        schedule=cron_schedule(scoring.schedule, spec) if scoring.schedule else None,
        catchup=False,
        max_active_runs=1,
        default_args={**of_model(spec), **RETRIES, **BOUNDED},
        tags=["score", spec.name, *spec.tags],
    ) as dag:
        plan = PlanScoringOperator(task_id="plan", model=spec.name)
        snapshot = SnapshotInstancesOperator(task_id="snapshot")
        predict = PredictOperator(task_id="predict", timeout=scoring.timeout_hours * 3600)
        write = WriteAnswersOperator(task_id="write")
        chain(plan, snapshot, predict, write)
        # Teardowns, as in retrain.py: they run after a failed task too, and `conclude` decides the run's state. No
        # deployment is to be settled, so `cancel_jobs` needs no record.
        cancel_jobs = CancelJobsOperator(task_id="cancel_jobs", types=(JobType.BATCH,), run_uri="").as_teardown()
        clean_up = CleanUpScoringOperator(task_id="clean_up").as_teardown()
        conclude = ConcludeRunOperator(task_id="conclude").as_teardown(on_failure_fail_dagrun=True)
        chain(write, cancel_jobs, clean_up, conclude)
    give_params(dag, score_params(spec))
    return dag


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """All DAGs by id; a model whose file is broken has none here, `retrain__<model>` says why."""
    dags = {}
    for path in find_specs(include):
        dag_id = f"score__{plain_name(path)}"
        if only not in (None, dag_id):
            continue
        try:
            spec = load_spec(path)
            if spec.scoring is not None:
                dags[dag_id] = score_dag(spec, spec.scoring)
        except SpecError:
            continue
        except Exception:  # whatever is wrong with one file, the other models keep their scorings
            LOGGER.exception("%s scores nothing; the other models do", path.name)
    return dags
