"""The curves' charts: whose they are, that they stay in the frame, and that the page says what they show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core import documents
from retraining.core.report import charts
from retraining.core.report.curves import SIDE, CurveChart, curve_charts
from retraining.core.report.page import render
from tests.core.report.test_page import WHOLE_RUN
from tests.support.contracts import EXAMPLES, STORED


@pytest.fixture
def run() -> dict[str, dict[str, Any]]:
    """The documents of a run that was compared with a champion."""
    return {kind: json.loads((EXAMPLES / f"{kind}__{what}.json").read_text()) for kind, what in WHOLE_RUN.items()}


def charts_of(evaluation: dict[str, Any]) -> list[CurveChart]:
    return curve_charts(documents.Evaluation.parse(json.dumps(evaluation)))


def points_of(line: str) -> list[tuple[float, float]]:
    return [(float(point.split(",")[0]), float(point.split(",")[1])) for point in line.split()]


def test_two_classes_have_three_charts_of_both_models(run):
    """The challenger's line is drawn last, above the champion's, and nothing leaves the frame."""
    found = charts_of(run["evaluation"])
    assert [chart.name for chart in found] == ["ROC", "Precision and recall", "Calibration"]
    left, right, floor, top = charts.LEFT, SIDE - charts.RIGHT, SIDE - charts.BOTTOM, charts.TOP
    for chart in found:
        assert [curve.role for curve in chart.curves] == ["theirs", "ours"]
        for x, y in [point for curve in chart.curves for point in points_of(curve.points)]:
            assert left <= x <= right
            assert top <= y <= floor
    roc, precision, _ = found
    ends = points_of(roc.curves[1].points)
    assert (ends[0], ends[-1]) == ((left, floor), (right, top))
    assert roc.rest == (left, floor, right, top)
    assert precision.rest[1] == precision.rest[3] == pytest.approx(floor - 0.21 * (floor - top), abs=0.1)


def test_bins_with_more_rows_have_larger_dots(run):
    """By their area: a bin with a quarter of the rows has half the radius; the smallest can still be seen."""
    bins = run["evaluation"]["challenger"]["curves"]["calibration"]
    bins[0]["rows"], bins[1]["rows"], bins[2]["rows"] = 400, 100, 1
    dots = charts_of(run["evaluation"])[2].curves[1].dots
    assert [dot.radius for dot in dots] == [6.0, 3.0, 1.5]
    assert dots[0].message == "400 rows: mean score 0.120, share 0.125"


def test_several_classes_have_the_likeliest_ones_calibration():
    """And a champion that an earlier release judged has none."""
    (only,) = charts_of(json.loads((EXAMPLES / "evaluation__classes.json").read_text()))
    assert "share that is right (up) by mean probability of the likeliest class" in only.message
    assert [curve.role for curve in only.curves] == ["ours"]


@pytest.mark.parametrize(
    "path", [EXAMPLES / "evaluation__numbers.json", STORED / "evaluation.json"], ids=lambda p: p.stem
)
def test_a_number_and_an_earlier_release_have_none(path):
    assert charts_of(json.loads(path.read_text())) == []


def test_a_curve_that_is_not_defined_is_left_out(run):
    """Of examples of one class there is no ROC curve."""
    for side in ("challenger", "champion"):
        run["evaluation"][side]["curves"]["roc"] = None
    assert [chart.name for chart in charts_of(run["evaluation"])] == ["Precision and recall", "Calibration"]


def test_the_page_draws_them(run):
    """Inside the page, with a name for a screen reader."""
    page = render(run)
    for name in ("ROC", "Precision and recall", "Calibration"):
        assert f'role="img" aria-label="{name}: share' in page
    assert page.count('<polyline class="curve ours"') == 3
    run["evaluation"]["challenger"].pop("curves")
    run["evaluation"]["champion"].pop("curves")
    assert "<h3>Curves</h3>" not in render(run)
