"""Faults on purpose: what goes wrong, when and how often, seen through Google's client."""

from __future__ import annotations

import time

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform_v1 as v1

from packages.localcloud.tests.vertex.conftest import make_job


def test_next_calls_of_a_method_are_unavailable(api, add_fault):
    job = api.create_job()
    add_fault("JobService.GetCustomJob", "error", count=2, skip=1)
    api.jobs.get_custom_job(name=job.name)
    for _ in range(2):
        with pytest.raises(exceptions.ServiceUnavailable, match="Injected fault"):
            api.jobs.get_custom_job(name=job.name)
    api.jobs.get_custom_job(name=job.name)


def test_fault_without_an_end_lasts_until_it_is_deleted(api, add_fault, rest):
    fault = add_fault("JobService.List*", "error", count=0, code="INTERNAL", message="broken")
    for _ in range(3):
        with pytest.raises(exceptions.InternalServerError, match="broken"):
            api.jobs.list_custom_jobs(parent=api.parent)
    assert [seen["id"] for seen in rest("GET", "/faults").json()["faults"]] == [fault["id"]]
    assert rest("DELETE", f"/faults/{fault['id']}").status_code == 200
    api.jobs.list_custom_jobs(parent=api.parent)
    assert rest("DELETE", f"/faults/{fault['id']}").status_code == 404


def test_lost_response_leaves_the_job_behind(api, add_fault):
    add_fault("JobService.CreateCustomJob", "lost_response")
    with pytest.raises(exceptions.ServiceUnavailable):
        api.create_job(labels={"lost": "response"})
    jobs = list(api.jobs.list_custom_jobs(request={"parent": api.parent, "filter": "labels.lost=response"}))
    assert len(jobs) == 1


def test_stockout_on_create_and_after_it(api, add_fault):
    add_fault(
        "JobService.CreateCustomJob",
        "error",
        code="RESOURCE_EXHAUSTED",
        message="Resources are insufficient in region: us-central1.",
    )
    with pytest.raises(exceptions.ResourceExhausted, match="insufficient"):
        api.create_job()
    add_fault(
        "Job.Start",
        "error",
        filter="labels.stockout=yes",
        code="RESOURCE_EXHAUSTED",
        message="Resources are insufficient in region: us-central1.",
    )
    assert api.wait(api.create_job()).state == v1.JobState.JOB_STATE_SUCCEEDED
    job = api.wait(api.create_job(labels={"stockout": "yes"}))
    assert (job.state, job.error.code) == (v1.JobState.JOB_STATE_FAILED, 8)


def test_slow_call_is_slow(api, add_fault):
    add_fault("JobService.ListCustomJobs", "delay", seconds=0.3)
    begun = time.monotonic()
    api.jobs.list_custom_jobs(parent=api.parent)
    assert time.monotonic() - begun >= 0.3


def test_job_that_waits_for_machines_can_be_cancelled(api, add_fault):
    add_fault("Job.Start", "delay", seconds=60)
    job = api.create_job()
    assert api.wait(job, "JOB_STATE_PENDING").state == v1.JobState.JOB_STATE_PENDING
    api.jobs.cancel_custom_job(name=job.name)
    assert api.wait(job).state == v1.JobState.JOB_STATE_CANCELLED


CODE = """
    import pathlib, signal, sys, time
    mark = pathlib.Path({folder!r}, "starts")
    mark.write_text((mark.read_text() if mark.exists() else "") + "x")
    signal.signal(signal.SIGTERM, lambda *_: (mark.with_name("asked").touch(), sys.exit(0)))
    if len(mark.read_text()) == 1: time.sleep(600)
"""


def test_preempted_replica_is_asked_to_end_and_started_again(api, add_fault, tmp_path):
    add_fault("Replica.Run", "preempt", filter="labels.spot=yes", seconds=0.5, grace_seconds=5)
    job = api.wait(api.create_job(CODE.format(folder=str(tmp_path)), labels={"spot": "yes"}))
    assert job.state == v1.JobState.JOB_STATE_SUCCEEDED, job.error
    assert (tmp_path / "starts").read_text() == "xx"
    assert (tmp_path / "asked").exists()


def test_preemption_without_retries_fails_the_job(api, add_fault):
    add_fault("Replica.Run", "preempt", filter="labels.spot=no-retries")
    job = api.wait(
        api.create_job(
            "import time; time.sleep(600)", labels={"spot": "no-retries"}, scheduling={"disable_retries": True}
        )
    )
    assert (job.state, job.error.code) == (v1.JobState.JOB_STATE_FAILED, 14)
    assert "workerpool0-0 was preempted" in job.error.message


def test_whole_job_is_started_again_when_it_asks_for_that(api, add_fault, tmp_path):
    from packages.localcloud.tests.vertex.conftest import make_pool

    worker = f"import pathlib, time; open(pathlib.Path({str(tmp_path)!r}, 'worker'), 'a').write('x'); time.sleep(600)"
    chief = f"""
        import pathlib, time
        worker = pathlib.Path({str(tmp_path)!r}, "worker")
        while not worker.exists() or len(worker.read_text()) < 2: time.sleep(0.01)
    """
    add_fault("Replica.Run", "preempt", filter="labels.spot=all", replica="workerpool0-0", seconds=1)
    job = api.create_job(
        labels={"spot": "all"},
        worker_pool_specs=[make_pool(chief), make_pool(worker)],
        scheduling={"restart_job_on_worker_restart": True},
    )
    assert api.wait(job).state == v1.JobState.JOB_STATE_SUCCEEDED


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param({"target": "x"}, id="no action"),
        pytest.param({"target": "x", "action": {"kind": "explode"}}, id="unknown kind"),
        pytest.param({"target": "x", "action": {"kind": "error", "code": "BAD"}}, id="unknown code"),
        pytest.param({"target": "x", "action": {"kind": "error"}, "often": 3}, id="unknown key"),
        pytest.param({"target": "x", "action": {"kind": "error"}, "filter": "colour=red"}, id="bad filter"),
    ],
)
def test_malformed_faults_are_refused(rest, fault):
    answer = rest("POST", "/faults", fault)
    assert (answer.status_code, answer.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")


def test_refused_calls_do_not_use_a_fault_up(api, add_fault):
    """A call for the wrong region never reaches the service that fails."""
    add_fault("JobService.CreateCustomJob", "error")
    with pytest.raises(exceptions.InvalidArgument):
        api.jobs.create_custom_job(parent=api.parent.replace("us-central1", "asia-east1"), custom_job=make_job())
    with pytest.raises(exceptions.ServiceUnavailable):
        api.create_job()
