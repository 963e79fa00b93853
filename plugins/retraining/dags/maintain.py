"""`maintain`: every day, what no run refers to any more goes: spans, jobs that nobody waits for, small objects.

And what the end of a run could not do is done: runs that an experiment tracker did not take are shown there.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, chain

from retraining.operators.airflow.notification import TOLD
from retraining.operators.airflow.schedules import cron_schedule
from retraining.operators.airflow.task_defaults import BOUNDED
from retraining.operators.report.models_page import RefreshModelsPageOperator
from retraining.operators.report.tracking import TrackRunsOperator
from retraining.operators.retention.garbage_collection import (
    CancelUnattendedJobsOperator,
    DeleteGarbageOperator,
    FindGarbageOperator,
    maintain_params,
)

DAG_ID = "maintain"
RUNBOOK = (Path(__file__).parent / "runbooks" / "maintain.md").read_text(encoding="utf-8")
SCHEDULE = "30 12 * * *"  # UTC; away from the nights, whose runs it has to step around
RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}


def maintain_dag() -> DAG:
    """Five tasks: look, end jobs, delete; show what there is; and track runs that a tracker has not."""
    with DAG(
        dag_id=DAG_ID,
        description="Deletes spans that no run refers to any more, and ends jobs that nobody waits for",
        doc_md=RUNBOOK,
        schedule=cron_schedule(SCHEDULE),
        catchup=False,
        max_active_runs=1,
        default_args={"owner": "retraining", **RETRIES, **BOUNDED, **TOLD},
        params=maintain_params(),
        tags=["maintain"],
    ) as dag:
        look = FindGarbageOperator(task_id="look")
        cancel_jobs = CancelUnattendedJobsOperator(task_id="cancel_jobs")
        delete = DeleteGarbageOperator(task_id="delete")
        chain(look, cancel_jobs, delete)
        RefreshModelsPageOperator(task_id="show")  # by itself: what cannot be deleted keeps nobody from seeing
        TrackRunsOperator(task_id="track")
    return dag


def build_dags(_include: Path, only: str | None) -> dict[str, DAG]:
    """Return the DAG by its id, where it is not another one that is wanted."""
    return {DAG_ID: maintain_dag()} if only in (None, DAG_ID) else {}
