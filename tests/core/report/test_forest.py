"""The forest plot: which slices it draws, where, and in which tone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core.report import charts
from retraining.core.report.forest import NAMES, Forest, forest
from retraining.core.report.page import render
from retraining.core.report.quality import Interval, SliceRow
from tests.core.report.test_page import WHOLE_RUN
from tests.support.contracts import EXAMPLES

GAINS = st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(sorted)


def sliced(value: str, *gain: float) -> SliceRow:
    """A slice with the lower end of its gain's interval, the gain, and the upper end; or without."""
    low, mean, high = gain or (None, None, None)
    return SliceRow(
        column="carrier",
        value=value,
        rows=300,
        not_judged="",
        challenger=0.7,
        champion=0.7,
        gain=mean,
        gains=None if low is None or high is None else (low, high),
        x_challenger=None,
        x_champion=None,
    )


def whole(low: float = -0.01, mean: float = 0.0, high: float = 0.01) -> Interval:
    """The gain over all rows."""
    return Interval(
        mean=mean, low=low, high=high, confidence=0.95, samples=500, x_mean=0, x_low=0, x_high=0, x_bound=None,
        bound=0, x_ticks=(),
    )  # fmt: skip


def drawn(*slices: SliceRow, max_slice_loss: float = 0.03) -> Forest:
    found = forest(slices, whole(), max_slice_loss)
    assert found is not None
    return found


def test_all_rows_stand_above_the_slices():
    """Each with its numbers in words, and with a tone where the whole interval lies on one side of 0."""
    found = drawn(sliced("UA", -0.05, -0.03, -0.01), sliced("AA", -0.02, 0.0, 0.02), sliced("DL", 0.01, 0.02, 0.03))
    assert [(row.name, row.tone) for row in found.rows] == [
        ("all rows", ""),
        ("carrier = UA", "bad"),
        ("carrier = AA", ""),
        ("carrier = DL", "good"),
    ]
    assert found.rows[1].message == "carrier = UA, 300 rows: -0.0300, from -0.0500 to -0.0100"
    assert (found.slices, found.better, found.worse, found.left_out) == (3, 1, 1, 0)
    assert [row.y for row in found.rows] == sorted(row.y for row in found.rows)


@given(st.lists(GAINS, min_size=1, max_size=80))
def test_intervals_stay_inside_the_frame(gains: list[list[float]]):
    """However far they reach, and with the slices beyond 60 counted."""
    found = drawn(*(sliced(str(place), *ends) for place, ends in enumerate(gains)))
    assert len(found.rows) == 1 + min(len(gains), 60)
    assert found.left_out == max(0, len(gains) - 60)
    for row in found.rows:
        assert NAMES <= row.x_low <= row.x <= row.x_high <= charts.WIDTH - charts.RIGHT
        assert 0 < row.y < found.height
    assert NAMES <= found.zero <= charts.WIDTH - charts.RIGHT


def test_a_long_name_is_cut_and_its_words_are_not():
    """The column of names is narrow; a value counts more than its column."""
    crossed, long = drawn(
        replace(sliced("UA & JFK", -0.01, 0.0, 0.01), column="carrier & origin"),
        sliced("an airline with a long name", -0.01, 0.0, 0.01),
    ).rows[1:]
    assert (crossed.name, long.name) == ("carrier & … = UA & JFK", "car… = an airline wit…")
    assert long.message.startswith("carrier = an airline")


@pytest.mark.parametrize(("loss", "shown"), [(0.03, True), (10.0, False)])
def test_a_loss_far_away_does_not_shrink_the_intervals(loss: float, shown: bool):
    """As in the plot of the gain; the caption has its number."""
    found = drawn(sliced("UA", -0.02, 0.0, 0.02), max_slice_loss=loss)
    assert (found.bound is not None) is shown
    assert found.rows[1].x_high - found.rows[1].x_low > 50


def test_there_is_none_where_nothing_is_compared():
    """Without a champion, and where no slice has an interval."""
    assert forest([sliced("UA", -0.02, 0.0, 0.02)], None, 0.03) is None
    assert forest([sliced("UA")], whole(), 0.03) is None


def test_the_page_draws_it_and_counts_the_rest():
    """With what a screen reader says of it."""
    run = {kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in WHOLE_RUN.items()}
    assert "Slices: 1; surely better: 0" in render(run)
    assert "slices are drawn" not in render(run)
    evaluation = run["evaluation"]
    first, difference = evaluation["challenger"]["slices"][0], evaluation["slice_differences"][0]
    names = [f"V{place:02d}" for place in range(75)]
    for side in ("challenger", "champion"):
        evaluation[side]["slices"] = [{**first, "value": name} for name in names]
    evaluation["slice_differences"] = [{**difference, "value": name} for name in names]
    page = render(run)
    assert "worst 60 of 75" in page
    assert page.count("<title>carrier = V") == 60


def test_the_page_has_the_gain_of_each_test_day():
    """In the sequence of the days, with the interval or why there is none, and what the whole interval was drawn by."""
    evaluation = json.loads((EXAMPLES / "evaluation__duel.json").read_bytes())
    evaluation["drawn_by"] = "days"
    known = {**evaluation["difference"], "mean": 0.0125, "low": 0.002, "high": 0.023}
    few = {"units": "positives", "count": 3, "effective": 3, "needed": 20}
    evaluation["day_differences"] = [
        {"column": "day", "value": "2013-11-13", "rows": 900, "difference": known},
        {"column": "day", "value": "2013-11-14", "rows": 40, "difference": None, "evidence": few},
    ]
    run = {kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in WHOLE_RUN.items()}
    page = render({**run, "evaluation": evaluation})
    assert "the interval above takes days as independent" in page
    assert '2013-11-13</td><td class="n">900</td><td class="n">+0.0125<small>+0.0020 to +0.0230' in page
    assert "3 positives, 20 are needed" in page
    assert "Gain of each test day" not in render(run)
