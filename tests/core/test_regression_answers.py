"""What a model answers whose label is a number: drift, smoke test, page."""

from __future__ import annotations

import json

import pytest

from retraining.core import documents
from retraining.core.errors import ContractError
from retraining.core.monitoring import drift
from retraining.core.promotion import smoke_tests
from retraining.core.report import charts
from retraining.core.report.page import render
from retraining.core.report.regression import baseline_rows, residuals
from tests.support.contracts import EXAMPLES
from tests.support.number_model import CHAMPION, LABEL, QUANTILES, TABLE, evaluation, judge, make_hourly, taken
from tests.support.small_model import AS_OF, make_plan


@pytest.fixture
def plan():
    """A run of the model."""
    return make_plan(make_hourly())


def measured(plan, answered: dict[str, int]):
    found, _ = judge(plan)
    answers = evaluation(plan).challenger.answers
    counted = [
        {"feature": "departures", "bucket": bucket, "unseen": False, "instances": count}
        for bucket, count in answered.items()
    ]
    total = sum(answered.values())
    listed = [{"feature": "", "bucket": None, "unseen": False, "instances": total}, *counted]
    features = drift.measure(
        plan.spec,
        as_of=AS_OF,
        endpoint_name="projects/p/locations/r/endpoints/hourly",
        log_table=TABLE,
        champion=documents.DriftChampion(version_id="3", run_key=CHAMPION.run_key),
        baseline_uri="gs://b/hourly/statistics.json",
        statistics=found,
        rows=listed,
    )
    return drift.add_answers(features, plan.spec, listed, answers).features[-1]


def test_answers_drift_as_numbers_do(plan):
    """The champion answered 0 to 20, evenly."""
    same = measured(plan, {str(bucket): 50 for bucket in range(1, 21)})
    assert (same.name, same.distance, same.drifted) == ("departures", "jensen_shannon", False)
    assert same.value == pytest.approx(0, abs=1e-9)
    assert measured(plan, {"21": 1000}).drifted


@pytest.mark.parametrize(
    ("label", "text"),
    [(LABEL, "SAFE_CAST(logged_answer AS FLOAT64)"), (QUANTILES, "logged_answer, NULL), '$[1]')")],
)
def test_the_requests_query_reads_the_answer(label, text):
    plan = make_plan(make_hourly(label=label))
    found, _ = judge(plan)
    answers = evaluation(plan).challenger.answers
    query = drift.render_requests_sql(plan.spec, TABLE, found, AS_OF, (), answers)
    assert text in query.sql
    assert {parameter.name: parameter.value for parameter in query.parameters}["edges_answer"] == tuple(range(21))
    assert text not in drift.render_requests_sql(plan.spec, TABLE, found, AS_OF).sql


def test_the_labels_drift_has_a_threshold_of_its_own():
    spec = make_hourly(monitoring={"drift": {"features": {"departures": 1.0}}})
    assert not measured(make_plan(spec), {"21": 1000}).drifted


def test_numbers_are_compared_by_their_size():
    """float32 has seven digits: 5 of a million is no other answer, 5 of a thousand is."""
    asked = [documents.Golden(instance={}, prediction=1_000_000.0), documents.Golden(instance={}, prediction=3.0)]
    said = [1_000_005.0, 3.0]
    assert smoke_tests.require_same_answers("e", said, asked, numbers=True).max_abs_error == 5
    with pytest.raises(ContractError, match=r"by up to 5\..*at most 1e-05"):
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
