"""A run that comes to no plan: its page, and that all that a person on call opens leads to it or says as much."""

from __future__ import annotations

import re
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator

from retraining.__main__ import main
from retraining.commands.shell import Shell
from retraining.core.documents import Failure, ModelOverview
from retraining.core.naming import pages
from retraining.operators.airflow.dag_run import ENDED_EARLY as ENDED_EARLY
from retraining.operators.airflow.links import AllRunsLink, ReportLink
from retraining.operators.ending.conclusion import ConcludeRunOperator
from retraining.operators.report.page import ReportOperator
from tests.operators.airflow.test_notification import with_people
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.planned_run import FORM, plan

FAILED = {"plan": "failed", "snapshot": "upstream_failed", "check_data": "upstream_failed"}
WRONG_PARAM = FORM | {"as_of": "2013-11-20<script>alert(1)</script>"}
MODEL = "gs://bucket/flight_delays"
FOLDER = re.compile(rf"{MODEL}/unplanned/20260101t000000z-[0-9a-f]{{8}}/report\.html")


@pytest.fixture
def cloud() -> FakeCloud:
    """A cloud whose bucket is this environment's, with people who are told."""
    cloud = FakeCloud()
    cloud.artifacts.objects["gs://bucket/environment.txt"] = cloud.settings.environment.encode()
    with_people(cloud)
    return cloud


def fail_to_plan(cloud: FakeCloud, run: Any) -> None:
    """A run whose first task fails for good."""
    with pytest.raises(AirflowFailException):
        plan(cloud, run)


def end(cloud: FakeCloud, run: Any, states: dict[str, str]) -> None:
    """The tasks that run at the end of each run, when the others ended so."""
    with DAG("retrain__flight_delays", schedule=None):
        before = [BaseOperator(task_id=task) for task in states]
        report = ReportOperator(task_id="report", run_uri="", cloud=cloud.connect)
        conclude = ConcludeRunOperator(task_id="conclude", run_uri="", cloud=cloud.connect)
        before >> report >> conclude
    told = {**states, "report": "success"}
    for task in (report, conclude):
        context = run.context(task)
        context["ti"].get_task_states = lambda **asked: dict.fromkeys(asked["run_ids"], told)
        task.execute(context)


def end_failed(cloud: FakeCloud, run: Any, states: dict[str, str] = FAILED) -> None:
    """The same, of a run that is red."""
    with pytest.raises(AirflowFailException):
        end(cloud, run, states)


def page_of(cloud: FakeCloud) -> tuple[str, str]:
    """The one page of a run without a plan: its address, and its text."""
    (uri,) = [uri for uri in cloud.artifacts.objects if FOLDER.fullmatch(uri)]
    return uri, cloud.artifacts.objects[uri].decode()


def all_runs(cloud: FakeCloud) -> str:
    """The page with all runs of the model."""
    return cloud.artifacts.objects[f"{MODEL}/runs.html"].decode()


def left(cloud: FakeCloud) -> Failure:
    """What the newest run left that came to no plan."""
    return Failure.parse(cloud.artifacts.objects[f"{MODEL}/failed_start.json"])


def test_its_page_has_the_message_the_log_and_what_to_do(make_run, cloud, monkeypatch) -> None:
    """At once, and not only when the run has ended: the link beside the task leads there."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    run = make_run(params=WRONG_PARAM)
    fail_to_plan(cloud, run)
    uri, page = page_of(cloud)
    failure = left(cloud)
    assert "Failed at plan" in page
    for text in (failure.where, failure.way_out, "Nothing was paid for. Correct the Param"):
        assert text in page
    assert failure.log is not None
    assert f'href="{failure.log}"' in page
    assert "<script" not in page
    assert run.xcoms["plan", ReportLink.key] == f"https://airflow.example/{pages.path_of(uri)}"


def test_message_pages_and_shell_lead_to_it(make_run, cloud, monkeypatch, capsys) -> None:
    """The mail, the link beside report, the page of all runs, the Models page, and why."""
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    run = make_run(params=WRONG_PARAM)
    fail_to_plan(cloud, run)
    end_failed(cloud, run)
    uri, _ = page_of(cloud)
    address, way_out = f"https://airflow.example/{pages.path_of(uri)}", left(cloud).way_out
    assert run.xcoms["report", ReportLink.key] == address
    assert run.xcoms["report", AllRunsLink.key].endswith("/flight_delays/runs.html")
    mail = cloud.notifiers.sent[0].text
    assert address in mail
    assert way_out in mail
    assert f'href="{address}"' in all_runs(cloud)
    assert "Failed at plan" in all_runs(cloud)
    overview = ModelOverview.parse(cloud.artifacts.objects[f"{MODEL}/model_overview.json"])
    assert overview.summary.failure is not None
    assert overview.summary.failure.way_out == way_out
    assert main(["why", "flight_delays"], Shell(connect=cloud.connect)) == 0
    told = capsys.readouterr().out
    for text in (way_out, uri, "Nothing was paid for. Correct the Param"):
        assert text in told


def test_it_is_gone_when_the_run_has_a_plan(make_run, cloud) -> None:
    """Cleared after the cause was mended, it is a run like others."""
    run = make_run(params=WRONG_PARAM)
    fail_to_plan(cloud, run)
    run.params = dict(FORM)
    plan(cloud, run)
    assert not [uri for uri in cloud.artifacts.objects if "unplanned" in uri or "failed_start" in uri]


def test_those_of_other_runs_stay_in_the_page_of_all_runs(make_run, cloud) -> None:
    """A later run's plan takes away that the model's newest run failed, and nothing else."""
    run = make_run(params=WRONG_PARAM)
    fail_to_plan(cloud, run)
    end_failed(cloud, run)
    plan(cloud, make_run(run_id="manual__2", params=FORM))
    assert page_of(cloud)
    assert f"{MODEL}/failed_start.json" not in cloud.artifacts.objects


@pytest.mark.parametrize(
    ("states", "found"),
    [
        (FAILED, "it failed and left no message: its worker died"),
        ({"plan": "skipped", "snapshot": "skipped"}, "the task plan did not run: the run was ended by hand"),
    ],
    ids=["worker-died", "ended-by-hand"],
)
def test_a_plan_that_could_not_speak_is_spoken_for(make_run, cloud, states, found) -> None:
    """Its worker died, or a person ended the run."""
    end_failed(cloud, make_run(), states)
    assert found in page_of(cloud)[1]
    assert found in all_runs(cloud)


def test_a_run_that_its_plan_skipped_says_so(make_run, cloud) -> None:
    """It is no failure: nobody is told, and the model's row does not ask for attention."""
    run = make_run()
    reason = "retraining of flight_delays is paused until 2026-02-01 00:00 UTC by ada."
    run.xcoms["plan", ENDED_EARLY] = reason
    end(cloud, run, {"plan": "success", "snapshot": "skipped"})
    assert reason in page_of(cloud)[1]
    assert "Skipped" in all_runs(cloud)
    assert reason in all_runs(cloud)
    assert cloud.notifiers.sent == []
    assert f"{MODEL}/failed_start.json" not in cloud.artifacts.objects
    overview = ModelOverview.parse(cloud.artifacts.objects[f"{MODEL}/model_overview.json"])
    assert overview.summary.failure is None


def test_no_cloud_leaves_the_messages_of_the_run_as_they_are(make_run, cloud, monkeypatch) -> None:
    """What plan failed with may be the cloud itself: report adds no second failure."""
    run = make_run(params=WRONG_PARAM)
    fail_to_plan(cloud, run)

    def refuse(uri: str) -> bool:
        raise ConnectionError(uri)

    monkeypatch.setattr(cloud.artifacts, "exists", refuse)
    with DAG("retrain__flight_delays", schedule=None):
        task = ReportOperator(task_id="report", run_uri="", cloud=cloud.connect)
        BaseOperator(task_id="plan") >> task
    context = run.context(task)
    context["ti"].get_task_states = lambda **asked: dict.fromkeys(asked["run_ids"], FAILED)
    stored = dict(cloud.artifacts.objects)
    assert task.execute(context) is None
    assert cloud.artifacts.objects == stored
