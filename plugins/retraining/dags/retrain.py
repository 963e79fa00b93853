"""`retrain__<model>`: one DAG per file in include/models. From the plan to the endpoint, every night or on drift."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, BaseOperator, TaskGroup, chain

from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.catalog.trainers import require_trainer
from retraining.core.errors import SpecError
from retraining.core.jobs.job import JobType
from retraining.core.naming.dags import retrain_dag_id
from retraining.core.spec.files import load_assertions, load_frozen_set_query, load_query, load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.own_gates import look_at_gates
from retraining.core.spec.teams import FILE as TEAMS
from retraining.core.spec.teams import MODELS, find_specs, missing_folders, plain_name
from retraining.operators.airflow.params import give_params, retrain_params
from retraining.operators.airflow.refused_files import refusing_dag
from retraining.operators.airflow.schedules import cron_or_asset_schedule, starting_assets
from retraining.operators.airflow.task_defaults import BOUNDED, RETRIES, of_model, of_step
from retraining.operators.data.checks import CheckDataOperator
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.ending.conclusion import ConcludeRunOperator
from retraining.operators.evaluation.decision import DecideOperator
from retraining.operators.jobs.evaluation import EvaluateOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_export
from retraining.operators.jobs.training import TrainOperator
from retraining.operators.planning.run_plan import PlanRunOperator
from retraining.operators.report.page import ReportOperator
from retraining.operators.tuning.study import TuneOperator

RUNBOOK = (Path(__file__).parent / "runbooks" / "retrain.md").read_text(encoding="utf-8")
BROKEN_RUNBOOK = (Path(__file__).parent / "runbooks" / "invalid_spec.md").read_text(encoding="utf-8")
ANSWER_WITHIN = timedelta(hours=12)  # a night's approval must not hold back the next night


def retrain_dag(spec: ModelSpec) -> DAG:
    """Make the run of one model, as tasks."""
    assets = starting_assets(spec)
    with DAG(
        dag_id=retrain_dag_id(spec.name),
        description=spec.description,
        doc_md=RUNBOOK.replace("{name}", spec.name).replace("{description}", spec.description),
        schedule=cron_or_asset_schedule(spec, assets),
        catchup=False,
        max_active_runs=1,
        default_args={**of_model(spec), **RETRIES, **BOUNDED},
        tags=["retrain", spec.name, *spec.tags],
    ) as dag:
        plan = PlanRunOperator(task_id="plan", model=spec.name, inlets=assets)
        with group("data", "Examples: frozen, checked, exported"):
            snapshot = SnapshotOperator(task_id="snapshot")
            check_data = CheckDataOperator(task_id="check_data")
            of_export = of_step(spec, 0 if spec.tuning else 1)
            export = VertexJobOperator(task_id="export", job_request=request_export, chain_task="export", **of_export)
        with group("training", "The challenger: hyperparameters, weights, scores beside the champion's"):
            tune = [TuneOperator(task_id="tune")] if spec.tuning else []
            train = TrainOperator(task_id="train", **of_step(spec, 2))
            evaluate = EvaluateOperator(task_id="evaluate", **of_step(spec, 3))
        with group("promotion", "From the verdict to the traffic"):
            decide = DecideOperator(task_id="decide")
            register = RegisterModelOperator(task_id="register")
            approve = [approve_task(spec)] if spec.deployment.asks != "never" else []
            deploy = DeployModelOperator(task_id="deploy", approval_task_id="approve" if approve else None)
        chain(plan, snapshot, check_data, export, *tune, train, evaluate, decide, register, *approve, deploy)
        # Teardowns run after a failed task too, and when a person ends the run. Only `conclude` may decide the run's
        # state: with the flag on the other two, `deploy` would be no leaf any more.
        report = ReportOperator(task_id="report").as_teardown()
        types = (JobType.CUSTOM, JobType.TUNING) if tune else (JobType.CUSTOM,)
        cancel_jobs = CancelJobsOperator(task_id="cancel_jobs", types=types).as_teardown()
        conclude = ConcludeRunOperator(task_id="conclude").as_teardown(on_failure_fail_dagrun=True)
        chain(deploy, [report, cancel_jobs], conclude)
    give_params(dag, retrain_params(spec))
    return dag


def group(name: str, tooltip: str) -> TaskGroup:
    """Draw tasks as one that can be opened; their ids stay without the group's name, for stored runs know them so."""
    return TaskGroup(group_id=name, tooltip=tooltip, prefix_group_id=False)


def approve_task(spec: ModelSpec) -> BaseOperator:
    """Make the task that asks a person, if one is wanted: a DAG's tasks cannot depend on a run."""
    # Its provider is imported only where wanted.
    from retraining.operators.deployment.approval import RequestApprovalOperator

    return RequestApprovalOperator(
        task_id="approve",
        subject=f"Deploy the new version of {spec.name}?",
        answer_within=ANSWER_WITHIN,
    )


def build_dags(include: Path, only: str | None) -> dict[str, DAG]:
    """All DAGs by id; with `only`, that one (a worker that runs a task needs no other)."""
    dags = {}
    for path in find_specs(include):
        dag_id = retrain_dag_id(plain_name(path))
        if only not in (None, dag_id):
            continue
        try:
            dags[dag_id] = retrain_dag(_load(path, include))
        except SpecError as error:
            dags[dag_id] = _refusing_dag(dag_id, path, error, include, what="spec")
        except Exception as error:  # noqa: BLE001 - whatever one file does to this code, the other models keep their DAGs
            found = f"{type(error).__name__}: {error}"
            unexpected = SpecError(path.name, found, "a spec that makes a DAG", "Look at what was last changed in it")
            dags[dag_id] = _refusing_dag(dag_id, path, unexpected, include, what="spec")
    for team, missing in missing_folders(include).items():
        dag_id = f"retrain__{team}.{MODELS}"
        if only in (None, dag_id):
            dags[dag_id] = _refusing_dag(dag_id, include / TEAMS, missing, include, what="list of teams")
    return dags


def _load(path: Path, include: Path) -> ModelSpec:
    spec = load_spec(path)
    load_query(spec, include)
    load_frozen_set_query(spec, include)
    load_assertions(spec, include)
    look_at_gates(spec, include)
    require_trainable(spec, load_capabilities())
    require_trainer(spec, include)
    return spec


def _refusing_dag(dag_id: str, path: Path, error: SpecError, include: Path, *, what: str) -> DAG:
    return refusing_dag(dag_id, path, error, BROKEN_RUNBOOK, what=what, tag="retrain", include=include)
