"""How often a replay stops a version that is as good, and how often one that is not: by many drawn replays."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from retraining.core.documents import AnswerShift, ShadowTraffic
from retraining.core.monitoring.distributions import shift_of_answers
from retraining.core.promotion import shadow
from retraining.core.promotion.latencies import Latencies, Measured
from retraining.core.spec.deployment import Canary, Shadow
from tests.support.small_model import make_spec

NOON = datetime(2013, 11, 20, 12, tzinfo=UTC)
BOUNDS = tuple(1.4**power for power in range(30))
SPEC, CANARY = make_spec(), Canary()
DRAWS = 40
ALLOWED = 0.05
"""False stops, of errors and times together."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A version beside the one before.

    `requests` are replayed, `logged` were answered in the day; `old` and `new` are shares of errors, `slower` is how
    many times as long the new one takes, `moved` how far its answers are higher, as logits.
    """

    requests: int
    logged: int
    old: float = 0.002
    new: float = 0.002
    slower: float = 1.0
    moved: float = 0.0

    def stops(self, generator: np.random.Generator) -> set[str]:
        """Return the gates that fail in one drawn replay."""
        errors = int(generator.binomial(self.requests, self.new))
        now = NOON + timedelta(hours=1)
        done = ShadowTraffic(
            until=NOON,
            last_sent=now,
            requests=self.requests,
            values=self.requests,
            sent=self.requests,
            answered=self.requests - errors,
            errors=errors,
        )
        old_errors = int(generator.binomial(self.logged, self.old))
        old = Measured(requests=self.logged, errors=old_errors, latencies=times(generator, self.logged, 1.0))
        new = Measured(latencies=times(generator, self.requests, self.slower))
        logits = generator.normal(-1.0, 1.0, self.requests)  # the same requests, by two trainings
        answers = [logits + generator.normal(moved, 0.3, self.requests) for moved in (0.0, self.moved)]
        before, after = ((1 / (1 + np.exp(-each))).tolist() for each in answers)
        shift = AnswerShift(new=len(after), old=len(before))
        if len(after) >= CANARY.min_requests:
            found = shift_of_answers(SPEC, after, before)
            shift = shift.model_copy(update={"before": found.value, "before_low": found.low})
        done = shadow.looked_at(CANARY, done, now, new, old).model_copy(update={"answers_shift": shift})
        return {gate.name for gate in shadow.judge_shadow(CANARY, done) if gate.passed is False}


def times(generator: np.random.Generator, number: int, slower: float) -> Latencies:
    """Draw times as Cloud Monitoring counts them: lognormal, 20 ms in the median."""
    drawn = slower * 20.0 * np.exp(generator.normal(0.0, 0.5, number))
    counts, _ = np.histogram(drawn, (0.0, *BOUNDS, np.inf))
    return Latencies(bounds=BOUNDS, counts=tuple(counts.tolist()))


def stopped(case: Case, draws: int = DRAWS) -> dict[str, float]:
    """Share of replays that stop, in all and by gate."""
    generator = np.random.default_rng(20131120)
    found = [case.stops(generator) for _ in range(draws)]
    shares = {name: sum(name in each for each in found) / draws for name in ("errors", "latency", "answers")}
    return {"any": sum(map(bool, found)) / draws, **shares}


EQUAL = [
    Case(requests=requests, logged=logged, old=share, new=share)
    for requests, logged in ((25, 25), (100, 100), (1000, 1000), (1000, 50_000))
    for share in (0.0, 0.002, 0.02, 0.1)
]
WORSE = {
    "0.2 % to 2.2 % errors": Case(requests=1000, logged=50_000, new=0.022),
    "0.2 % to 5.2 % errors": Case(requests=1000, logged=50_000, new=0.052),
    "twice as slow": Case(requests=1000, logged=50_000, slower=2.0),
    "answers two logits higher": Case(requests=1000, logged=50_000, moved=2.0),
}


def test_it_needs_the_endpoint_for_tries() -> None:
    """And is off unless it is asked for, so that a stored spec means what it meant."""
    with pytest.raises(ValueError, match=r"set staging: true, or remove shadow"):
        make_spec(deployment={"shadow": {}})
    assert make_spec(deployment={"shadow": {}, "staging": True}).deployment.shadow == Shadow()
    assert make_spec(deployment={"staging": True}).deployment.shadow is None
    assert "shadow" not in make_spec(deployment={"staging": True}).model_dump_json()


def test_a_model_without_an_endpoint_has_none() -> None:
    """Nobody sends it requests."""
    with pytest.raises(ValueError, match="shadow is of an endpoint"):
        make_spec(deployment={"shadow": {}, "endpoint": False})


@pytest.mark.parametrize("case", EQUAL[1::2], ids=str)
def test_a_version_that_is_as_good_is_stopped_as_seldom_as_it_says(case: Case) -> None:
    """Also of few requests, and where many err: at most 5 %, and three deviations of so many draws."""
    assert stopped(case)["any"] <= ALLOWED + 3 * (ALLOWED * (1 - ALLOWED) / DRAWS) ** 0.5


@pytest.mark.parametrize("case", WORSE.values(), ids=WORSE)
def test_a_version_that_is_worse_is_stopped(case: Case) -> None:
    assert stopped(case, 20)["any"] >= 0.8


if __name__ == "__main__":
    for case in (*EQUAL, *WORSE.values()):
        print(case, stopped(case, int(sys.argv[1])), flush=True)
