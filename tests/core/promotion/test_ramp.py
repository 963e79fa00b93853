"""How traffic goes over to a new version."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from retraining.core.documents import RampStep, Served
from retraining.core.promotion import ramp
from retraining.core.spec.deployment import Canary

NOON = datetime(2013, 11, 20, 12, tzinfo=UTC)
GOOD = Served(requests=1000, errors=2, latency_ms=10.0)


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


@pytest.mark.parametrize(("minutes", "early"), [(-2, True), (14, True), (15, False)])
def test_a_step_is_looked_at_for_its_time(minutes: int, early: bool) -> None:
    """Also before its first minute has begun."""
    assert ramp.is_too_early(Canary(), (NOON, NOON + timedelta(minutes=minutes))) is early


def judged(new: dict[str, Any], old: dict[str, Any], shift: float | None, minutes: int = 15, **canary: Any) -> Any:
    """Outcome by gate."""
    seen = (NOON, NOON + timedelta(minutes=minutes))
    gates = ramp.judge(Canary(**canary), seen, GOOD.model_copy(update=new), GOOD.model_copy(update=old), shift)
    return {gate.name: gate.passed for gate in gates}


@pytest.mark.parametrize(("new", "old"), [(None, 10.0), (10.0, None)], ids=["of the new", "of the one before"])
def test_a_latency_that_is_missing_is_named_as_such(new: float | None, old: float | None) -> None:
    """Both versions were asked often enough: it is not for want of requests that it is not judged."""
    asked, before = (GOOD.model_copy(update={"latency_ms": latency}) for latency in (new, old))
    gates = ramp.judge(Canary(), (NOON, NOON + timedelta(minutes=15)), asked, before, 0.02)
    (latency,) = [gate for gate in gates if gate.name == "latency"]
    whose = "the version before" if new else "the new version"
    assert (latency.passed, latency.message) == (
        None,
        f"not judged: Cloud Monitoring has requests of {whose}, and no latency",
    )


PASSED = {"requests": True, "errors": True, "latency": True, "answers": True}


@pytest.mark.parametrize(
    ("new", "old", "shift", "changed"),
    [
        ({}, {}, 0.02, {}),
        ({"errors": 10}, {}, 0.02, {}),
        ({"errors": 11}, {}, 0.02, {"errors": False}),
        ({"errors": 50}, {"errors": 50}, 0.02, {}),
        ({"errors": 51}, {"errors": 50}, 0.02, {"errors": False}),
        ({"latency_ms": 15.0}, {}, 0.02, {}),
        ({"latency_ms": 15.1}, {}, 0.02, {"latency": False}),
        ({"latency_ms": None}, {}, 0.02, {"latency": None}),
        ({"latency_ms": 99.0}, {"requests": 99}, 0.02, {"latency": None}),
        ({}, {}, 0.1, {}),
        ({}, {}, 0.11, {"answers": False}),
        ({}, {}, None, {"answers": None}),
        ({"errors": 900, "latency_ms": 99.0}, {}, 0.9, {"errors": False, "latency": False, "answers": False}),
    ],
)
def test_both_versions_are_held_against_each_other(new, old, shift, changed) -> None:
    """A limit itself passes; what has too little to judge is named, and does not fail."""
    assert judged(new, old, shift) == PASSED | changed


@pytest.mark.parametrize(
    ("requests", "minutes", "on_low_traffic", "expected"),
    [
        (99, 15, "stop", {}),
        (99, 59, "continue", {}),
        (99, 60, "stop", {"requests": False}),
        (99, 60, "continue", {"requests": True}),
        (0, 60, "continue", {"requests": True}),
        (100, 60, "stop", PASSED),
    ],
)
def test_too_few_requests_are_waited_for_and_then_decided(requests, minutes, on_low_traffic, expected) -> None:
    """Four times the minutes, at most."""
    assert judged({"requests": requests, "errors": 0}, {}, 0.0, minutes, on_low_traffic=on_low_traffic) == expected


def test_the_refusal_has_the_gates_with_their_numbers() -> None:
    """All that failed, of the step that ended the ramp."""
    new = Served(requests=200, errors=20, latency_ms=40.0)
    gates = ramp.judge(Canary(), (NOON, NOON + timedelta(minutes=15)), new, GOOD, 0.01)
    steps = (RampStep(percent=1, start=NOON, end=NOON), RampStep(percent=10, start=NOON, end=NOON, gates=gates))
    assert ramp.failed_gate(steps) == gates[1]
    assert ramp.failed_gate(steps[:1]) is None
    assert ramp.refusal(steps) == (
        "Nothing deployed: at 10 % of the traffic errors: 10.00% of 200 requests, 0.20% before; at most 1.00%; "
        "latency: 40 ms, 4.00 times that of before; at most 1.5 times. What served before serves again."
    )
