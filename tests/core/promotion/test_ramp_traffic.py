"""How long a ramp takes to its verdict, said beforehand."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from retraining.core.promotion.latencies import Latencies, Measured, together
from retraining.core.promotion.ramp_traffic import explain_verdict, verdict
from retraining.core.spec.deployment import Canary

DAY = timedelta(days=1)
TIMES = Latencies(bounds=(10.0, 14.0, 20.0, 28.0), counts=(0, 500, 300, 150, 50))


def asked(a_second: float, rate: float = 0.002) -> Measured:
    """A day's requests."""
    requests = round(86_400 * a_second)
    return Measured(requests=requests, errors=round(requests * rate), latencies=TIMES)


@pytest.mark.parametrize(
    ("measured", "canary", "words"),
    [
        (asked(100), Canary(), "ramp: 360,000 requests an hour in the last 24 hours; at 50 % a verdict takes about"),
        (asked(1), Canary(), "and a step lasts 60 at most: canary.on_low_traffic: stop gives the traffic back"),
        (asked(1), Canary(on_low_traffic="continue"), "continue goes on without having judged"),
        (asked(5), Canary(max_error_increase=0.02, min_requests=5000), "at 1 % 5000 requests take 1,667 min"),
        (Measured(), Canary(), "ramp: 0 requests an hour in the last 24 hours: no verdict at 50 % of the traffic"),
    ],
    ids=["enough", "too few", "policy", "too few at the first share", "nobody asks"],
)
def test_the_plan_says_whether_the_traffic_is_enough(measured: Measured, canary: Canary, words: str) -> None:
    """And what comes of it if it is not, with the way out."""
    assert words in (explain_verdict(canary, measured, DAY) or "")


def test_half_the_traffic_takes_twice_as_long_and_a_wider_margin_less() -> None:
    """The number of answers does not depend on how fast they come."""
    full, half = verdict(Canary(), asked(10), DAY), verdict(Canary(), asked(5), DAY)
    wide = verdict(Canary(max_error_increase=0.004), asked(10), DAY)
    assert full is not None
    assert half is not None
    assert wide is not None
    assert math.isclose(half.minutes, 2 * full.minutes, rel_tol=0.01)
    assert wide.answers < full.answers / 2
    assert verdict(Canary(percent=(100,)), asked(10), DAY) is None
    assert explain_verdict(Canary(percent=(100,)), asked(10), DAY) is None


def test_what_several_versions_answered_is_one_traffic() -> None:
    """Their times too, where they are counted alike."""
    other = Measured(requests=7, errors=1, latencies=Latencies(bounds=TIMES.bounds, counts=(1, 2)))
    found = together([asked(1), other, Measured(requests=1)])
    assert (found.requests, found.errors) == (86_408, 174)
    assert found.latencies.counts == (1, 502, 300, 150, 50)
    assert together([]) == Measured()
