"""How old the champion's data is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core.monitoring.ages import judge_age, judge_sources
from tests.support.small_model import AS_OF, make_spec


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
    assert (found.state, found.because, found.value) == ("not_judged", "no_champion", None)


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
    assert {item.subject.rpartition(".")[2]: (item.state, item.because) for item in found} == {
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
