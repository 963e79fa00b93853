"""Two Airflow environments in one project, with equal DAG ids and equal run ids."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.naming.environments import Environment
from retraining.core.naming.vertex import deployed_model_id
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.operators.airflow.params import retrain_params
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.planning.run_plan import PlanRunOperator
from retraining.operators.retention.versions import find_deployments
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.jobs import FakeJobs
from tests.support.fakes.settings import SETTINGS
from tests.support.refusals import refuses
from tests.support.scenes.job import RESULT, RESULT_URI, STORED_URI, make_task

MODEL = "flight_delays"
IDS = {"dag_id": f"retrain__{MODEL}", "run_id": "scheduled__2013-11-20T03:00:00+00:00", "run_type": "scheduled"}


class Place:
    """The project's services, and the environments that share them; `enter` says which one works now."""

    def __init__(self) -> None:
        self.one, self.two = FakeCloud(), FakeCloud()
        self.cloud = self.one
        for cloud, name in ((self.one, "one"), (self.two, "two")):
            environment = Environment(label=name, bucket=name)
            cloud.settings = dataclasses.replace(SETTINGS, bucket=name, environment=name)
            cloud.environment = environment
            cloud.jobs = FakeJobs(environment, self.one.jobs)
            cloud.registry, cloud.endpoints = self.one.registry, self.one.endpoints

    def connect(self) -> FakeCloud:
        """Return the cloud as the environment that works now sees it."""
        return self.cloud

    def enter(self, cloud: FakeCloud) -> FakeCloud:
        """From now on the tasks are this environment's."""
        self.cloud = cloud
        return cloud

    def task(self) -> Any:
        """A task of the environment that works now, which wants a training."""
        task = make_task(self)
        task.run_uri = f"gs://{self.cloud.settings.bucket}/{MODEL}/runs/20131120t030000z-0123456789ab"
        return task

    def register(self, cloud: FakeCloud, run_key: str, *, labelled: bool = True) -> None:
        """A version that a run of an environment made."""
        made = self.one.registry.add(run_key, "champion")
        labels = {**made.labels, **(cloud.environment.labels if labelled else {})}
        artifact_uri = f"gs://{cloud.settings.bucket}/{MODEL}/runs/{run_key}/training/model"
        changed = dataclasses.replace(made, labels=labels, artifact_uri=artifact_uri)
        self.one.registry.versions[made.version_id] = changed


@pytest.fixture
def place() -> Place:
    """Two environments."""
    return Place()


def active(place: Place) -> list[str]:
    """Who pays for which job now."""
    return sorted(job.labels["retraining-environment"] for job in place.one.jobs.jobs.values() if job.active)


def wake(task: Any, run: Any, **options: Any) -> None:
    """One wake of a task whose job works."""
    with pytest.raises(AirflowRescheduleException):
        run.execute(task, **options)


def plan_run(place: Place, run: Any, day: int) -> dict[str, Any]:
    """Run `plan` as of a night."""
    spec = load_spec(include_path() / "models" / f"{MODEL}.yaml")
    run.params = {name: param.value for name, param in retrain_params(spec).items()}
    run.params["as_of"] = f"2013-11-{day}T03:00:00Z"
    return run.execute(PlanRunOperator(task_id="plan", model=MODEL, cloud=place.connect))


class TestJobs:
    """Who finds and cancels which job."""

    def test_two_nights_pay_one_job_a_night_and_environment(self, place, make_run) -> None:
        """Each finds its own at every wake, takes its own result, and cancels nothing of the other's."""
        for night in (1, 2):
            runs = {id(cloud): make_run(**{**IDS, "run_id": f"night {night}"}) for cloud in (place.one, place.two)}
            for _ in range(2):
                for cloud in (place.one, place.two):
                    place.enter(cloud)
                    wake(place.task(), runs[id(cloud)])
            assert active(place) == ["one", "two"]
            for cloud in (place.one, place.two):
                place.enter(cloud).artifacts.objects[RESULT_URI] = RESULT
                (mine,) = [job for job in cloud.jobs.find_jobs({}) if job.active]
                cloud.jobs.end(mine.name, seconds=60.0)
                assert runs[id(cloud)].execute(place.task())["job"] == mine.name
                del cloud.artifacts.objects[RESULT_URI], cloud.artifacts.objects[STORED_URI]
        assert len(place.one.jobs.jobs) == 4
        assert place.one.jobs.cancelled == place.two.jobs.cancelled == []

    def test_a_cleared_task_ends_its_own_older_job_only(self, place, make_run) -> None:
        """The other environment's run has the same ids, and goes on."""
        run = make_run(**IDS)
        for cloud in (place.one, place.two):
            place.enter(cloud)
            wake(place.task(), run)
        wake(place.task(), run, try_number=2, max_tries=3)
        assert active(place) == ["one", "two"]
        assert len(place.two.jobs.cancelled) == 1
        assert place.one.jobs.cancelled == []

    def test_a_runs_end_cancels_its_own_jobs_only(self, place, make_run) -> None:
        """The last task of the run in environment two."""
        run = make_run(**IDS)
        for cloud in (place.one, place.two):
            place.enter(cloud)
            wake(place.task(), run)
        assert len(run.execute(CancelJobsOperator(task_id="cancel_jobs", cloud=place.connect))) == 1
        assert active(place) == ["one"]

    def test_the_cleaning_sees_its_own_jobs_only(self, place, make_run) -> None:
        """A job of the other one is neither judged nor a reason to keep something."""
        place.enter(place.two)
        wake(place.task(), make_run(**IDS))
        assert place.one.jobs.find_active("retraining-key") == []
        assert len(place.two.jobs.find_active("retraining-key")) == 1


class TestModels:
    """Whose a model is."""

    def test_two_nights_and_the_second_environment_is_refused_when_the_first_has_registered(
        self, place, make_run
    ) -> None:
        """By name, with what to do; the first one goes on."""
        keys = [
            plan_run(place, make_run(**IDS), 20)["run_key"] for cloud in (place.one, place.two) if place.enter(cloud)
        ]
        assert len(set(keys)) == 2
        place.register(place.one, keys[0])
        place.enter(place.two)
        with refuses(
            AirflowFailException,
            where="models/flight_delays@1",
            found="'one'",
            way_out=("another name", "RETRAINING_ENVIRONMENT=one"),
        ) as caught:
            plan_run(place, make_run(**IDS), 21)
        assert "models/flight_delays@1" in str(caught.value)
        assert "another name" in str(caught.value)
        assert "in another bucket" in str(caught.value)
        place.enter(place.one)
        assert plan_run(place, make_run(**IDS), 21)["run_key"].startswith("20131121t030000z")

    def test_an_environment_that_moved_to_another_bucket_keeps_its_models_by_its_name(self, place, make_run) -> None:
        """As the message says; and its own first bucket is not asked any more."""
        place.register(place.one, plan_run(place, make_run(**IDS), 20)["run_key"])
        moved = place.enter(place.two)
        moved.settings = dataclasses.replace(moved.settings, environment="one")
        moved.environment = Environment(label="one", bucket="two")
        assert plan_run(place, make_run(**IDS), 21)["run_uri"].startswith(f"gs://two/{MODEL}/runs/")

    def test_a_model_of_an_earlier_release_stays_usable_where_its_files_are(self, place, make_run) -> None:
        """Without a label it is the environment's that has the run."""
        place.register(place.one, "20130101t000000z-000000000000", labelled=False)
        assert plan_run(place, make_run(**IDS), 20)["mode"] == "live"
        place.enter(place.two)
        with pytest.raises(AirflowFailException, match="environment 'one' made it"):
            plan_run(place, make_run(**IDS), 20)

    def test_a_version_that_no_run_made_is_nobodys(self, place, make_run) -> None:
        """A person's own upload does not close the name."""
        version = place.one.registry.add("")
        elsewhere = dataclasses.replace(version, labels={}, artifact_uri="gs://elsewhere/model")
        place.one.registry.versions["1"] = elsewhere
        assert plan_run(place, make_run(**IDS), 20)["mode"] == "live"

    def test_another_environments_endpoint_is_refused(self, place, make_run) -> None:
        """Also when its versions are gone."""
        endpoint = place.one.endpoints.ensure(MODEL, "p.d.t", {})
        labels = place.one.environment.labels
        place.one.endpoints.endpoint = dataclasses.replace(endpoint, labels=labels)
        place.enter(place.two)
        with refuses(AirflowFailException, where="endpoints/flight-delays", found="'one'"):
            plan_run(place, make_run(**IDS), 20)

    def test_another_environments_bucket_is_refused(self, place, make_run) -> None:
        """And the message says how it can be this one's."""
        plan_run(place, make_run(**IDS), 20)
        place.one.settings = dataclasses.replace(place.one.settings, environment="three")
        with refuses(AirflowFailException, found="'one'", way_out="RETRAINING_ENVIRONMENT=one") as caught:
            plan_run(place, make_run(**IDS), 21)
        assert "if it is that" in str(caught.value)
        place.one.settings = dataclasses.replace(place.one.settings, environment="one")
        assert plan_run(place, make_run(**IDS), 21)["mode"] == "live"

    def test_the_cleaning_leaves_another_environments_deployed_models_alone(self, place) -> None:
        """A model without traffic is paid for; who made it ends it."""
        keys = ("20131119t030000z-000000000001", "20131120t030000z-000000000002")
        for key in keys:
            place.register(place.one, key)
        serving, left = (deployed_model_id(key) for key in keys)
        endpoint = place.one.endpoints.ensure(MODEL, "p.d.t", {})
        versions = [version.version_name for version in place.one.registry.list_versions(MODEL)]
        deployed = dict(zip((serving, left), versions, strict=True))
        place.one.endpoints.endpoint = dataclasses.replace(endpoint, deployed=deployed, traffic={serving: 100})
        now = datetime(2013, 11, 21, tzinfo=UTC)
        assert [found.deployed_model_id for found in find_deployments(place.one, MODEL, now)] == [left]
        assert list(find_deployments(place.two, MODEL, now)) == []
