"""A model folder that is gone: the training counts no more, and a duel says whose model is missing and what helps."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import EvaluateRequest, Plan, Report
from retraining.core.naming import serving, storage, vertex
from retraining.core.naming.storage import model_file_uri
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_evaluation, request_training
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.planned_run import FORM, fill, plan, stored_plan

CHAMPION_KEY = "20131113t030000z-0123456789ab"


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operators meet; waiting takes no time."""
    return FakeCloud()


@pytest.fixture
def run(cloud, make_run) -> Any:
    """A run up to its snapshot, and a champion of an earlier one."""
    made = make_run(params=FORM)
    made.planned = stored_plan(cloud, plan(cloud, made))
    fill(cloud, made.planned)
    made.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
    made.champion = cloud.registry.add(CHAMPION_KEY, vertex.CHAMPION)
    folder = storage.run_uri("bucket", "flight_delays", CHAMPION_KEY)
    its_own = {
        "run_key": CHAMPION_KEY,
        "dag_run_id": "scheduled__2013-11-13",
        "run_uri": folder,
        "results_uri": None,  # of an earlier release
    }
    earlier = made.planned.model_copy(update=its_own)
    cloud.artifacts.objects[storage.document_uri(folder, "plan")] = earlier.to_bytes()
    return made


def train_task(cloud: FakeCloud) -> VertexJobOperator:
    """The task `train`."""
    return VertexJobOperator(task_id="train", job_request=request_training, retries=2, cloud=cloud.connect)


def evaluate_task(cloud: FakeCloud) -> VertexJobOperator:
    """The task `evaluate`."""
    return VertexJobOperator(task_id="evaluate", job_request=request_evaluation, retries=2, cloud=cloud.connect)


def uri(run: Any, kind: str) -> str:
    """Address of a document of the run."""
    return storage.document_uri(run.planned.run_uri, kind)


def store(cloud: FakeCloud, run: Any, *, report: bool = True, model: bool = True, champion: bool = True) -> None:
    """What a training leaves, and the champion's model."""
    if report:
        values = json.loads((EXAMPLES / "report__first_attempt.json").read_text())
        cloud.artifacts.objects[uri(run, "report")] = Report.parse(json.dumps(values)).to_bytes()
    if model:
        cloud.artifacts.objects[model_file_uri(serving.trained_model_uri(run.planned))] = b"model"
    if champion:
        cloud.artifacts.objects[model_file_uri(run.champion.artifact_uri)] = b"model"


def test_a_report_without_its_model_is_no_result(cloud, run, caplog) -> None:
    """It is trained again, with a sentence; with model and report the next wake has the result of one job."""
    store(cloud, run, model=False)
    with pytest.raises(AirflowRescheduleException):
        run.execute(train_task(cloud))
    assert len(cloud.jobs.jobs) == 1
    assert uri(run, "report") not in cloud.artifacts.objects  # the job would take it for its own and end
    assert "saved_model.pb is gone" in caplog.text
    store(cloud, run)
    cloud.jobs.end(cloud.jobs.newest, seconds=5.0)
    assert run.execute(train_task(cloud))["job"] == cloud.jobs.newest
    assert len(cloud.jobs.jobs) == 1


def test_a_report_with_its_model_needs_no_job(cloud, run) -> None:
    """As before."""
    store(cloud, run)
    assert run.execute(train_task(cloud))["job"] is None
    assert not cloud.jobs.jobs


def test_a_job_that_still_runs_is_waited_for(cloud, run) -> None:
    """Its model may come after its report: another trainer may write in this order."""
    with pytest.raises(AirflowRescheduleException):
        run.execute(train_task(cloud))
    store(cloud, run, model=False)
    with pytest.raises(AirflowRescheduleException):
        run.execute(train_task(cloud))
    assert uri(run, "report") in cloud.artifacts.objects
    assert len(cloud.jobs.jobs) == 1


def test_a_duel_without_its_challenger_names_train(cloud, run) -> None:
    """Before a job is paid for; clearing train brings it back."""
    store(cloud, run, model=False)
    with refuses(AirflowFailException, found=("challenger's model", "saved_model.pb"), way_out="Clear train"):
        run.execute(evaluate_task(cloud))
    with pytest.raises(AirflowRescheduleException):
        run.execute(train_task(cloud))
    store(cloud, run)
    with pytest.raises(AirflowRescheduleException):
        run.execute(evaluate_task(cloud))


def refuse_champion(cloud: FakeCloud, run: Any) -> str:
    """The message about a champion whose model is gone."""
    store(cloud, run, champion=False)
    with pytest.raises(AirflowFailException) as refused:
        run.execute(evaluate_task(cloud))
    assert not cloud.jobs.jobs
    return str(refused.value)


def test_a_duel_without_its_champion_names_it_and_its_run(cloud, run) -> None:
    """Version, run key, DAG run and file."""
    message = refuse_champion(cloud, run)
    assert "version 1 of run" in message
    assert CHAMPION_KEY in message
    assert model_file_uri(run.champion.artifact_uri) in message
    assert "scheduled__2013-11-13" in message


def test_clearing_train_of_the_champions_run_stores_its_model_again(cloud, run, make_run) -> None:
    """The first way out: that run's train makes a job, and this run's evaluate then meets the champion."""
    refuse_champion(cloud, run)
    champions = make_run(run_id="scheduled__2013-11-13", params=FORM)
    folder = storage.run_uri("bucket", "flight_delays", CHAMPION_KEY)
    champions.xcoms["plan", "return_value"] = {"run_uri": folder}
    cloud.artifacts.objects[storage.document_uri(folder, "report")] = cloud.artifacts.objects[uri(run, "report")]
    with pytest.raises(AirflowRescheduleException):
        champions.execute(train_task(cloud))
    assert cloud.jobs.jobs[cloud.jobs.newest].labels[vertex.RUN_LABEL] == CHAMPION_KEY
    store(cloud, run)
    with pytest.raises(AirflowRescheduleException):
        run.execute(evaluate_task(cloud))
    asked = EvaluateRequest.parse(cloud.artifacts.objects[uri(run, "evaluate_request")])
    assert asked.champion is not None


def test_without_its_alias_the_floor_alone_judges(cloud, run) -> None:
    """The second way out."""
    message = refuse_champion(cloud, run)
    assert "alias champion away" in message
    assert "clear evaluate" in message
    cloud.registry.merge_aliases(run.champion, ["-champion"])
    with pytest.raises(AirflowRescheduleException):
        run.execute(evaluate_task(cloud))
    asked = EvaluateRequest.parse(cloud.artifacts.objects[uri(run, "evaluate_request")])
    assert asked.champion is None


def test_a_champion_that_goes_after_it_was_asked_for(cloud, run) -> None:
    """The stored request names it for good: then only a new attempt goes without it."""
    store(cloud, run)
    with pytest.raises(AirflowRescheduleException):
        run.execute(evaluate_task(cloud))
    del cloud.artifacts.objects[model_file_uri(run.champion.artifact_uri)]
    with pytest.raises(AirflowFailException, match="trigger again with Force"):
        run.execute(evaluate_task(cloud))


def test_a_plan_that_is_gone_too(cloud, run) -> None:
    """The champion's run cannot be named then."""
    folder = storage.run_uri("bucket", "flight_delays", CHAMPION_KEY)
    del cloud.artifacts.objects[storage.document_uri(folder, Plan.kind_name())]
    assert "of its DAG run" in refuse_champion(cloud, run)


@pytest.mark.parametrize("its_report", [True, False], ids=["its report is there", "its report is gone"])
def test_the_request_has_the_signatures_of_both(cloud, run, its_report) -> None:
    """Each by its training report; a champion whose report is gone is met without."""
    store(cloud, run)
    reported = cloud.artifacts.objects[uri(run, "report")]
    if its_report:
        folder = storage.run_uri("bucket", "flight_delays", CHAMPION_KEY)
        cloud.artifacts.objects[storage.document_uri(folder, "report")] = reported
    with pytest.raises(AirflowRescheduleException):
        run.execute(evaluate_task(cloud))
    request = EvaluateRequest.parse(cloud.artifacts.objects[uri(run, "evaluate_request")])
    assert request.champion is not None
    signature = Report.parse(reported).signature
    assert request.challenger.signature == signature
    assert request.champion.signature == (signature if its_report else None)
