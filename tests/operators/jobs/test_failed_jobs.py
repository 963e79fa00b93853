"""VertexJobOperator: what follows a job that failed."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from retraining.core.jobs.failures import MAX_SERVICE_FAILURES
from retraining.operators.airflow.failures import FAILURE_KEY, KIND_KEY
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.job import SPOT_JOB, finish, make_task

EXIT_1 = "The replica workerpool0-0 exited with a non-zero status of 1."


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operators meet; waiting takes no time."""
    return FakeCloud()


def test_a_user_error_fails_for_good_with_the_last_lines(cloud, make_run) -> None:
    """Exit status 2 of the trainer: no retry, and its own words are in the message."""
    run, task = make_run(), make_task(cloud)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    cloud.logs.say("1", "request.json: unknown key 'epoch'. Did you mean 'epochs'?", second=1)
    message = "The replica workerpool0-0 exited with a non-zero status of 2. Termination reason: Error."
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, message)
    for _ in range(2):  # the second time the lines come from the log again
        run.xcoms.clear()  # as Airflow does at the start of a wake
        with pytest.raises(AirflowFailException, match="Did you mean 'epochs'"):
            run.execute(task, max_tries=2)
        assert run.xcoms["train", "link_job"].endswith("/training/1?project=local-project")
        assert "Did you mean 'epochs'" in run.xcoms["train", FAILURE_KEY]["found"]
        assert not run.xcoms["train", FAILURE_KEY]["retried"]
        assert run.xcoms["train", KIND_KEY] == "JobError"
    assert len(cloud.jobs.jobs) == 1
    (stored,) = [data for uri, data in cloud.artifacts.objects.items() if uri.endswith("/failures/train-1.json")]
    assert b"Did you mean 'epochs'" in stored


def test_a_program_error_is_followed_by_as_many_jobs_as_the_task_has_retries(cloud, make_run, caplog) -> None:
    """Exit status 1: each failed job's lines are in the log once; after the last one the task fails for good."""
    run, task = make_run(), make_task(cloud)
    for number in range(3):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
        cloud.logs.say(str(number + 1), f"ValueError {number}", second=number)
        cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, EXIT_1)
        if number < 2:
            with pytest.raises(AirflowRescheduleException):
                run.execute(task)
    with pytest.raises(AirflowFailException, match=r"program error: [\s\S]*ValueError 2[\s\S]*clear"):
        run.execute(task)
    assert len(cloud.jobs.jobs) == 3
    printed = [
        record.getMessage() for record in caplog.records if record.getMessage() == "[workerpool0-0] ValueError 0"
    ]
    assert len(printed) == 1


def test_tries_that_airflow_lost_take_no_job_away(cloud, make_run) -> None:
    """Lost heartbeats and workers count Airflow's tries up: the jobs that failed by themselves decide, in any order."""
    run, task = make_run(), make_task(cloud)
    for try_number in (1, 1, 2, 3, 3, 4):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task, try_number=try_number)
    for jobs_before in (1, 2):
        cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, EXIT_1)
        for _ in range(2):
            with pytest.raises(AirflowRescheduleException):
                run.execute(task, try_number=4)
        assert len(cloud.jobs.jobs) == jobs_before + 1
    finish(cloud)
    assert run.execute(task, try_number=4)["job"] == cloud.jobs.newest


@pytest.mark.parametrize("service", ["artifacts.read_object", "jobs.find_jobs", "jobs.get", "logs.read_new"])
def test_an_outage_costs_no_try_and_no_job(cloud, make_run, monkeypatch, service) -> None:
    """Storage, Vertex AI or Logging says 503 for a while: the task sleeps, and goes on with its job."""
    run, task = make_run(), make_task(cloud)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    monkeypatch.setattr(cloud, "settings", dataclasses.replace(cloud.settings, watch_s=1))
    owner, method = service.split(".")

    def fail(*_: Any) -> None:
        raise ServiceUnavailable("down")

    with monkeypatch.context() as outage:
        outage.setattr(getattr(cloud, owner), method, fail)
        for _ in range(5):
            with pytest.raises(AirflowRescheduleException):
                run.execute(task)
    finish(cloud)
    assert run.execute(task)["job"] == cloud.jobs.newest
    assert (len(cloud.jobs.jobs), cloud.jobs.cancelled) == (1, [])


def test_preempted_spot_jobs_go_on_and_end_on_demand(cloud, make_run) -> None:
    """Each wake that finds its job preempted makes the next one; the third has machines on demand."""
    run, task = make_run(), make_task(cloud)
    for _ in range(3):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
        cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 14, "The replica workerpool0-0 was preempted.")
    strategies = [spec["job_spec"]["scheduling"].get("strategy") for spec in cloud.jobs.specs]
    assert strategies == ["SPOT", "SPOT", None]
    assert SPOT_JOB["job_spec"]["scheduling"]["strategy"] == "SPOT"


def test_the_service_may_fail_a_job_only_so_often(cloud, make_run) -> None:
    """After five jobs without machines the task fails for good, and a retry makes no sixth."""
    run, task = make_run(), make_task(cloud)
    for _ in range(MAX_SERVICE_FAILURES):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
        cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 8, "Resources are insufficient in region.")
    for try_number in (1, 2):
        with pytest.raises(AirflowFailException, match="no machines"):
            run.execute(task, try_number=try_number)
    assert len(cloud.jobs.jobs) == MAX_SERVICE_FAILURES


def test_a_job_without_machines_is_followed_after_a_pause(cloud, make_run) -> None:
    """One, two, four minutes after its end: at once it would end the same way."""
    run, task = make_run(), make_task(cloud)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    for number, minutes in ((1, 1), (2, 2), (3, 4)):
        cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 8, "Resources are insufficient in region.", seconds=0)
        ended = cloud.jobs.jobs[cloud.jobs.newest].ended
        for seconds, jobs_then in ((60 * minutes - 1, number), (60 * minutes, number + 1)):
            cloud.clock.time = ended + timedelta(seconds=seconds)
            with pytest.raises(AirflowRescheduleException):
                run.execute(task)
            assert len(cloud.jobs.jobs) == jobs_then
