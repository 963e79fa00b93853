"""How old the champion's data is."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core.monitoring.ages import judge_age
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
