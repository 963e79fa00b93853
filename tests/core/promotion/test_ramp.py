"""How traffic goes over to a new version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from retraining.core.documents import RampGate, RampStep
from retraining.core.promotion import ramp
from retraining.core.spec.deployment import Canary

NOON = datetime(2013, 11, 20, 12, tzinfo=UTC)


def test_only_where_nobody_serves_is_a_version_tried_with_all_traffic() -> None:
    """A request of a customer may meet a broken version once in a hundred."""
    assert ramp.first_percent({"old": 100}) == 1
    assert ramp.first_percent({}) == 100


@pytest.mark.parametrize(
    ("canary", "before", "done", "expected"),
    [
        (None, {"old": 100}, (), 100),
        (Canary(), {"old": 100}, (), 1),
        (Canary(), {"old": 100}, (1,), 10),
        (Canary(), {"old": 100}, (1, 10, 50), 100),
        (Canary(), {}, (1,), 100),
        (Canary(percent=(25, 100)), {"old": 100}, (), 25),
    ],
)
def test_the_next_share(canary, before, done, expected: int) -> None:
    """In the spec's steps; all at once without them, and where nobody else serves."""
    steps = [RampStep(percent=percent, start=NOON, end=NOON) for percent in done]
    assert ramp.next_percent(canary, before, steps) == expected


@pytest.mark.parametrize("percent", [(), (50,), (50, 10, 100), (10, 10, 100)])
def test_steps_rise_to_all(percent) -> None:
    """Anything else is refused."""
    with pytest.raises(ValidationError, match="end with 100"):
        Canary(percent=percent)


@pytest.mark.parametrize(
    ("second", "begins"), [(0, "12:01"), (49, "12:01"), (50, "12:01"), (51, "12:02"), (59, "12:02")]
)
def test_whole_minutes_after_the_change_are_looked_at(second: int, begins: str) -> None:
    """The last smoke request is in none of them, and the last ones are not known yet."""
    step = RampStep(percent=1, start=NOON + timedelta(seconds=second))
    start, end = ramp.window(step, NOON + timedelta(minutes=20, seconds=30))
    assert (f"{start:%H:%M}", f"{end:%H:%M}") == (begins, "12:17")


def test_the_refusal_has_the_gates_with_their_numbers() -> None:
    """All that failed, of the step that ended the ramp."""
    gates = (
        RampGate(name="requests", passed=True, message="200 requests in 15 min"),
        RampGate(name="errors", passed=False, message="10.00% of 200 requests"),
        RampGate(name="latency", passed=False, message="40 ms"),
    )
    steps = (RampStep(percent=1, start=NOON, end=NOON), RampStep(percent=10, start=NOON, end=NOON, gates=gates))
    assert ramp.failed_gate(steps) == gates[1]
    assert ramp.failed_gate(steps[:1]) is None
    assert ramp.refusal(steps) == (
        "Nothing deployed: at 10 % of the traffic errors: 10.00% of 200 requests; latency: 40 ms. "
        "What served before serves again."
    )
