"""Requests, errors and latency of deployed models, and the ages of champion and sources, as signals."""

from __future__ import annotations

import math
from datetime import timedelta

import pytest

from retraining.core.documents.monitoring import Signal
from retraining.core.monitoring.signals import Answered, ServedWindows, judge_age, judge_serving, judge_sources, wilson
from tests.support.small_model import AS_OF, make_spec

SPEC = make_spec(monitoring={"serving": {"max_latency_ms": 50}})
CALM = Answered(requests=1000, errors=0, p50_ms=10.0, p95_ms=20.0, p99_ms=30.0)


def judge(now: Answered, earlier: Answered | None = CALM) -> dict[tuple[str, str], Signal]:
    """Signals of version 3 by kind and measure; all versions together as `all`."""
    windows = ServedWindows(
        now={"11": now}, earlier={"11": earlier} if earlier else {}, names={"11": "version 3", "12": "version 4"}
    )
    return {(item.kind if item.subject else "all", item.measure): item for item in judge_serving(SPEC, windows)}


def test_calm_traffic_is_ok_and_says_its_trend() -> None:
    found = judge(CALM)
    assert {item.state for item in found.values()} == {"ok"}
    assert found["all", "requests"].message == "1000 requests in 24 hours; 1000 in the earlier window."
    assert found["latency", "p99_ratio"].value == 1


@pytest.mark.parametrize(("errors", "state"), [(10, "ok"), (11, "exceeded")])
def test_only_strictly_more_errors_than_the_limit_are_too_many(errors: int, state: str) -> None:
    found = judge(CALM.__class__(requests=1000, errors=errors))["errors", "error_rate"]
    assert (found.state, found.subject) == (state, "version 3")
    assert found.low is not None
    assert found.high is not None
    assert found.low < errors / 1000 < found.high


def test_the_interval_of_a_share_is_wilsons() -> None:
    """1 of 480, by hand: middle (1/480 + 1.9208/480) / (1 + 3.8416/480) = 0.006036, half width 0.005668."""
    low, high = wilson(1, 480)
    assert low == pytest.approx(0.000368, abs=2e-6)
    assert high == pytest.approx(0.011704, abs=2e-6)
    assert wilson(0, 10)[0] == 0


def test_slow_answers_are_said_by_limit_and_by_trend() -> None:
    slow = Answered(requests=1000, errors=0, p50_ms=10.0, p95_ms=20.0, p99_ms=61.0)
    found = judge(slow)
    assert found["latency", "p99_ms"].state == "exceeded"
    assert found["latency", "p99_ratio"].state == "exceeded"
    assert found["latency", "p50_ms"].state == "ok"
    assert ("latency", "p99_ratio") not in judge(slow, None)


def test_few_requests_are_not_judged() -> None:
    found = judge(Answered(requests=199, errors=199, p99_ms=900.0))
    assert {found[key].reason for key in (("errors", "error_rate"), ("latency", "p99_ms"))} == {"too_few"}
    assert found["all", "requests"].value == 199


def test_no_requests_are_named() -> None:
    (found,) = judge_serving(SPEC, ServedWindows(now={}, earlier={}, names={}))
    assert (found.reason, found.state) == ("no_traffic", "not_judged")


def test_a_model_that_was_undeployed_since_is_named_by_its_id() -> None:
    found = judge_serving(SPEC, ServedWindows(now={"99": CALM}, earlier={}, names={}))
    assert {item.subject for item in found} == {"", "deployed model 99"}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1.0])
def test_a_latency_that_is_no_number_is_named(value: float) -> None:
    """Cloud Monitoring may give any double: it is not judged, and the other measures are."""
    found = judge(Answered(requests=1000, errors=0, p50_ms=10.0, p95_ms=value, p99_ms=value))
    for measure in ("p95_ms", "p99_ms"):
        signal = found["latency", measure]
        assert (signal.state, signal.reason) == ("not_judged", "no_metrics")
        assert "no number" in signal.message
    assert found["latency", "p50_ms"].state == "ok"
    assert ("latency", "p99_ratio") not in found
    assert ("latency", "p99_ratio") not in judge(CALM, Answered(requests=1000, errors=0, p99_ms=value))


@pytest.mark.parametrize(("hours", "state"), [(30 * 24, "ok"), (30 * 24 + 1, "exceeded")])
def test_only_strictly_older_than_the_limit_is_too_old(hours: int, state: str) -> None:
    """Thirty days are thirty days."""
    spec = make_spec()
    limits = spec.monitoring.model_copy(update={"max_age_days": 30})
    found = judge_age(spec.model_copy(update={"monitoring": limits}), AS_OF - timedelta(hours=hours), AS_OF)
    assert found.state == state
    assert found.value == pytest.approx(hours / 24, abs=0.001)


def test_without_a_limit_the_age_is_only_said() -> None:
    """And without a champion there is none."""
    assert judge_age(make_spec(), AS_OF - timedelta(days=900), AS_OF).state == "ok"
    found = judge_age(make_spec(), None, AS_OF)
    assert (found.state, found.reason, found.value) == ("not_judged", "no_champion", None)


def test_a_source_that_stopped_is_named_and_a_static_one_is_not() -> None:
    """By the limit of the monitor, else by that of the data's check; exactly at it is in time."""
    tables = {
        "p.shop.late": AS_OF - timedelta(hours=36, seconds=36),
        "p.shop.on_time": AS_OF - timedelta(hours=36),
        "p.shop.depots": AS_OF - timedelta(days=900),
        "p.shop.gone": None,
    }
    limits = {"max_source_age_hours": 36, "static_sources": ["shop.depots"]}
    found = judge_sources(make_spec(monitoring=limits), tables, AS_OF, "p")
    assert {item.subject.rpartition(".")[2]: (item.state, item.reason) for item in found} == {
        "depots": ("ok", None),
        "gone": ("not_judged", "source_stopped"),
        "late": ("exceeded", "source_stopped"),
        "on_time": ("ok", None),
    }
    data = make_spec().data.model_dump(mode="json")
    data["checks"]["max_age_hours"] = 30
    assert [item.threshold for item in judge_sources(make_spec(data=data), tables, AS_OF, "p")] == [30] * 4
    assert {item.state for item in judge_sources(make_spec(), tables, AS_OF, "p")} == {"ok", "not_judged"}


def test_a_source_that_changed_after_the_runs_time_is_fresh() -> None:
    """As of an earlier day, tables are newer than the run."""
    (found,) = judge_sources(make_spec(), {"p.shop.sales": AS_OF + timedelta(days=400)}, AS_OF, "p")
    assert found.value == 0
