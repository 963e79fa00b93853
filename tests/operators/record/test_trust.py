"""Addresses from XCom: a task works in this environment's folder of its own model, or not at all."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from retraining.core.documents import KINDS
from retraining.operators.data.checks import CheckDataOperator
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.evaluation.decision import DecideOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_training
from retraining.operators.monitoring.decision import DecideRetrainingOperator
from retraining.operators.report.page import ReportOperator
from retraining.operators.retention.garbage_collection import CancelUnattendedJobsOperator, DeleteGarbageOperator
from retraining.operators.tuning.study import TuneOperator
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import SETTINGS, here
from tests.support.refusals import refuses
from tests.support.scenes.deployment import example
from tests.support.scenes.planned_run import FORM
from tests.support.scenes.recorded_run import TASKS as RECORDED
from tests.support.scenes.recorded_run import RecordedRun

PLAN = here(example("plan"))
OWN = PLAN["run_uri"]
KEY = PLAN["run_key"]
FORGED = {
    "another bucket": f"gs://elsewhere/flight_delays/runs/{KEY}",
    "another model": f"gs://bucket/digits/runs/{KEY}",
    "no run": "gs://bucket/flight_delays/runs/mine",
    "another folder": f"gs://bucket/flight_delays/spans/{KEY}",
    "a way up": f"gs://bucket/flight_delays/runs/../../digits/runs/{KEY}",
    "a walk-forward": f"gs://bucket/flight_delays/walk_forward/{KEY}",
    "a folder below": f"gs://bucket/flight_delays/runs/{KEY}/training",
    "nothing": "",
}
TASKS = {
    "snapshot": SnapshotOperator,
    "check_data": CheckDataOperator,
    "tune": TuneOperator,
    "decide": DecideOperator,
    "register": RegisterModelOperator,
    "deploy": DeployModelOperator,
    "report": ReportOperator,
}


def make_task(cloud: FakeCloud, task_id: str, run_uri: str) -> Any:
    """A task of the DAG."""
    if task_id == "train":
        return VertexJobOperator(task_id="train", job_request=request_training, run_uri=run_uri, cloud=cloud.connect)
    return TASKS[task_id](task_id=task_id, run_uri=run_uri, cloud=cloud.connect)


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that all tasks meet."""
    return FakeCloud()


def put_plan(cloud: FakeCloud, uri: str, **changes: Any) -> None:
    """Store a plan at an address."""
    document = KINDS["plan"].parse(json.dumps({**PLAN, **changes}))
    cloud.artifacts.objects[f"{uri}/plan.json"] = document.to_bytes()


def untouched(cloud: FakeCloud) -> bool:
    """Whether nothing was asked, written or paid for."""
    return not cloud.jobs.jobs and not cloud.warehouse.asked and not cloud.registry.versions


@pytest.mark.parametrize("task_id", [*TASKS, "train"])
@pytest.mark.parametrize("found", [name for name in FORGED if name != "nothing"])
def test_a_forged_run_uri_is_refused_by_name_before_anything_is_done(cloud, make_run, task_id, found) -> None:
    """Whatever lies there: a plan with a foreign image would run it."""
    uri = FORGED[found]
    put_plan(cloud, uri, trainer_image="elsewhere/evil:1", run_uri=uri, bucket="elsewhere")
    before = dict(cloud.artifacts.objects)
    with refuses(
        AirflowFailException, where="run_uri from XCom", found=uri, expected="gs://bucket/flight_delays/runs"
    ) as caught:
        make_run().execute(make_task(cloud, task_id, uri))
    assert uri in str(caught.value)
    assert untouched(cloud)
    assert cloud.artifacts.objects == before


@pytest.mark.parametrize("task_id", ["snapshot", "check_data", "train"])
@pytest.mark.parametrize("found", [OWN, "gs://bucket/digits/walk_forward/" + KEY, "gs://bucket/flight_delays/runs/x"])
def test_a_walk_forward_works_among_the_walk_forwards_of_its_model_alone(cloud, make_run, task_id, found) -> None:
    """A run's own folder is not its, so that no nightly run takes what it left for its own."""
    put_plan(cloud, found, run_uri=found)
    before = dict(cloud.artifacts.objects)
    root = "gs://bucket/flight_delays/walk_forward"
    with refuses(AirflowFailException, where="run_uri from XCom", found=found, expected=root):
        make_run(dag_id="walk_forward__flight_delays").execute(make_task(cloud, task_id, found))
    assert untouched(cloud)
    assert cloud.artifacts.objects == before


def test_a_walk_forwards_jobs_write_in_its_own_folder_alone(cloud, make_run) -> None:
    """A plan that would have them write among a run's results is refused."""
    uri = f"gs://bucket/flight_delays/walk_forward/{KEY}"
    put_plan(cloud, uri, run_uri=uri, results_uri=f"gs://bucket/jobs/flight_delays/runs/{KEY}")
    with pytest.raises(AirflowFailException, match=f"jobs/flight_delays/walk_forward/{KEY}"):
        make_run(dag_id="walk_forward__flight_delays").execute(make_task(cloud, "snapshot", uri))
    assert untouched(cloud)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("project", "another-project"),
        ("region", "europe-west1"),
        ("dataset", "another_dataset"),
        ("environment", "another"),
    ],
)
def test_a_plan_that_names_other_places_than_the_settings_is_refused(cloud, make_run, name, value) -> None:
    """Both are said, and clearing from plan on is the way out."""
    put_plan(cloud, OWN, **{name: value})
    with pytest.raises(AirflowFailException) as caught:
        make_run().execute(make_task(cloud, "train", OWN))
    assert f"{OWN}/plan.json: {name} {value!r}" in str(caught.value)
    assert f"RETRAINING_{name.upper()} {getattr(SETTINGS, name)!r}" in str(caught.value)
    assert "run from plan on" in str(caught.value)
    assert untouched(cloud)


@pytest.mark.parametrize("task_id", ["export", "train", "evaluate"])
def test_a_job_is_of_the_settings_image_whatever_the_plan_names(make_run, task_id) -> None:
    """Somebody else wrote the plan, or an earlier release did; a job that goes on is found again as it is."""
    night = night_before(make_run, task_id, trainer_image="elsewhere/evil:1")
    night.run_task(task_id)
    job = night.cloud.jobs.specs[-1]
    assert job["labels"]["retraining-task"] == task_id
    assert image_of(job) == SETTINGS.trainer_image
    night.cloud.settings = dataclasses.replace(night.cloud.settings, trainer_image="us-docker.pkg.dev/p/r/trainer:9")
    made = len(night.cloud.jobs.jobs)
    night.run_task(task_id)
    assert len(night.cloud.jobs.jobs) == made


def test_a_version_is_served_by_the_settings_image_whatever_the_plan_names(make_run) -> None:
    night = night_before(make_run, "register", serving_image="us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.evil:1")
    registry, seen = night.cloud.registry, []
    start = registry.start_upload
    registry.start_upload = lambda model, upload: seen.append(upload) or start(model, upload)
    night.run_task("register")
    assert [upload.container_spec["image_uri"] for upload in seen] == [SETTINGS.serving_image]


def test_a_version_for_another_kind_of_server_is_refused(make_run) -> None:
    """TensorFlow Serving looks for the model in another folder than a pre-built container."""
    night = night_before(make_run, "register")
    serving = "us-docker.pkg.dev/p/r/tensorflow-serving:2.19.1"
    night.cloud.settings = dataclasses.replace(night.cloud.settings, serving_image=serving)
    with refuses(
        AirflowFailException,
        where="plan.json",
        found=f"serving_image {SETTINGS.serving_image!r}",
        way_out="from plan on",
    ):
        night.run_task("register")
    assert not night.cloud.registry.uploads


def night_before(make_run: Any, task_id: str, **changes: str) -> RecordedRun:
    """A night up to a task, whose plan is changed then."""
    night = RecordedRun(FakeCloud(), make_run(params=FORM))
    night.run_tasks(*list(RECORDED)[: list(RECORDED).index(task_id)])
    objects, uri = night.cloud.artifacts.objects, night.uri("plan")
    objects[uri] = KINDS["plan"].parse(json.dumps({**json.loads(objects[uri]), **changes})).to_bytes()
    return night


def image_of(job: dict[str, Any]) -> str:
    """What a job runs."""
    return str(job["job_spec"]["worker_pool_specs"][0]["container_spec"]["image_uri"])


@pytest.mark.parametrize("change", [{"run_uri": "gs://elsewhere/flight_delays/runs/x"}, {"model": "digits"}], ids=str)
def test_a_plan_that_was_put_into_another_runs_folder_is_refused(cloud, make_run, change) -> None:
    """It is of another run than its folder says."""
    put_plan(cloud, OWN, **change)
    with refuses(AirflowFailException, where="plan.json", found="plan of run"):
        make_run().execute(make_task(cloud, "train", OWN))
    assert untouched(cloud)


def test_a_plan_of_a_release_without_environments_is_taken(cloud, make_run) -> None:
    """Its bucket is this environment's."""
    put_plan(cloud, OWN, environment=None)
    with refuses(AirflowFailException, where="decision.json", found="no such document"):
        make_run().execute(make_task(cloud, "register", OWN))


@pytest.mark.parametrize(
    "uri",
    [
        "gs://elsewhere/flight_delays/monitor/20131120t030000z-00000000",
        "gs://bucket/digits/monitor/20131120t030000z-00000000",
        "gs://bucket/flight_delays/monitor/20131120t030000z-00000000",
        "gs://bucket/flight_delays/monitor/x",
    ],
)
def test_a_forged_monitor_uri_is_refused(cloud, make_run, uri) -> None:
    """Also that of another run of the same monitor."""
    run = make_run(dag_id="monitor__flight_delays")
    with refuses(AirflowFailException, where="monitor_uri from XCom"):
        run.execute(
            DecideRetrainingOperator(task_id="decide", model="flight_delays", monitor_uri=uri, cloud=cloud.connect)
        )
    assert not cloud.artifacts.objects


@pytest.mark.parametrize("operator", [CancelUnattendedJobsOperator, DeleteGarbageOperator])
@pytest.mark.parametrize("uri", ["gs://elsewhere/maintenance/x", "gs://bucket/maintenance/20260101t000000z-00000000"])
def test_a_forged_cleaning_uri_deletes_and_cancels_nothing(cloud, make_run, operator, uri) -> None:
    """Its plan would name what shall go: a foreign bucket's objects, anybody's jobs."""
    plan = {**example("maintenance_plan"), "dry_run": False}
    cloud.artifacts.objects[f"{uri}/maintenance_plan.json"] = (
        KINDS["maintenance_plan"].parse(json.dumps(plan)).to_bytes()
    )
    before = dict(cloud.artifacts.objects)
    with pytest.raises(AirflowFailException, match="cleaning_uri from XCom"):
        make_run(dag_id="maintain").execute(operator(task_id="x", cleaning_uri=uri, cloud=cloud.connect))
    assert cloud.artifacts.objects == before
    assert cloud.jobs.cancelled == []


def test_a_job_of_another_environment_is_never_cancelled_by_name(scene) -> None:
    """Even when a plan names it."""
    from retraining.core.jobs.job import Job
    from retraining.core.naming import vertex
    from tests.support.scenes.garbage_collection import RECENT

    name = "projects/p/locations/r/customJobs/1"
    labels = {vertex.MODEL_LABEL: "late", vertex.RUN_LABEL: RECENT, vertex.KEY_LABEL: "k"}
    made = Job(
        name=name,
        state="JOB_STATE_RUNNING",
        labels=labels,
        created=scene.run.run_after.replace(day=20),
        folder_uri="gs://bucket/x",
    )
    scene.cloud.jobs.jobs[name] = made
    scene.look()
    scene.cloud.jobs.jobs[name] = dataclasses.replace(made, folder_uri="gs://elsewhere/x")
    assert scene.cancel()[0]["outcome"] == "left"
    assert scene.cloud.jobs.cancelled == []
