"""The run's page for humans, rendered from its documents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from airflow.sdk import BaseOperator, Context

from retraining.core.catalog.cost import load_prices
from retraining.core.documents import Deployment, EvaluateRequest, Plan, Snapshot, Timings, Tuning
from retraining.core.documents.document import read_object
from retraining.core.jobs.submission import Submission
from retraining.core.naming import dags, storage
from retraining.core.naming.addresses import ObjectAddress, folder_of
from retraining.core.report.run import TASKS as TASKS_OF_RUN
from retraining.core.report.run import read_failures
from retraining.core.report.timings import TASKS, EndedTask, run_timings
from retraining.core.settings import include_path
from retraining.core.untyped import JsonObject
from retraining.hooks.ports import ArtifactsPort, CloudPort
from retraining.operators.airflow.cloud_task import SECONDS_KEY, CloudOperator, Connect, RunTask
from retraining.operators.airflow.dag_run import reason_of_end
from retraining.operators.airflow.failures import list_failures, note_states, note_unplanned
from retraining.operators.airflow.links import (
    AllRunsLink,
    JobLink,
    ReportLink,
    airflow_address,
    push_link,
    shown_address,
)
from retraining.operators.airflow.notification import run_of
from retraining.operators.record.interventions import gone_back_since
from retraining.operators.record.run_record import MAYBE_RUN_URI, Record
from retraining.operators.record.spending import note_run
from retraining.operators.report.all_runs import write_all_runs
from retraining.operators.report.tracking import track_run

LOGGER = logging.getLogger(__name__)


class ReportOperator(RunTask, CloudOperator):
    """Render `report.html` from whatever documents the run came to, also after a failed task, and the page of all runs.

    Then show the run in the environment's experiment trackers, whose trouble is a warning in the log.

    Args:
        run_uri: Folder of the run's record; empty: the run came to no plan.

    Returns:
        Address of the page; None when there is nothing to show.
    """

    operator_extra_links = (ReportLink(), AllRunsLink())

    def __init__(self, *, run_uri: str = MAYBE_RUN_URI, **kwargs: Any) -> None:
        super().__init__(run_uri=run_uri, **kwargs)

    def act(self, cloud: CloudPort, context: Context) -> str | None:
        """Note what the tasks took, read all documents, render, store."""
        # Its template engine is not needed to parse a DAG.
        from retraining.operators.report.models_refresh import refresh_model

        if not self.run_uri:
            return self._report_unplanned(cloud, context)
        record = self.record(cloud, context)
        note_states(cloud, self.run_uri, context, upstream_states(self, context["ti"]))
        page_uri = write_page(cloud, record, context)
        push_link(self, context, ReportLink, shown_address(page_uri))
        plan = record.read_document(Plan)
        note_run(cloud, plan, record.find_document(Timings) or timings_of(cloud, record, context))
        self._write_all_runs(cloud, context, plan.model)
        refresh_model(cloud, plan.model, reported=plan.run_key)
        track_run(cloud, self.run_uri)
        self.log.info(page_uri)
        return page_uri

    def _report_unplanned(self, cloud: CloudPort, context: Context) -> str | None:
        from retraining.operators.report.models_refresh import refresh_model

        ti: Any = context["ti"]
        try:
            page_uri = note_unplanned(cloud, context, reason_of_end(ti), upstream_states(self, ti))
            if page_uri is None:
                self.log.warning("no page: the run has no plan, so no documents; the log of plan says why")
                return None
            push_link(self, context, ReportLink, shown_address(page_uri))
            model = dags.model_of_dag(ti.dag_id)
            self._write_all_runs(cloud, context, model)
            refresh_model(cloud, model)
        except Exception as error:  # the cloud may be what plan failed with: that one's message counts
            self.log.warning("no page: %s; the log of plan says why", type(error).__name__, exc_info=True)
            return None
        self.log.info(page_uri)
        return page_uri

    def _write_all_runs(self, cloud: CloudPort, context: Context, model: str) -> None:
        all_runs_uri = write_all_runs(cloud.artifacts, cloud.settings.bucket, model, airflow_address())
        push_link(self, context, AllRunsLink, shown_address(all_runs_uri))


def write_page(cloud: CloudPort, record: Record, context: Context, asked: str = "") -> str:
    """Make the run's page of what there is; return its address.

    Args:
        cloud: The hooks.
        record: The run's documents.
        context: Of the task that makes it.
        asked: What a person is asked, where the run waits for the answer.
    """
    # Their template engine is not needed to parse a DAG.
    from retraining.core.report.page import Standing, render

    artifacts, took = cloud.artifacts, timings_of(cloud, record, context)
    if record.find_document(Deployment) is not None:  # of a run that went to its end: those numbers stand
        took = record.write_once(took)
    page_uri = storage.report_page_uri(record.folder_uri)
    page = render(
        {"timings": took.to_json(), **read_all(artifacts, record)},
        read_submissions(artifacts, record),
        read_contact_sheet(artifacts, record),
        airflow_address(),
        Standing(
            failures=read_failures(artifacts.read_some(list_failures(cloud, record.folder_uri))),
            asked=asked,
            answer_url=next((link.address for link in run_of(context).answer(context["ti"].task_id)), "")
            if asked
            else "",
            gone_back=gone_back_since(cloud, record.read_document(Plan).model, context),
        ),
        runbook_url=cloud.settings.runbook_url,
    )
    artifacts.overwrite(page_uri, page.encode(), "text/html; charset=utf-8")
    return page_uri


def show_page(record: Callable[[], Record], connect: Connect, context: Context, asked: str = "") -> str | None:
    """Make the run's page before its end, by a task whose work counts without it; None: it could not be made.

    Args:
        record: Gives the run's documents.
        connect: Gives the cloud.
        context: Of the task.
        asked: As of `write_page`.
    """
    try:
        return write_page(connect(), record(), context, asked)
    except Exception as error:  # whatever it is: the page is made again at the end
        LOGGER.warning("no page of the run yet: %s", type(error).__name__, exc_info=True)
        return None


def upstream_states(task: BaseOperator, ti: Any) -> dict[str, str | None]:
    """Return Airflow's states of what comes before a task, in the run's order."""
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id]).get(ti.run_id, {})
    return {name: states.get(name) for name in TASKS_OF_RUN if name in task.get_flat_relative_ids(upstream=True)}


def _elapsed(cloud: CloudPort, context: Context) -> float | None:
    """Return the seconds since the run began; None where the clocks disagree."""
    began = context["dag_run"].start_date
    seconds = (cloud.clock.now() - began).total_seconds() if began else -1.0
    return round(seconds, 3) if seconds >= 0 else None


def timings_of(cloud: CloudPort, record: Record, context: Context) -> Timings:
    """Return what the tasks of a run took so far."""
    ti = context["ti"]
    return timings(record, lambda task, key: ti.xcom_pull(task_ids=task, key=key), _elapsed(cloud, context))


def timings(record: Record, pull: Callable[[str, str], Any], elapsed: float | None = None) -> Timings:
    """Return what the tasks took, with list prices.

    Args:
        record: The run's.
        pull: Gives the XCom of a task by key; None where there is none.
        elapsed: Seconds since the run began.
    """
    ended = {
        task: EndedTask(
            seconds=pull(task, SECONDS_KEY), result=pull(task, "return_value"), had_job=bool(pull(task, JobLink.key))
        )
        for task in TASKS
    }
    prices = load_prices(include_path())
    plan, snapshot, tuning = (
        record.read_document(Plan),
        record.find_document(Snapshot),
        record.find_document(Tuning),
    )
    return run_timings(plan, snapshot, tuning, ended, prices).model_copy(update={"elapsed_seconds": elapsed})


def read_all(artifacts: ArtifactsPort, record: Record) -> dict[str, JsonObject]:
    """Return the documents as they are stored, by kind, and as `champion_plan` that of the champion compared with."""
    folder = record.folder_uri
    uris = [uri for uri in artifacts.list_uris(folder, suffix=".json") if folder_of(uri) == folder]
    documents: dict[str, JsonObject] = {
        ObjectAddress.parse(uri).stem: read_object(data, uri) for uri, data in artifacts.read_some(uris).items()
    }
    plan, request = record.read_document(Plan), record.find_document(EvaluateRequest)
    if request is not None and request.champion is not None:
        champion = Record(artifacts, storage.run_uri(plan.bucket, plan.model, request.champion.run_key))
        if data := artifacts.read_object(champion.uri(Plan)):
            documents["champion_plan"] = read_object(data, champion.uri(Plan))
    return documents


def read_submissions(artifacts: ArtifactsPort, record: Record) -> dict[str, Submission]:
    """Return the run's jobs by task, as people submit them."""
    plan = record.read_document(Plan)
    uris = artifacts.list_uris(storage.submissions_uri(record.folder_uri), suffix=".json")
    return {
        ObjectAddress.parse(uri).stem: Submission(job=read_object(data, uri), project=plan.project, region=plan.region)
        for uri, data in artifacts.read_some(uris).items()
    }


def read_contact_sheet(artifacts: ArtifactsPort, record: Record) -> bytes | None:
    """Return the picture of a training's changed images, where the spec wants one shown and there is one."""
    changes = record.read_document(Plan).spec.training.augmentation
    if changes is None or not changes.contact_sheet:
        return None
    return artifacts.read_object(storage.contact_sheet_uri(storage.results_uri(record.read_document(Plan))))
