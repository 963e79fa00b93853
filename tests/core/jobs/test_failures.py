"""Why a job failed: one example per row of the table, and what follows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core.jobs.failures import MAX_SERVICE_FAILURES, RULES, Failure, classify, find_rule, may_follow, pause

EXIT = "The replica workerpool0-0 exited with a non-zero status of {}. Termination reason: Error. To find out more …"
QUOTA = "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus"
FAILED, CANCELLED = "JOB_STATE_FAILED", "JOB_STATE_CANCELLED"
# An example of each row, in the order of the table.
ROWS = [
    ("JOB_STATE_EXPIRED", 0, "", "ran into its timeout"),
    (CANCELLED, 1, "The job ran longer than its timeout of 5 s (job_spec.scheduling.timeout)", "ran into its timeout"),
    (CANCELLED, 1, "CANCELED", "cancelled"),
    (FAILED, 10, "its machine was not asked in time for train", "ended before it was asked"),
    (FAILED, 3, EXIT.format(2), "user error"),
    (FAILED, 3, EXIT.format("137(SIGKILL)"), "program error"),
    (FAILED, 8, QUOTA, "quota"),
    (FAILED, 8, "Resources are insufficient in region: us-central1.", "no machines"),
    (FAILED, 4, "The job exceeded its timeout", "ran into its timeout"),
    (FAILED, 14, "The replica workerpool0-0 was preempted.", "preempted"),
    (FAILED, 14, "The zone does not have enough resources available", "no machines"),
    (FAILED, 13, "Internal error occurred for the current attempt.", "internal error of the service"),
    (FAILED, 7, "Vertex AI Service Agent may not pull the image", "refused by the service"),
    (FAILED, 0, EXIT.format(2), "user error"),
    (FAILED, 2, EXIT.format(1) + " quota", "program error"),
    (FAILED, 0, "The VM was preempted", "preempted"),
    (FAILED, 2, QUOTA, "quota"),
    (FAILED, 0, "STOCKOUT", "no machines"),
    (FAILED, 2, "Internal error", "internal error of the service"),
    (FAILED, 11, "", "program error"),
]


@pytest.mark.parametrize(("row", "example"), list(enumerate(ROWS)), ids=[f"{n}-{row[3]}" for n, row in enumerate(ROWS)])
def test_each_row_has_its_example(row, example) -> None:
    """The row itself decides, not one above it."""
    assert find_rule(*example[:3]) is RULES[row]
    assert RULES[row].failure == example[3]


def test_every_row_is_shown() -> None:
    """A row without an example is a row that nobody knows to hold."""
    assert len(ROWS) == len(RULES)


@pytest.mark.parametrize(
    ("code", "message", "failure"),
    [
        (4, "timeout while provisioning", Failure.INTERNAL),
        (14, "timeout while provisioning", Failure.INTERNAL),
        (13, "Timeout waiting for the worker pool", Failure.INTERNAL),
        (3, EXIT.format(1) + " requests.Timeout: timed out", Failure.PROGRAM),
        (3, EXIT.format(1) + " OSError: disk quota exceeded", Failure.PROGRAM),
        (3, EXIT.format(1) + " insufficient memory, preempted by", Failure.PROGRAM),
        (3, EXIT.format(20), Failure.PROGRAM),
        (13, EXIT.format(2), Failure.INTERNAL),
        (5, "Image not found: quota-timeout:latest", Failure.REFUSED),
        (8, "A trial got no machines: Resources are insufficient", Failure.STOCKOUT),
    ],
)
def test_words_do_not_overrule_the_code(code, message, failure) -> None:
    """What a program or a name says by chance ends nothing for good, and buys nothing again."""
    assert classify(FAILED, code, message) == failure


@pytest.mark.parametrize(
    ("failures", "retries", "follows"),
    [
        ([], 0, True),
        ([Failure.PROGRAM], 0, False),
        ([Failure.PROGRAM] * 3, 3, True),
        ([Failure.PROGRAM] * 4, 3, False),
        ([Failure.CANCELLED, Failure.PROGRAM], 1, False),
        ([Failure.PREEMPTED] * (MAX_SERVICE_FAILURES - 1), 0, True),
        ([Failure.STOCKOUT] * MAX_SERVICE_FAILURES, 9, False),
        ([Failure.INTERNAL, Failure.PROGRAM, Failure.QUOTA], 1, True),
        ([Failure.USER], 9, False),
        ([Failure.EXPIRED], 9, False),
        ([Failure.REFUSED], 9, False),
    ],
)
def test_the_program_and_the_service_are_counted_apart(failures, retries, follows) -> None:
    """As many retries as the task has, five of the service's, none where it would end the same way."""
    assert may_follow(failures, retries) is follows


def test_pauses_grow_where_machines_or_quota_are_missing() -> None:
    """A job at once would end as the last one did; a preempted one is followed at once."""
    assert pause([]) == pause([Failure.STOCKOUT, Failure.PREEMPTED]) == timedelta(0)
    minutes = [pause([Failure.STOCKOUT] * number) / timedelta(minutes=1) for number in range(1, 7)]
    assert minutes == [1, 2, 4, 8, 15, 15]
    assert pause([Failure.QUOTA, Failure.PREEMPTED, Failure.STOCKOUT]) == timedelta(minutes=2)
