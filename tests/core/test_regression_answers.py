"""What a model answers whose label is a number: drift, smoke test, page."""

from __future__ import annotations

import json

import pytest

from retraining.core import documents
from retraining.core.errors import ContractError
from retraining.core.monitoring.distributions import answer_baselines
from retraining.core.monitoring.drift import judge_shifts
from retraining.core.monitoring.request_log import read_requests
from retraining.core.promotion import smoke_tests
from retraining.core.report import charts
from retraining.core.report.page import render
from retraining.core.report.regression import baseline_rows, residuals
from tests.support.contracts import EXAMPLES
from tests.support.number_model import LABEL, QUANTILES, evaluation, judge, make_hourly, taken
from tests.support.request_log import CHAMPION_ID, counted
from tests.support.small_model import make_plan


@pytest.fixture
def plan():
    """A run of the model."""
    return make_plan(make_hourly())


def measured(plan, answered: dict[str, int]):
    """Prediction drift from the test days, with these answers by bin."""
    found, _ = judge(plan)
    train = found.splits["train"]
    baselines = answer_baselines(plan.spec, train, evaluation(plan))
    log = read_requests(counted({}, answers={"departures": answered}), ["departures"])
    signals = judge_shifts(plan.spec, train, log, baselines, CHAMPION_ID)
    return next(item for item in signals if (item.kind, item.subject) == ("prediction_drift", "departures"))


def test_answers_drift_as_numbers_do(plan):
    """The champion answered 0 to 20, evenly."""
    same = measured(plan, {str(bucket): 50 for bucket in range(1, 21)})
    assert (same.measure, same.state) == ("jensen_shannon", "ok")
    assert same.value == pytest.approx(0, abs=1e-9)
    assert measured(plan, {"21": 1000}).state == "exceeded"


@pytest.mark.parametrize(("label", "output", "place"), [(LABEL, "prediction", 0), (QUANTILES, "quantiles", 1)])
def test_answers_are_counted_by_the_bins_of_the_test_days(label, output, place):
    plan = make_plan(make_hourly(label=label))
    found, _ = judge(plan)
    (baseline,) = answer_baselines(plan.spec, found.splits["train"], evaluation(plan))
    assert (baseline.output, baseline.place, baseline.edges) == (output, place, tuple(range(21)))
    assert answer_baselines(plan.spec, found.splits["train"], None) == ()


def test_the_labels_drift_has_a_threshold_of_its_own():
    spec = make_hourly(monitoring={"drift": {"features": {"departures": 1.0}}})
    assert measured(make_plan(spec), {"21": 1000}).state == "ok"


def test_numbers_are_compared_by_their_size():
    """float32 has seven digits: 5 of a million is no other answer, 5 of a thousand is."""
    asked = [documents.Golden(instance={}, prediction=1_000_000.0), documents.Golden(instance={}, prediction=3.0)]
    said = [1_000_005.0, 3.0]
    assert smoke_tests.require_same_answers("e", said, asked, numbers=True).max_abs_error == 5
    with pytest.raises(ContractError, match=r"by up to 5\.[\s\S]*1e-05"):
        smoke_tests.require_same_answers("e", said, asked)
    asked[0] = documents.Golden(instance={}, prediction=1000.0)
    with pytest.raises(ContractError, match=r"at most 0\.01"):
        smoke_tests.require_same_answers("e", [1005.0, 3.0], asked, numbers=True)


def test_the_page_shows_baselines_residuals_and_answers(plan):
    found, judged = judge(plan)
    shown = evaluation(plan)
    page = render(
        {
            "plan": plan.to_json(),
            "snapshot": taken(plan).to_json(),
            "statistics": found.to_json(),
            "checks": judged.to_json(),
            "manifest": json.loads((EXAMPLES / "manifest__three_spans.json").read_text()),
            "evaluation": shown.to_json(),
        }
    )
    assert page.count('<rect class="share"') == 4
    assert page.count('class="whisker"') == 2
    assert page.count('class="curve theirs"') == 1
    assert page.count('class="dot theirs" cx') == 2 + len(shown.champion.slices)
    for words in (
        "same hour last week",
        "column departures_last_week",
        "Mean label",
        "unit of departures",
        "-4 to -2: 40 rows",
    ):
        assert words in page, words
    for word in ("positive", "Base rate", "auc"):
        assert word not in page
    assert [row.name for row in baseline_rows("mae", shown)] == ["same_hour_last_week", "median", "mean"]


def test_residuals_of_both_models_share_a_scale():
    """Bars of another width have the same area for the same rows; alone, the challenger's fill the frame."""
    values = json.loads((EXAMPLES / "evaluation__numbers.json").read_text())
    values["champion"]["answers"]["residuals"] = {"edges": [-8.0, 0.0, 8.0], "counts": [250, 250]}
    both = residuals(documents.Evaluation.parse(json.dumps(values)))
    values["champion"] = None
    alone = residuals(documents.Evaluation.parse(json.dumps(values)))
    assert both.theirs.startswith(f"{charts.LEFT:g},{charts.HEIGHT - charts.BOTTOM:g} ")
    assert both.theirs.endswith(f" {charts.WIDTH - charts.RIGHT:g},{charts.HEIGHT - charts.BOTTOM:g}")
    widths = [round(bar.width / other.width, 1) for bar, other in zip(both.bars, alone.bars, strict=True)]
    assert widths == [0.5] * 4
    # 250 rows in 8 units are 31.25 a unit, the tallest bar has 105
    tops = {float(point.split(",")[1]) for point in both.theirs.split()}
    floor = charts.HEIGHT - charts.BOTTOM
    assert floor - min(tops) == pytest.approx((floor - charts.TOP) * 31.25 / 105, abs=0.1)
    assert alone.theirs is None
