"""Which of several jobs counts, and who may create the next one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core.errors import ContractError
from retraining.core.jobs.claims import (
    CLOCKS_APART,
    CREATE_TIMEOUT,
    SETTLED_AFTER,
    START_WITHIN,
    Claim,
    not_before,
    other_generations,
    sort_out,
)
from retraining.core.jobs.failures import Failure
from retraining.core.jobs.job import JobIdentity
from retraining.core.naming.vertex import GENERATION_LABEL, KEY_LABEL
from tests.support.refusals import refuses
from tests.support.small_job import START, job


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
    standing = sort_out([job(*each) for each in jobs])
    assert (standing.counts.job_id if standing.counts else None) == counts
    assert [each.job_id for each in standing.surplus] == surplus
    assert [each.job_id for each in standing.spent] == spent


def test_whoever_sees_the_oldest_keeps_it() -> None:
    """Lists lag differently: no two views ever end the oldest of all."""
    jobs = [job(name, "RUNNING", begun) for begun, name in enumerate("abcd")]
    for view in range(1, 16):
        seen = [each for number, each in enumerate(jobs) if view >> number & 1]
        assert jobs[0] not in sort_out(seen).surplus
        assert len(sort_out(seen).surplus) == len(seen) - 1


def test_the_times_agree() -> None:
    """A create that starts and lands as late as it may is in the list before the next one is begun."""
    assert SETTLED_AFTER - START_WITHIN - CREATE_TIMEOUT >= 2 * CREATE_TIMEOUT


def test_a_claim_is_stored_whole() -> None:
    """As it is read again."""
    claim = Claim(holder="try 1", since=START, jobs=("a",), failures=(Failure.QUOTA,))
    assert Claim.parse(claim.to_bytes(), "gs://b/claim.json") == claim


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


def test_a_create_without_an_answer_may_bring_a_job_for_a_while() -> None:
    """Whoever ends a run looks for it until then."""
    claim = Claim(holder="try 1", since=START)
    assert claim.may_bring_a_job(claim.settled() - timedelta(seconds=1))
    assert not claim.may_bring_a_job(claim.settled())
    assert not claim.closed().may_bring_a_job(START)


@pytest.mark.parametrize(
    ("generation", "key", "state", "older", "newer"),
    [
        pytest.param(2, "mine", "RUNNING", False, False, id="this generation's own"),
        pytest.param(1, "other", "RUNNING", True, False, id="of an older one"),
        pytest.param(2, "other", "RUNNING", True, False, id="another job of this one"),
        pytest.param(3, "other", "RUNNING", False, True, id="of a newer one"),
        pytest.param(1, "other", "CANCELLING", False, False, id="ending already"),
        pytest.param(1, "other", "FAILED", False, False, id="ended"),
    ],
)
def test_jobs_of_other_generations(generation, key, state, older, newer) -> None:
    """Older ones are cancelled, newer ones are somebody's."""
    me = JobIdentity(key="mine", owner="o", dag_run="d", generation=2, retries=0, try_number=1)
    other = job("a", state, labels={KEY_LABEL: key, GENERATION_LABEL: str(generation)})
    found = other_generations([other], me, None)
    assert (found.older, found.newer) == ((other,) if older else (), (other,) if newer else ())
    kept = other_generations([other], me, other)
    assert (kept.older, kept.newer) == ((), ())


@pytest.mark.parametrize(
    ("closed", "began", "forbids"), [(False, False, True), (True, False, False), (True, True, True)]
)
def test_an_upload_that_began_is_waited_for(closed, began, forbids) -> None:
    """Its claim is closed by its operation, and the list may lag behind that."""
    claim = Claim(holder="try 1", since=START, open=not closed)
    assert claim.forbids_another(START, began=began) is forbids
    assert not claim.forbids_another(claim.settled(), began=began)


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(hours=6), timedelta(days=400)])
def test_a_claim_of_a_clock_that_is_wrong_holds_for_no_longer_than_another(ahead: timedelta) -> None:
    """Within the tolerance it stays as it is."""
    claim = Claim(holder="try 1", since=START + ahead)
    assert claim.dated(START).settled() == START + SETTLED_AFTER
    near = Claim(holder="try 1", since=START + CLOCKS_APART)
    assert near.dated(START) == near


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"[" * 100_000,
        b'{"holder": "h", "since": NaN, "open": true, "jobs": [], "failures": []}',
        b'{"holder": "h", "since": "soon", "open": true, "jobs": [], "failures": []}',
        b'{"holder": "h", "since": "2013-11-20T03:00:00+00:00", "open": 1, "jobs": [], "failures": []}',
        b'{"holder": "h", "since": "2013-11-20T03:00:00+00:00", "open": true, "jobs": "abc", "failures": []}',
        b'{"holder": "h", "since": "2013-11-20T03:00:00+00:00", "open": true, "jobs": [], "failures": ["no such"]}',
        b'{"holder": "h", "holder": "i", "since": "2013-11-20T03:00:00Z", "open": true, "jobs": [], "failures": []}',
    ],
)
def test_what_is_no_claim_is_named_with_its_address(data: bytes) -> None:
    """And the way out."""
    with refuses(ContractError, where="gs://b/claim.json", way_out="delete this object"):
        Claim.parse(data, "gs://b/claim.json")
