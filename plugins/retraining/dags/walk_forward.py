"""`walk_forward__<model>`: versions as of many dates, each scored on the days that followed; what retraining pays."""

from __future__ import annotations

import logging
from pathlib import Path

from airflow.sdk import DAG, BaseOperator, TriggerRule, chain, task_group

from retraining.core.errors import SpecError
from retraining.core.naming.dags import WALK_FORWARD
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.teams import find_specs, plain_name
from retraining.operators.airflow.params import give_params, walk_forward_params
from retraining.operators.airflow.task_defaults import BOUNDED, RETRIES, of_model
from retraining.operators.data.checks import CheckDataOperator
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.ending.conclusion import ConcludeRunOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_export, request_training
from retraining.operators.walk_forward.planning import (
    ListDatesOperator,
    PlanVersionOperator,
    PlanWalkForwardOperator,
)
from retraining.operators.walk_forward.report import ReportWalkForwardOperator
from retraining.operators.walk_forward.scoring import VERSION_URI, ScoreVersionOperator, request_export_of_days

LOGGER = logging.getLogger(__name__)
RUNBOOK = (Path(__file__).parent / "runbooks" / "walk_forward.md").read_text(encoding="utf-8")


def walk_forward_dag(spec: ModelSpec) -> DAG:
    """Make the DAG: the days that are scored are exported once, then each version has its tasks."""
    with DAG(
        dag_id=f"{WALK_FORWARD}__{spec.name}",
        description=f"How versions of {spec.name} age, and how often it pays to retrain",
        doc_md=RUNBOOK.replace("{name}", spec.name),
        schedule=None,
        catchup=False,
        max_active_runs=1,
        default_args={**of_model(spec, production=False), **RETRIES, **BOUNDED},
        tags=[WALK_FORWARD, spec.name, *spec.tags],
    ) as dag:
        plan = PlanWalkForwardOperator(task_id="plan", model=spec.name)
        snapshot = SnapshotOperator(task_id="snapshot")
        export = VertexJobOperator(task_id="export", job_request=request_export_of_days)
        dates = ListDatesOperator(task_id="dates")
        report = ReportWalkForwardOperator(task_id="report", trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS)
        chain(plan, snapshot, export, dates)
        make_versions(spec.name, dates, report)
        # Teardowns, as in retrain.py: they run after a failed task too, and `conclude` decides the run's state.
        cancel_jobs = CancelJobsOperator(task_id="cancel_jobs", run_uri="").as_teardown()
        conclude = ConcludeRunOperator(task_id="conclude").as_teardown(on_failure_fail_dagrun=True)
        chain(report, cancel_jobs, conclude)
    give_params(dag, walk_forward_params())
    return dag


def make_versions(model: str, dates: BaseOperator, report: BaseOperator) -> None:
    """Make the tasks of the versions, as many times as there are dates, between these two tasks."""

    @task_group(group_id="version", prefix_group_id=False, tooltip="A version: trained, then scored")
    def version(as_of: str) -> None:
        # Many wait for long, and an overloaded scheduler takes a poke's end for its failure now and then.
        plan_version = PlanVersionOperator(task_id="plan_version", model=model, as_of=as_of, retries=10)
        snapshot = SnapshotOperator(task_id="snapshot_version", run_uri=VERSION_URI)
        check_data = CheckDataOperator(task_id="check_data", run_uri=VERSION_URI)
        export = VertexJobOperator(task_id="export_version", job_request=request_export, run_uri=VERSION_URI)
        train = VertexJobOperator(task_id="train", job_request=request_training, run_uri=VERSION_URI)
        chain(plan_version, snapshot, check_data, export, train, ScoreVersionOperator(task_id="score"))

    chain(dates, version.expand(as_of=dates.output), report)


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """All DAGs by id; a model whose file is broken has none here, `retrain__<model>` says why.

    None either of examples without a time: there are no days that follow.
    """
    dags = {}
    for path in find_specs(include):
        dag_id = f"{WALK_FORWARD}__{plain_name(path)}"
        if only not in (None, dag_id):
            continue
        try:
            spec = load_spec(path)
            if spec.data.split == "time":
                dags[dag_id] = walk_forward_dag(spec)
        except SpecError:
            continue
        except Exception:  # whatever is wrong with one file, the other models keep their walk-forwards
            LOGGER.exception("%s walks nowhere; the other models do", path.name)
    return dags
