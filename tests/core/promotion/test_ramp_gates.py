"""What must hold at a step of the ramp: both versions in the same minutes, by evidence and not by a limit."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from retraining.core.documents import AnswerShift, LookCounts, RampGate, RampLook, RampStep
from retraining.core.promotion import ramp_gates
from retraining.core.promotion.latencies import Latencies, Measured
from retraining.core.spec.deployment import Canary
from tests.core.promotion.test_two_samples import hits

NOON = datetime(2013, 11, 20, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
LIKE_BEFORE = AnswerShift(new=2000, old=2000, promised=0.01, promised_low=0.0, before=0.01, before_low=0.0)
CANARY = Canary()
ONE_STEP = {"percent": (50, 100)}


def counts(requests: int, errors: int = 0, slow: float = 0.0) -> LookCounts:
    """Of a look; all answers are timed."""
    return LookCounts(requests=requests, errors=errors, timed=requests, slow=slow)


def step_of(new: LookCounts, old: LookCounts, minutes: int = 15, **values: Any) -> RampStep:
    """A step whose minutes are all alike."""
    looks = [
        RampLook(start=NOON + index * MINUTE, end=NOON + (index + 1) * MINUTE, new=new, old=old, slow_ms=14.0)
        for index in range(minutes)
    ]
    return RampStep(**{"percent": 50, "start": NOON, "looks": tuple(looks), "answers": LIKE_BEFORE} | values)


def judged(
    new: LookCounts, old: LookCounts, minutes: int = 15, canary: dict[str, Any] | None = None, **step: Any
) -> Any:
    """Outcome by gate."""
    found = ramp_gates.judge(Canary(**(ONE_STEP | (canary or {}))), (step_of(new, old, minutes, **step),))
    return {gate.name: gate.passed for gate in found}


PASSED = {"requests": True, "errors": True, "latency": True, "answers": True}


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (counts(500), counts(500, slow=25), PASSED),
        (counts(500, errors=10), counts(500, errors=1, slow=25), {"requests": True, "errors": False, "latency": True}),
        (counts(500, slow=100), counts(500, slow=25), {"requests": True, "errors": True, "latency": False}),
    ],
    ids=["as good", "errs more often", "slower"],
)
def test_both_versions_are_held_against_each_other(new, old, expected) -> None:
    """By the counts of the same minutes; one that is worse ends the step."""
    assert judged(new, old) == expected


def test_ten_times_the_errors_do_not_pass_below_a_limit() -> None:
    """The rule before this one let 0.9 % pass beside 0.09 %, for the limit was 1 %: now it fails within minutes."""
    new, old = counts(1000, errors=9), counts(1000, errors=1)
    assert earlier_rule((1000, 9), (10_000, 9))
    assert judged(new, old, minutes=10)["errors"] is False


def earlier_rule(new: tuple[int, int], old: tuple[int, int], limit: float = 0.01) -> bool:
    """As releases before this one judged errors: requests and errors of both, and the limit that then was default."""
    return new[1] / new[0] <= max(limit, old[1] / old[0])


@pytest.mark.parametrize("rate", [0.02, 0.01])
def test_equal_versions_are_rolled_back_seldom_where_it_was_most_of_them(rate: float) -> None:
    """All looks at three steps, both tests, at 20 requests a second: the same ramps by the earlier rule and by this."""
    draw, before, now = random.Random(7), 0, 0
    ramps = 60
    for _ in range(ramps):
        steps: list[RampStep] = []
        failed_before = failed_now = False
        for percent in (1, 10, 50):
            looks = []
            for minute in range(15):
                rows = 12 * percent, 1200 - 12 * percent
                new, old = (counts(n, hits(draw, n, rate), hits(draw, n, 0.03)) for n in rows)
                old = old.model_copy(update={"slow": min(float(rows[1]), 2 * old.slow)})
                at = NOON + minute * MINUTE
                looks.append(RampLook(start=at, end=at + MINUTE, new=new, old=old, slow_ms=14.0))
            steps.append(RampStep(percent=percent, start=NOON, looks=tuple(looks), answers=LIKE_BEFORE))
            sums = [(each.requests, each.errors) for each in ramp_gates.counted(steps[-1])]
            failed_before |= not earlier_rule(*sums)
            failed_now |= any(
                gate.passed is False for gate in ramp_gates.judge(CANARY, steps) if gate.name != "requests"
            )
        before, now = before + failed_before, now + failed_now
    assert before / ramps > 0.6
    assert now / ramps <= 0.05


@pytest.mark.parametrize(
    ("requests", "minutes", "on_low_traffic", "expected"),
    [
        (6, 14, "stop", {}),
        (6, 15, "stop", {}),
        (1, 59, "continue", {}),
        (1, 60, "stop", {"requests": False}),
        (1, 60, "continue", {"requests": True}),
        (0, 60, "continue", {"requests": True}),
        (10, 60, "stop", {"requests": False, "errors": None, "latency": True, "answers": True}),
        (10, 60, "continue", {"requests": True, "errors": None, "latency": True, "answers": True}),
    ],
)
def test_too_few_requests_are_waited_for_and_then_decided(requests, minutes, on_low_traffic, expected) -> None:
    """Four times the minutes, at most; with enough for `min_requests` and no verdict, the policy decides too."""
    new, old = counts(requests), counts(requests, slow=requests / 10)
    assert judged(new, old, minutes, {"on_low_traffic": on_low_traffic}) == expected


def test_before_the_last_step_no_verdict_is_needed() -> None:
    """A small share is there so that little harm comes of going on; what was not judged says how much is missing."""
    steps = (step_of(counts(10), counts(990, slow=49), percent=1),)
    requests, errors, latency, answers = ramp_gates.judge(CANARY, steps)
    assert (requests.passed, errors.passed, answers.passed) == (True, None, True)
    assert errors.message.startswith("not judged: 0.00% of 150 requests, 0.00% of 14850 before in the same minutes; ")
    assert "no verdict at a margin of 0.2 points without about" in errors.message
    assert latency.passed in (True, None)


def test_a_version_that_is_worse_fails_before_its_minutes_are_over() -> None:
    """At the look that shows it: nobody waits for the rest."""
    assert judged(counts(100, errors=100), counts(100, slow=5), minutes=2)["errors"] is False


@pytest.mark.parametrize(
    ("new", "old", "words"),
    [
        (counts(500).model_copy(update={"timed": 0}), counts(500), "no latency of the new version"),
        (counts(500), counts(500).model_copy(update={"timed": 0}), "no latency of the version before"),
    ],
)
def test_a_latency_that_is_missing_is_named_as_such(new, old, words: str) -> None:
    """Both versions were asked often enough: it is not for want of requests that it is not judged."""
    gates = ramp_gates.judge(Canary(**ONE_STEP), (step_of(new, old, 60),))
    (latency,) = [gate for gate in gates if gate.name == "latency"]
    assert latency == RampGate(name="latency", passed=None, message=f"not judged: Cloud Monitoring has {words}")
    assert gates[0] == RampGate(
        name="requests", passed=False, message="30000 requests in 60 min, and no verdict on latency"
    )


@pytest.mark.parametrize(
    ("shift", "passed"),
    [
        ({"promised": 0.3, "promised_low": 0.25, "before": 0.01, "before_low": 0.0}, True),
        ({"promised": 0.01, "promised_low": 0.0, "before": 0.3, "before_low": 0.25}, True),
        ({"promised": 0.3, "promised_low": 0.25, "before": 0.3, "before_low": 0.25}, False),
        ({"promised": 0.12, "promised_low": 0.08, "before": 0.3, "before_low": 0.25}, True),
        ({"before": 0.3, "before_low": 0.25}, False),
        ({"promised": 0.3, "promised_low": 0.25}, False),
        ({}, None),
    ],
    ids=["customers ask otherwise", "honest after drift", "broken", "by chance", "not promised", "none before", "few"],
)
def test_answers_are_those_that_were_promised_or_those_of_before(shift, passed) -> None:
    """After drift an honest version answers otherwise than the one before, as it did to its own test days."""
    assert judged(counts(500), counts(500, slow=25), answers=AnswerShift(new=900, old=900, **shift)) == PASSED | {
        "answers": passed
    }


def test_what_is_not_measured_passes_nothing() -> None:
    """Whatever `on_low_traffic` says."""
    found = judged(counts(0), counts(0), 60, {"on_low_traffic": "continue"}, unmeasured="the log has 9 answers of it")
    assert found == {"requests": False}


@pytest.mark.parametrize(("bake", "length", "number"), [(1, 1, 4), (15, 1, 60), (47, 3, 63), (720, 48, 60)])
def test_looks_are_the_same_whoever_looks_and_a_step_has_an_end(bake: int, length: int, number: int) -> None:
    """Also after a task that slept for a day; the last look ends no earlier than four times the minutes."""
    canary, step = Canary(bake_minutes=bake), RampStep(percent=1, start=NOON)
    due = ramp_gates.next_looks(canary, step, (NOON, NOON + timedelta(days=9)))
    assert (len(due), due[0][1] - due[0][0]) == (number, timedelta(minutes=length))
    assert due[-1][1] - NOON >= 4 * bake * MINUTE
    new, half = counts(9), len(due) // 2
    noted = [RampLook(start=start, end=end, new=new, old=new) for start, end in due[:half]]
    rest = ramp_gates.next_looks(canary, step.model_copy(update={"looks": tuple(noted)}), (NOON, due[-1][1]))
    assert rest == due[half:]
    assert ramp_gates.next_looks(canary, step, (NOON + MINUTE, NOON)) == []


def test_a_step_of_an_earlier_release_keeps_its_gates_and_one_of_now_follows_from_its_record() -> None:
    """As they are read again from the stored document."""
    old = RampStep(percent=1, start=NOON, end=NOON, gates=(RampGate(name="errors", passed=True, message="0.90%"),))
    now = step_of(counts(500, errors=1), counts(500, slow=25), end=NOON + 15 * MINUTE)
    now = now.model_copy(update={"gates": ramp_gates.judge(CANARY, (old, now))})
    stored = [RampStep.model_validate_json(step.model_dump_json(by_alias=True)) for step in (old, now)]
    assert "looks" not in old.model_dump()
    assert ramp_gates.replay_steps(CANARY, stored) == [old.gates, now.gates]


@pytest.mark.parametrize(
    "values",
    [
        {"requests": 5, "errors": 6},
        {"requests": 5, "errors": 0, "timed": 5, "slow": 6.0},
        {"requests": -1, "errors": 0},
        {"requests": 5, "errors": 0, "timed": 5, "slow": math.nan},
    ],
)
def test_counts_that_nobody_can_have_counted_are_refused(values: dict[str, float]) -> None:
    """A rollout that somebody wrote by hand moves no traffic."""
    with pytest.raises(ValidationError):
        LookCounts(**values)


@pytest.mark.parametrize("ratio", [1.0, 1.2, 1.5, 3.0])
def test_slow_is_where_the_slowest_answers_of_before_are(ratio: float) -> None:
    """A bound of the service; about one answer in twenty of the version before takes longer than it by the ratio."""
    bounds = tuple(1.4**power for power in range(20))
    draw = random.Random(3)
    times = [10 * math.exp(draw.gauss(0, 0.5)) for _ in range(5000)]
    found = [
        sum(low <= time < high for time in times) for low, high in zip((0.0, *bounds), (*bounds, 1e9), strict=True)
    ]
    latencies = Latencies(bounds=bounds, counts=tuple(found))
    slow = latencies.slow_ms(ratio)
    assert slow in bounds
    assert 0.02 < latencies.over(slow / ratio) / latencies.total < 0.12
    assert latencies.over(slow) <= latencies.over(slow / ratio)
    assert Latencies().slow_ms(ratio) is None
    assert Latencies(bounds=bounds, counts=(0,) * 20 + (7,)).slow_ms(ratio) is None


def test_what_is_noted_of_a_look() -> None:
    """Answers over the bound of the new version, of the one before those over it by the ratio."""
    times = Latencies(bounds=(10.0, 14.0, 20.0), counts=(90, 6, 4))
    found = ramp_gates.look(
        Canary(max_latency_ratio=1.25), (NOON, NOON + MINUTE), Measured(), Measured(requests=9, latencies=times), 15.0
    )
    assert (found.new, found.old.timed, found.old.slow) == (LookCounts(requests=0, errors=0), 100, 4 + 3)
    assert ramp_gates.hour_before(Measured()) is None
