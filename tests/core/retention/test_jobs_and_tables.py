"""Jobs that nobody waits for, tables that do not go: never a job that somebody will look for again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from retraining.core.documents import MaintenancePlan
from retraining.core.retention.jobs_and_tables import ActiveJob, Table, judge_job, judge_tables, silence
from retraining.core.retention.spans import Limits

AS_OF = datetime(2013, 12, 24, 12, 30, tzinfo=UTC)
LIMITS = Limits(as_of=AS_OF, min_age_days=30)
NAME = "projects/p/locations/r/customJobs/1"


def job(*, ended: bool = False, silent_hours: float = 1, age_hours: float = 100) -> ActiveJob:
    """A job that runs."""
    return ActiveJob(
        name=NAME,
        state="JOB_STATE_RUNNING",
        model="late",
        run_key="20131120t030000z-0123456789ab",
        created=AS_OF - timedelta(hours=age_hours),
        ended=ended,
        last_sign=AS_OF - timedelta(hours=silent_hours),
    )


def judge(found: ActiveJob, before: MaintenancePlan | None = None, wake_interval_s: int = 60):
    """The verdict."""
    return judge_job(found, LIMITS, silence(wake_interval_s), before)


def plan_of(found: ActiveJob, hours_ago: float) -> MaintenancePlan:
    """Plan of a cleaning so many hours before, which saw this job."""
    then = AS_OF - timedelta(hours=hours_ago)
    seen = judge_job(found, Limits(as_of=then, min_age_days=30), silence(60), None)
    return MaintenancePlan(
        as_of=then, dag_run_id="before", dry_run=False, min_age_days=30, models=(), litter=(), jobs=(seen,), tables=()
    )


def test_a_run_with_an_outcome_waits_for_nothing() -> None:
    """After an hour's grace, in which its own task comes first."""
    assert judge(job(ended=True)).cancel
    assert not judge(job(ended=True, age_hours=0.9)).cancel


def test_a_job_that_is_waited_for_stays() -> None:
    """However long it runs."""
    verdict = judge(job(silent_hours=0.01, age_hours=160), plan_of(job(silent_hours=30), 24))
    assert not verdict.cancel
    assert "gave a sign" in verdict.message


def test_silence_alone_is_not_enough() -> None:
    """After an outage of Airflow every job is silent, and every task will look for its own."""
    verdict = judge(job(silent_hours=72))
    assert not verdict.cancel
    assert "next cleaning cancels" in verdict.message


def test_silence_that_an_earlier_cleaning_saw_too_ends_it() -> None:
    """Airflow was alive then, and nobody came since."""
    silent = job(silent_hours=72)
    assert judge(silent, plan_of(silent, 24)).cancel


def test_a_sign_between_two_cleanings_counts() -> None:
    """It was silent, was looked at, is silent again: it is seen for the first time."""
    assert not judge(job(silent_hours=25), plan_of(job(silent_hours=72), 24)).cancel


def test_two_cleanings_in_a_row_are_one() -> None:
    """A person who triggers it twice after an outage cancels nothing."""
    silent = job(silent_hours=72)
    assert not judge(silent, plan_of(silent, 1)).cancel


def test_long_sleeps_are_no_silence() -> None:
    """`RETRAINING_WAKE_INTERVAL_S` may be longer than a day."""
    silent = job(silent_hours=72)
    assert not judge(silent, plan_of(silent, 24), wake_interval_s=99_999).cancel


@pytest.mark.parametrize(
    ("name", "expires", "words"),
    [
        ("run_late__20131120t030000z_0123456789ab", None, "no expiration"),
        ("run_late__20131120t030000z_0123456789ab", timedelta(days=-2), "expired at 2013-12-22 12:30 UTC and is there"),
        ("run_late__20131120t030000z_0123456789ab", timedelta(hours=-2), None),
        ("run_late__20131120t030000z_0123456789ab", timedelta(days=2), None),
        ("predictions_2013_12_20T03_00_00_123Z_456", None, "wrote it at 2013-12-20 03:00 UTC, and nobody took it"),
        ("errors_2013_12_20T03_00_00_123Z_456", None, "drop it"),
        ("errors_2013_12_20T03_00_00_123Z_456", timedelta(days=2), None),
        ("predictions_2013_12_24T03_00_00_123Z_456", None, None),
        ("predictions_of_somebody_else", None, None),
        ("golden_late__0123456789abcdef", None, None),
        ("requests_late", None, None),
        ("run_of_somebody_else", None, None),
    ],
)
def test_run_tables_are_only_reported(name, expires, words) -> None:
    """And only those that will not go by themselves."""
    found = list(judge_tables([Table(name=f"p.d.{name}", expires=expires and AS_OF + expires)], LIMITS))
    assert [words in table.message for table in found] == ([] if words is None else [True])
