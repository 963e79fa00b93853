"""Which dates and days are taken, and what is refused by name before anything is paid."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from retraining.core.errors import PlanError
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.walk_forward.plan import (
    AskedWalk,
    as_of_all_labels,
    choose_days,
    known_until,
    read_day,
    require_walkable,
    without_search,
)

YEAR = (date(2013, 1, 1), date(2013, 12, 31))
TODAY = date(2026, 11, 27)


@pytest.fixture
def spec() -> ModelSpec:
    """The flights."""
    return load_spec(include_path() / "models" / "flight_delays.yaml")


def with_data(spec: ModelSpec, **changed: object) -> ModelSpec:
    return spec.model_copy(update={"data": spec.data.model_copy(update=changed)})


def test_an_untouched_form_takes_a_quarter_with_all_horizons(spec) -> None:
    """13 weekly dates, the last one 28 days before the first day whose labels are not known."""
    days = choose_days(AskedWalk(), spec, TODAY, YEAR)
    assert days.until == date(2014, 1, 1)
    assert days.dates[-1] == date(2013, 12, 4)
    assert len(days.dates) == 13
    assert {(later - earlier).days for earlier, later in zip(days.dates, days.dates[1:], strict=False)} == {7}
    going_on = choose_days(AskedWalk(), spec, TODAY, None)
    assert going_on.until == known_until(spec.data, TODAY, None)
    assert as_of_all_labels(spec.data, going_on.until) == datetime(2026, 11, 27, tzinfo=UTC)


def test_the_last_versions_may_have_fewer_days(spec) -> None:
    """A date near the end is taken, and scored as far as labels are known."""
    days = choose_days(AskedWalk(first=date(2013, 12, 1), last=date(2013, 12, 29)), spec, TODAY, YEAR)
    assert days.dates[-1] == date(2013, 12, 29)
    assert days.until == date(2014, 1, 1)


REFUSED = [
    (AskedWalk(last=date(2014, 1, 1)), "Param last"),
    (AskedWalk(last=date(2030, 1, 1)), "Param last"),
    (AskedWalk(first=date(2013, 2, 1), last=date(2013, 6, 1)), "Param first"),
    (AskedWalk(first=date(2013, 6, 1), last=date(2013, 5, 1)), "fewer than 2 versions"),
    (AskedWalk(first=date(2013, 6, 1), last=date(2013, 6, 5)), "fewer than 2 versions"),
    (AskedWalk(first=date(2013, 4, 1), last=date(2013, 9, 1), every=1), "at most 60 versions"),
    (AskedWalk(horizons=(7, 7)), "Param horizons"),
    (AskedWalk(horizons=(14, 7)), "Param horizons"),
]


@pytest.mark.parametrize(("asked", "named"), REFUSED, ids=[str(number) for number in range(len(REFUSED))])
def test_what_is_not_to_be_had_is_refused_by_name(spec, asked, named) -> None:
    with pytest.raises(PlanError) as refused:
        choose_days(asked, spec, TODAY, YEAR)
    assert named in str(refused.value)


@pytest.mark.parametrize("text", ["2013-13-01", "2013-02-30", "tomorrow"])
def test_a_day_that_is_none_is_refused_by_name(text) -> None:
    with pytest.raises(PlanError, match="Param first"):
        read_day(text, "first")
    assert read_day("", "first") is read_day(None, "first") is None
    assert read_day("2013-02-28", "first") == date(2013, 2, 28)


def test_the_way_out_of_a_refusal_is_taken(spec) -> None:
    """What the messages propose passes."""
    for asked, name in ((AskedWalk(last=date(2014, 1, 1)), "last"), (AskedWalk(first=date(2013, 2, 1)), "first")):
        with pytest.raises(PlanError) as refused:
            choose_days(asked, spec, TODAY, YEAR)
        proposed = date.fromisoformat(refused.value.way_out.partition(f"Take {name}: ")[2][:10])
        given = AskedWalk(last=proposed) if name == "last" else AskedWalk(first=proposed, every=14)
        choose_days(given, spec, TODAY, YEAR)


def test_models_without_days_that_follow_are_refused(spec) -> None:
    for changed, named in (({"split": "hash"}, "data.split"), ({"time_travel": True}, "data.time_travel")):
        with pytest.raises(PlanError, match=named):
            require_walkable(with_data(spec, **changed))
    require_walkable(spec)


def test_no_date_is_searched_for_itself(spec) -> None:
    assert without_search(spec) == {"tuning.search": "never"}
    assert without_search(spec.model_copy(update={"tuning": None})) == {}
