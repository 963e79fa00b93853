"""The run's page for humans, rendered from its documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from airflow.sdk import Context

from retraining.core.catalog.cost import Prices, job_cost, job_tasks, load_prices, query_cost
from retraining.core.catalog.machines import machines
from retraining.core.documents import Deployment, EvaluateRequest, Plan, Snapshot, TaskTiming, Timings, Tuning
from retraining.core.naming import console, storage
from retraining.core.naming.addresses import ObjectAddress, folder_of
from retraining.core.settings import include_path
from retraining.hooks.ports import ArtifactsPort, CloudPort
from retraining.operators.airflow.cloud_task import SECONDS_KEY, CloudOperator, RunTask
from retraining.operators.airflow.links import JobLink, ReportLink, push_link
from retraining.operators.record.run_record import Record

TASKS = ("plan", "snapshot", "check_data", "export", "tune", "train", "evaluate", "decide", "register", "deploy")


# Also rendered after a `plan` that failed, and so left no folder.
MAYBE_RUN_URI = "{{ (ti.xcom_pull(task_ids='plan') or {}).get('run_uri', '') }}"


class ReportOperator(RunTask, CloudOperator):
    """Render `report.html` from whatever documents the run came to, also after a failed task.

    Args:
        run_uri: Folder of the run's record; empty: the run came to no plan.

    Returns:
        Address of the page; None when there is nothing to show.
    """

    operator_extra_links = (ReportLink(),)

    def __init__(self, *, run_uri: str = MAYBE_RUN_URI, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
        super().__init__(run_uri=run_uri, **kwargs)

    def act(self, cloud: CloudPort, context: Context) -> str | None:
        """Note what the tasks took, read all documents, render, store."""
        from retraining.core.report.page import render  # its template engine is not needed to parse a DAG

        if not self.run_uri:
            self.log.warning("no page: the run has no plan, so no documents; the log of plan says why")
            return None
        ti, artifacts, record = context["ti"], cloud.artifacts, self.record(cloud, context)
        took = timings(record, lambda task, key: ti.xcom_pull(task_ids=task, key=key))
        if record.find(Deployment) is not None:  # of a run that went to its end: those numbers stand
            took = record.write_once(took)
        documents = {"timings": took.to_json(), **read_all(artifacts, record)}
        page_uri = storage.report_page_uri(self.run_uri)
        artifacts.overwrite(page_uri, render(documents).encode(), "text/html; charset=utf-8")
        push_link(self, context, ReportLink, console.object_address(page_uri))
        self.log.info(page_uri)
        return page_uri


def read_all(artifacts: ArtifactsPort, record: Record) -> dict[str, dict[str, Any]]:
    """The documents as they are stored, by kind, and `champion_plan`: the plan of the champion of the duel."""
    folder = record.folder_uri
    uris = [uri for uri in artifacts.list_uris(folder, suffix=".json") if folder_of(uri) == folder]
    documents: dict[str, dict[str, Any]] = {
        ObjectAddress.parse(uri).stem: json.loads(data)
        for uri, data in zip(uris, artifacts.read_many(uris), strict=True)
    }
    plan, request = record.read(Plan), record.find(EvaluateRequest)
    if request is not None and request.champion is not None:
        champion = Record(artifacts, storage.run_uri(plan.bucket, plan.model, request.champion.run_key))
        if data := artifacts.read(champion.uri(Plan)):
            documents["champion_plan"] = json.loads(data)
    return documents


def timings(record: Record, pull: Callable[[str, str], Any]) -> Timings:
    """What the tasks took, from their XComs, with list prices.

    Args:
        record: The run's.
        pull: Gives the XCom of a task by key; None where there is none.
    """
    plan, snapshot = record.read(Plan), record.find(Snapshot)
    prices = load_prices(include_path())
    tasks = []
    jobs = job_tasks(plan.spec)
    for task in TASKS:
        had_job = bool(pull(task, JobLink.key))
        if task == "tune":
            if task not in jobs:
                continue
            timing = _study_timing(plan, record.find(Tuning), pull(task, SECONDS_KEY), prices, had_job=had_job)
        elif task in jobs:
            timing = _job_timing(plan, task, pull(task, "return_value"), prices, had_job=had_job)
        else:
            usd = query_cost(snapshot.bytes_processed, prices, plan.region) if snapshot and prices else None
            timing = TaskTiming(
                task=task,
                seconds=pull(task, SECONDS_KEY),
                reused=False,
                machine=None,
                estimated_usd=usd if task == "snapshot" else None,
            )
        tasks.append(timing)
    return Timings(
        model=plan.model,
        run_key=plan.run_key,
        prices_date=prices.effective if prices else None,
        tasks=tuple(tasks),
    )


def _study_timing(
    plan: Plan, tuning: Tuning | None, waited: float | None, prices: Prices | None, *, had_job: bool
) -> TaskTiming:
    """Of a study the sum over its trials, which may have run side by side; of a night without one, the task's own time.

    What a study without a conclusion took, nobody summed up.
    """
    wanted = machines(plan.spec, "tune")
    machine = wanted.pools[0].machine
    if tuning is None and had_job:
        return TaskTiming(task="tune", seconds=None, reused=False, machine=machine, estimated_usd=None)
    if tuning is None or not tuning.trials:
        return TaskTiming(task="tune", seconds=waited, reused=False, machine=None, estimated_usd=None)
    spot_seconds = tuning.seconds if wanted.spot else 0.0
    usd = job_cost(plan.spec, "tune", tuning.seconds, spot_seconds, prices, plan.region) if prices else None
    return TaskTiming(task="tune", seconds=tuning.seconds, reused=False, machine=machine, estimated_usd=usd)


def _job_timing(
    plan: Plan,
    task: Any,  # noqa: ANN401 - one of job_tasks
    result: dict[str, Any] | None,
    prices: Prices | None,
    *,
    had_job: bool,
) -> TaskTiming:
    """Of a task that failed, no time is known; of one that the run did not come to, no machine either."""
    seconds = result["seconds"] if result else None
    usd = None
    if result and seconds is not None and prices:
        usd = job_cost(plan.spec, task, seconds, result["spot_seconds"], prices, plan.region)
    return TaskTiming(
        task=task,
        seconds=seconds,
        reused=result is not None and result["job"] is None,
        machine=machines(plan.spec, task).pools[0].machine if result or had_job else None,
        estimated_usd=usd,
    )
