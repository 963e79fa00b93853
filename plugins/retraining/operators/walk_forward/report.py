"""The last task of a walk-forward: what its versions' scorings say, as a document and a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Context

from retraining.core.catalog.cost import Prices, load_prices
from retraining.core.documents import Evaluation, Plan, Snapshot, WalkForward, WalkForwardPlan, WalkVersion
from retraining.core.naming import storage
from retraining.core.report.timings import EndedTask, run_timings, usd_of_training
from retraining.core.settings import include_path
from retraining.core.untyped import XCom
from retraining.core.walk_forward.analysis import analyse
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
    """Gather the scorings, judge ages and cadences, write the document and the page.

    Returns:
        `{report_uri, versions, pays, answer}`: how many versions are scored, and what they say.
    """

    operator_extra_links = (ReportLink(),)

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read what each version left; what is missing is said and left out."""
        from retraining.core.report.walk_forward import render_walk_forward  # its template engine is needed here alone

        record = self.record(cloud, context)
        walked, planned = record.read_document(WalkForwardPlan), record.read_document(Plan)
        prices = load_prices(include_path())
        versions = tuple(
            self._version(cloud, context, walked, number, planned, prices) for number in range(len(walked.dates))
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
        self,
        cloud: CloudPort,
        context: Context,
        walked: WalkForwardPlan,
        number: int,
        planned: Plan,
        prices: Prices | None,
    ) -> WalkVersion:
        """Return one version: how good it was, what it cost; or why it is not scored."""
        as_of = walked.dates[number]
        left = _left(context, "plan_version", number)
        if left is None:
            return WalkVersion(as_of=as_of, run_key=None, missing=_why(context, number))
        record = own_run(cloud, context, str(left["run_uri"]))
        version = record.read_document(Plan)
        ended = {job: EndedTask(result=_left(context, task, number)) for job, task in PAID.items()}
        timings = run_timings(version, record.find_document(Snapshot), None, ended, prices)
        note_run(cloud, version, timings)
        folder = Record(cloud.artifacts, storage.scored_version_uri(walked.run_uri, version.run_key))
        evaluation = folder.find_document(Evaluation)
        days = day_qualities(evaluation, planned.spec.evaluation.metric) if evaluation else ()
        missing = None if evaluation else _why(context, number)
        return WalkVersion(
            as_of=as_of, run_key=version.run_key, missing=missing, usd=usd_of_training(timings), days=days
        )


def _left(context: Context, task: str, number: int) -> Mapping[str, Any] | None:
    """Return what a version's task returned; None: it did not."""
    ti: Any = context["ti"]
    found = ti.xcom_pull(task_ids=task, map_indexes=number)
    return found if isinstance(found, Mapping) else None


def _why(context: Context, number: int) -> str:
    """Return which of a version's tasks did not succeed."""
    states = {task: states_of_mapped(context, task).get(number) for task in STEPS}
    failed = next((task for task, state in states.items() if state != "success"), "score")
    return f"task {failed} [{number}]: {states[failed] or 'not run'}; its log says why"
