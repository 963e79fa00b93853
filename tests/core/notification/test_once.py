"""Once per cause, until it changes or is over; two at once tell once; a death tells rather twice than never."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from retraining.core.documents import Notification
from retraining.core.notification.notices import Notice
from retraining.core.notification.once import CLAIM_LASTS, Claimant, claim

NOW = datetime(2013, 11, 20, 3, tzinfo=UTC)
ALL = ["mail:0123456789ab", "channel:slack"]
FIRST, SECOND = (
    Claimant(name="retrain/night 1/conclude", attempt=1),
    Claimant(name="retrain/night 2/conclude", attempt=1),
)


def notice(cause: str = "run:train:JobError") -> Notice:
    """A failed run's."""
    return Notice(model="flight_delays", event="failure", slot="retrain", cause=cause, values={}, links=(), runbook="x")


def stored(state: str, **values: object) -> Notification:
    """What an earlier run left."""
    first = claim(None, notice(), ALL, FIRST, NOW)
    assert first is not None
    return first.model_copy(update={"state": state, **values})


def test_a_new_cause_is_claimed() -> None:
    """Nothing is stored: everybody is to be told."""
    claimed = claim(None, notice(), ALL, FIRST, NOW)
    assert claimed is not None
    assert (claimed.state, claimed.told, claimed.since) == ("telling", (), NOW)


@pytest.mark.parametrize(
    "claimant", [FIRST, Claimant(name=FIRST.name, attempt=2), SECOND], ids=["same", "retry", "next"]
)
def test_a_cause_that_was_told_is_not_told_again(claimant: Claimant) -> None:
    """Not by the same run, cleared or retried, and not by the next one, a week later either."""
    assert claim(stored("told", told=tuple(ALL)), notice(), ALL, claimant, NOW + timedelta(days=7)) is None


def test_another_cause_is_told() -> None:
    """It failed elsewhere: what was told before says nothing of it."""
    claimed = claim(stored("told", told=tuple(ALL)), notice("run:export:DataError"), ALL, SECOND, NOW)
    assert claimed is not None
    assert claimed.told == ()


def test_a_cause_that_comes_back_is_told() -> None:
    """After it was over."""
    later = NOW + timedelta(days=1)
    claimed = claim(stored("over", told=tuple(ALL)), notice(), ALL, SECOND, later)
    assert claimed is not None
    assert (claimed.told, claimed.since) == ((), later)


def test_whoever_was_not_reached_is_tried_again() -> None:
    """And nobody else."""
    claimed = claim(stored("told", told=(ALL[0],), failed={ALL[1]: "HTTP 404"}), notice(), ALL, SECOND, NOW)
    assert claimed is not None
    assert (claimed.told, claimed.failed) == ((ALL[0],), {})


def test_of_two_at_once_one_tells() -> None:
    """While another's claim is fresh."""
    assert claim(stored("telling"), notice(), ALL, SECOND, NOW + timedelta(minutes=9)) is None


def test_the_next_try_of_who_died_goes_on_at_once() -> None:
    """Whom the dead one wrote down is not told again."""
    claimed = claim(stored("telling", told=(ALL[0],)), notice(), ALL, Claimant(name=FIRST.name, attempt=2), NOW)
    assert claimed is not None
    assert claimed.told == (ALL[0],)


def test_the_claim_of_a_dead_one_does_not_last() -> None:
    """Any other task takes over when it is old: rather twice than never."""
    assert claim(stored("telling"), notice(), ALL, SECOND, NOW + CLAIM_LASTS) is not None
