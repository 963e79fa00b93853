"""Which of several jobs counts, and who may create the next one."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest

from retraining.core.jobs.claims import CREATE_TIMEOUT, SETTLED_AFTER, START_WITHIN, Claim, not_before, sort_out
from retraining.core.jobs.failures import Failure

START = datetime(2026, 1, 1, tzinfo=UTC)


@dataclasses.dataclass(frozen=True)
class FakeJob:
    """A job by the minutes of its beginning and end."""

    name: str
    short: str
    begun: int
    done: int | None = None

    @property
    def state(self) -> str:
        """As the service says it."""
        return f"JOB_STATE_{self.short}"

    @property
    def active(self) -> bool:
        """Whether it goes on."""
        return self.short in ("RUNNING", "PENDING", "CANCELLING")

    @property
    def created(self) -> datetime:
        """Time of its beginning."""
        return START + timedelta(minutes=self.begun)

    @property
    def ended(self) -> datetime | None:
        """Time of its end."""
        return None if self.done is None else START + timedelta(minutes=self.done)


@pytest.mark.parametrize(
    ("jobs", "counts", "surplus", "spent"),
    [
        ([], None, [], []),
        ([("a", "RUNNING", 0)], "a", [], []),
        ([("b", "RUNNING", 1), ("a", "PENDING", 0), ("c", "RUNNING", 1)], "a", ["b", "c"], []),
        ([("a", "RUNNING", 0), ("b", "SUCCEEDED", 1, 2)], "b", ["a"], []),
        ([("a", "CANCELLING", 0), ("b", "RUNNING", 1)], "b", [], []),
        ([("a", "CANCELLING", 0)], "a", [], []),
        ([("a", "FAILED", 0, 1), ("b", "RUNNING", 2)], "b", [], ["a"]),
        ([("a", "FAILED", 0, 1), ("b", "FAILED", 2, 3)], None, [], ["a", "b"]),
        ([("a", "CANCELLED", 0, 1)], None, [], ["a"]),
        ([("a", "FAILED", 0, 1), ("b", "CANCELLED", 2, 3)], None, [], ["a", "b"]),
        ([("a", "FAILED", 0, 5), ("b", "CANCELLED", 1, 2), ("c", "CANCELLED", 1, 2)], None, [], ["a"]),
        ([("a", "RUNNING", 0), ("b", "CANCELLED", 1, 2)], "a", [], []),
        ([("a", "FAILED", 0, 5), ("b", "FAILED", 1, 6)], None, [], ["a", "b"]),
    ],
)
def test_the_oldest_that_goes_on_counts(jobs, counts, surplus, spent) -> None:
    """One that succeeded before all; what was cancelled beside an older one is no failure."""
    standing = sort_out([FakeJob(*job) for job in jobs])
    assert (standing.counts.name if standing.counts else None) == counts
    assert [job.name for job in standing.surplus] == surplus
    assert [job.name for job in standing.spent] == spent


def test_whoever_sees_the_oldest_keeps_it() -> None:
    """Lists lag differently: no two views ever end the oldest of all."""
    jobs = [FakeJob(name, "RUNNING", begun) for begun, name in enumerate("abcd")]
    for view in range(1, 16):
        seen = [job for number, job in enumerate(jobs) if view >> number & 1]
        assert jobs[0] not in sort_out(seen).surplus
        assert len(sort_out(seen).surplus) == len(seen) - 1


def test_the_times_agree() -> None:
    """A create that starts and lands as late as it may is in the list before the next one is begun."""
    assert SETTLED_AFTER - START_WITHIN - CREATE_TIMEOUT >= 2 * CREATE_TIMEOUT


def test_a_claim_is_stored_whole() -> None:
    """As it is read again."""
    claim = Claim(holder="try 1", since=START, jobs=("a",), failures=(Failure.QUOTA,))
    assert Claim.parse(claim.to_bytes()) == claim


def test_a_create_is_settled_by_its_job_by_a_no_or_by_time() -> None:
    """Until then nobody creates; without an answer it counts as a failure of the service."""
    claim = Claim(holder="try 1", since=START, jobs=("a",))
    settled = START + SETTLED_AFTER
    assert claim.with_jobs(["a"]) == claim
    assert not_before(claim, None, []) == settled
    assert claim.failures_by(settled - timedelta(seconds=1)) == ()
    assert claim.failures_by(settled) == (Failure.INTERNAL,)
    assert claim.next("try 2", settled).failures == (Failure.INTERNAL,)
    assert not_before(claim.with_jobs(["a", "b"]), None, []) is None
    assert claim.with_jobs(["a", "b"]).failures_by(settled) == ()
    assert not_before(claim.closed(), None, []) is None
    assert not_before(claim.refused(Failure.QUOTA), None, [Failure.QUOTA]) == START + timedelta(minutes=1)


def test_pauses_begin_at_the_last_end() -> None:
    """Of jobs, or of a create that was refused."""
    end = START + timedelta(minutes=7)
    assert not_before(None, end, [Failure.STOCKOUT]) == end + timedelta(minutes=1)
    assert not_before(None, end, [Failure.PREEMPTED]) is None
    refused = Claim(holder="h", since=START + timedelta(minutes=9)).refused(Failure.STOCKOUT)
    assert not_before(refused, end, [Failure.STOCKOUT] * 2) == START + timedelta(minutes=11)
