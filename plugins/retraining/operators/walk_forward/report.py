"""The last task of a walk-forward: what its versions' scorings say, as a document and a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Context

from retraining.core.catalog.cost import load_prices
from retraining.core.documents import (
    Evaluation,
    Plan,
    Snapshot,
    Timings,
    WalkForward,
    WalkForwardPlan,
    WalkVersion,
)
from retraining.core.naming import storage
from retraining.core.report.timings import EndedTask, run_timings, usd_of_training
from retraining.core.settings import include_path
from retraining.core.untyped import XCom
from retraining.core.walk_forward.analysis import analyse
from retraining.core.walk_forward.plan import as_billed
from retraining.core.walk_forward.requests import day_qualities
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator, RunTask
from retraining.operators.airflow.dag_run import states_of_mapped
from retraining.operators.airflow.links import ReportLink, push_link, shown_address
from retraining.operators.record.ownership import own_run
from retraining.operators.record.run_record import Record
from retraining.operators.record.spending import note_run

PAID = {"export": "export_version", "train": "train", "evaluate": "score"}
"""Tasks of a version that pay for a job, by what its plan calls the job."""
STEPS = ("plan_version", "snapshot_version", "check_data", "export_version", "train", "score")
HTML = "text/html; charset=utf-8"


class ReportWalkForwardOperator(RunTask, CloudOperator):
    """Gather the scorings, judge ages and cadences, write the document and the page; note what all of it cost.

    Returns:
        `{report_uri, versions, pays, answer}`: how many versions are scored, and what they say.
    """

    operator_extra_links = (ReportLink(),)

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read what each version left; what is missing is said and left out."""
        from retraining.core.report.walk_forward import render_walk_forward  # its template engine is needed here alone

        record = self.record(cloud, context)
        walked, planned = record.read_document(WalkForwardPlan), record.read_document(Plan)
        _note(cloud, context, record, {"export": _left(context, "export")})
        states = {task: states_of_mapped(context, task) for task in STEPS}
        versions = tuple(
            _version(cloud, context, walked, number, {task: of_task.get(number) for task, of_task in states.items()})
            for number in range(len(walked.dates))
        )
        found = analyse(walked, planned.spec, versions)
        cloud.artifacts.overwrite(record.uri(WalkForward), found.to_bytes(), "application/json")
        page_uri = storage.report_page_uri(record.folder_uri)
        page = render_walk_forward(planned, walked, found).encode()
        cloud.artifacts.overwrite(page_uri, page, HTML)
        push_link(self, context, ReportLink, shown_address(page_uri))
        self.log.info(found.answer)
        scored = sum(bool(version.days) for version in versions)
        return {"report_uri": page_uri, "versions": scored, "pays": found.pays, "answer": found.answer}


def _version(
    cloud: CloudPort, context: Context, walked: WalkForwardPlan, number: int, states: Mapping[str, str | None]
) -> WalkVersion:
    """Return one version: how good it was, what it cost; or why it is not scored."""
    as_of, left = walked.dates[number], _left(context, "plan_version", number)
    if left is None:
        return WalkVersion(as_of=as_of, run_key=None, missing=_why(states, number))
    record = own_run(cloud, context, str(left["run_uri"]))
    version = record.read_document(Plan)
    timings = _note(cloud, context, record, {job: _left(context, task, number) for job, task in PAID.items()})
    folder = Record(cloud.artifacts, storage.scored_version_uri(walked.run_uri, version.run_key))
    evaluation = folder.find_document(Evaluation)
    return WalkVersion(
        as_of=as_of,
        run_key=version.run_key,
        missing=None if evaluation else _why(states, number),
        usd=usd_of_training(timings),
        days=day_qualities(evaluation, version.spec.evaluation.metric) if evaluation else (),
    )


def _note(cloud: CloudPort, context: Context, record: Record, left: Mapping[str, Mapping[str, Any] | None]) -> Timings:
    """Note what this DAG run paid for a run's jobs, and return it; a result that was there cost nothing."""
    ti: Any = context["ti"]
    plan, ended = record.read_document(Plan), {job: EndedTask(result=result) for job, result in left.items()}
    timings = run_timings(plan, record.find_document(Snapshot), None, ended, load_prices(include_path()))
    note_run(cloud, as_billed(plan, ti.run_id), timings, "walk_forward")
    return timings


def _left(context: Context, task: str, number: int = -1) -> Mapping[str, Any] | None:
    """Return what a task returned, of a mapped one that of an instance; None: it did not."""
    ti: Any = context["ti"]
    found = ti.xcom_pull(task_ids=task, map_indexes=number)
    return found if isinstance(found, Mapping) else None


def _why(states: Mapping[str, str | None], number: int) -> str:
    """Return which of a version's tasks did not succeed."""
    task = next((task for task in STEPS if states[task] != "success"), STEPS[-1])
    return f"task {task} [{number}]: {states[task] or 'not run'}; its log says why"
