"""What a finished job means for its task."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retraining.core.errors import JobError
from retraining.core.jobs import outcomes
from retraining.core.jobs.failures import Failure
from retraining.core.jobs.requests import JobRequest
from tests.support.refusals import refuses
from tests.support.small_job import job
from tests.support.small_model import make_plan

LABELS = {"retraining-task": "train"}
WANTED = JobRequest(
    custom_job={"display_name": "late__train", "labels": LABELS}, result_uri="gs://b/r/report.json", way_out="Do this"
)


def test_the_result_sums_up_all_jobs_of_the_task():
    jobs = [
        job("1", "FAILED", 0, 2, labels=LABELS, spot=True),
        job("2", "SUCCEEDED", 3, 6, labels=LABELS),
        job("3", "SUCCEEDED", 0, 60),
    ]
    document = make_plan()
    assert outcomes.result_of(WANTED, document, jobs[1], jobs) == {
        "uri": "gs://b/r/report.json",
        "sha256": document.digest(),
        "job": jobs[1].name,
        "seconds": 300.0,
        "spot_seconds": 120.0,
    }


def test_a_result_that_was_there_before_took_nothing():
    found = outcomes.result_of(WANTED, make_plan(), None, [job("1", "SUCCEEDED", 0, 2, labels=LABELS)])
    assert (found["job"], found["seconds"], found["spot_seconds"]) == (None, None, None)


def test_the_newest_job_of_a_request_left_its_result():
    jobs = [job("1", "FAILED", labels=LABELS), job("2", "SUCCEEDED", labels=LABELS), job("3", "RUNNING")]
    assert outcomes.newest_of(WANTED, jobs) == jobs[1]
    assert outcomes.newest_of(WANTED, jobs[2:]) is None


def test_success_needs_the_document_that_was_asked_for():
    done = job("1", "SUCCEEDED", 0, 1)
    with refuses(JobError, found="gs://b/r/report.json"):
        outcomes.result_without_document(WANTED, done)
    assert outcomes.result_without_document(JobRequest(custom_job={}), done) == {
        "job": done.name,
        "state": "JOB_STATE_SUCCEEDED",
        "seconds": 60.0,
    }


@pytest.mark.parametrize(("own", "follows"), [(None, True), (0, False), (1, True)])
def test_a_requests_own_retries_stand_for_the_tasks(own, follows):
    wanted = JobRequest(custom_job={}, retries=own)
    assert outcomes.may_retry(wanted, [Failure.PROGRAM], 2) is follows


@pytest.mark.parametrize(
    ("state", "message", "bears", "goes_on"),
    [
        ("SUCCEEDED", "", False, True),
        ("FAILED", "non-zero status of 1", True, True),
        ("FAILED", "non-zero status of 1", False, False),
        ("FAILED", "quota", True, False),
        ("CANCELLED", "", True, False),
    ],
)
def test_a_study_goes_on_with_the_trials_it_can_do_without(state, message, bears, goes_on):
    assert outcomes.goes_on_with(job("1", state, error_message=message), bears_failure=bears) is goes_on


def test_an_error_has_the_last_lines_and_the_way_out():
    error = str(outcomes.job_error(WANTED, job("1", "FAILED", error_message="no"), Failure.PROGRAM, ["[w] a", "[w] b"]))
    assert "job 1: program error: no\nIts last lines:\n[w] a\n[w] b" in error
    assert error.endswith("Do this.")
    assert "never created: quota" in str(outcomes.job_error(WANTED, None, Failure.QUOTA, []))


def test_a_job_whose_wait_for_machines_is_over_got_none():
    """Then one on demand follows; one that ran into its timeout is not paid again."""
    ran = job("1", "EXPIRED", 0, 60)
    assert outcomes.failure_of(ran) is Failure.EXPIRED
    assert outcomes.failure_of(replace(ran, started=None)) is Failure.STOCKOUT
