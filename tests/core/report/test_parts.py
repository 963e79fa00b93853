"""What the page's sections are computed from: curves, intervals, slices, days, features, numbers for people."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core import documents
from retraining.core.leaves import leaves
from retraining.core.report import charts, rendering
from retraining.core.report.changes import days, noteworthy
from retraining.core.report.features import feature_rows
from retraining.core.report.page import render
from retraining.core.report.quality import base_rate_value, interval, metric_rows, slice_rows, training_charts
from retraining.core.report.rendering import duration, size
from retraining.core.report.run import Run, read_reported_run
from retraining.core.report.timings import total_seconds, total_usd
from tests.support.contracts import EXAMPLES
from tests.support.small_model import make_plan, make_snapshot, make_spec, make_statistics, spec_values

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)


def example(name: str) -> dict:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def run_of(**changes: Any) -> Run:
    """A run of the small model, with the documents that are given."""
    plan = changes.pop("plan", None) or make_plan()
    return read_reported_run(
        {"plan": plan.to_json(), **{kind: document.to_json() for kind, document in changes.items()}}
    )


def run_documents(plan: documents.Plan, verdict: documents.Checks) -> dict[str, documents.Document]:
    """What a run has left when its data was judged."""
    return {"plan": plan, "snapshot": make_snapshot(plan), "statistics": make_statistics(plan), "checks": verdict}


def evaluation(**changes: object) -> documents.Evaluation:
    """The example's duel with some keys replaced."""
    return documents.Evaluation.parse(json.dumps({**example("evaluation__duel"), **changes}))


def scored(column: str, value: object, rows: int, auc: float | None) -> dict:
    return {
        "column": column,
        "value": value,
        "rows": rows,
        "metrics": {"auc": auc, "log_loss": 0.4, "accuracy": 0.8, "brier": 0.1},
    }


class TestCharts:
    """Geometry."""

    @given(low=NUMBERS, width=st.floats(1e-6, 1e6))
    def test_ticks_lie_inside_and_are_evenly_spaced(self, low, width):
        """Round numbers, a handful, none outside the range."""
        found = charts.ticks(low, low + width)
        assert len(found) <= 11
        steps = {round((b - a) / width, 3) for a, b in itertools.pairwise(found)}
        assert len(steps) <= 1 or max(steps) - min(steps) < 0.01
        slack = 1e-6 * max(abs(low), width)
        assert all(low - slack <= tick <= low + width + slack for tick in found)

    def test_ticks_are_round(self):
        """Steps of 1, 2 or 5 times a power of ten."""
        assert charts.ticks(0.03, 0.47) == [0.2, 0.4]
        assert charts.ticks(-0.9, 1.1) == [-0.5, 0.0, 0.5, 1.0]
        assert [charts.number_text(tick, [0.4, 0.45, 0.5]) for tick in (0.4, 0.45)] == ["0.40", "0.45"]

    @given(st.lists(NUMBERS, min_size=1, max_size=40))
    def test_curves_stay_inside_the_frame(self, values):
        """Whatever the history is, also one epoch or a constant."""
        drawn = charts.line_chart("loss", {"training": values, "validation": values[:1]}, best_epoch=len(values))
        for line in drawn.lines:
            for x, y in line.dots:
                assert charts.LEFT <= x <= charts.WIDTH - charts.RIGHT
                assert charts.TOP <= y <= charts.HEIGHT - charts.BOTTOM
        assert drawn.best == drawn.lines[0].dots[-1][0]
        assert drawn.lines[0].last == values[-1]

    def test_a_report_has_a_chart_per_quantity_the_loss_first(self):
        """Training and validation share a chart."""
        found = training_charts(documents.Report.parse(json.dumps(example("report__first_attempt"))))
        assert [(chart.name, [line.name for line in chart.lines]) for chart in found] == [
            ("loss", ["training", "validation"]),
            ("auc", ["training", "validation"]),
        ]


class TestQuality:
    """The duel."""

    def test_gain_is_positive_where_the_challenger_is_better(self):
        """Also where lower is better."""
        judged = evaluation()
        rows = {row.metric: row for row in metric_rows(run_of(), judged)}
        assert next(iter(rows)) == "auc"
        assert rows["auc"].decides
        assert rows["auc"].gain == pytest.approx(0.01)
        worse = json.loads(judged.to_bytes())["challenger"]
        worse["metrics"]["log_loss"] = 0.5
        rows = {row.metric: row for row in metric_rows(run_of(), evaluation(challenger=worse))}
        assert rows["log_loss"].gain == pytest.approx(-0.04)

    def test_a_variant_of_a_metric_is_shown_only_where_it_decides(self):
        """F1 and Matthews' correlation always."""
        judged = json.loads(evaluation().to_bytes())
        judged["challenger"]["metrics"] |= {"f1": 0.5, "f2": 0.6, "mcc": 0.3, "ndcg": 0.7}
        shown = {row.metric for row in metric_rows(run_of(), documents.Evaluation.parse(json.dumps(judged)))}
        assert {"f1", "mcc"} <= shown
        assert not {"f2", "ndcg"} & shown

    def test_only_what_the_labels_kind_has_is_shown(self):
        """Of two classes the precision-recall curve, of more than three the top three."""
        binary = {row.metric: row for row in metric_rows(run_of(), evaluation())}
        assert binary["pr_auc"].gain == pytest.approx(0.02)
        assert binary["calibration_error"].gain == pytest.approx(0.005)
        assert binary["brier"].gains == (-0.001, 0.003)
        assert binary["pr_auc"].gains is None
        assert "macro_f1" not in binary
        several = documents.Evaluation.parse(json.dumps(example("evaluation__classes")))
        rows = {row.metric: row for row in metric_rows(run_of(), several)}
        assert rows["top3_accuracy"].baseline == pytest.approx(1.0)
        assert "pr_auc" not in rows

    def test_base_rate_ranks_nothing_and_errs_by_the_variance(self):
        """A constant prediction has AUC 0.5 and Brier p(1-p)."""
        judged = evaluation(baseline={"log_loss": 0.5, "accuracy": 0.8}, label_rate=0.2)
        assert base_rate_value("auc", judged) == 0.5
        assert base_rate_value("brier", judged) == pytest.approx(0.16)
        assert base_rate_value("log_loss", judged) == 0.5

    def test_base_rate_of_classes_errs_by_their_variances(self):
        """Always predicting shares 0.4, 0.36, 0.24: the sum of p(1-p)."""
        judged = documents.Evaluation.parse(json.dumps(example("evaluation__classes")))
        wanted = sum(share * (1 - share) for share in (0.4, 0.36, 0.24))
        assert base_rate_value("brier", judged) == pytest.approx(wanted)
        assert "likeliest class" in {row.metric: row.message for row in metric_rows(run_of(), judged)}["accuracy"]

    def test_an_interval_is_turned_where_lower_is_better(self):
        """Right is better on the page, whatever the metric."""
        values = {"metric": "log_loss", "mean": -0.02, "low": -0.03, "high": -0.01, "confidence": 0.9, "samples": 200}
        found = interval(run_of(), evaluation(difference=values))
        assert (found.low, found.mean, found.high) == (0.01, 0.02, 0.03)
        assert found.x_low < found.x_mean < found.x_high

    @pytest.mark.parametrize(("min_gain", "in_sight"), [(0.0, True), (-0.01, True), (-1.0, False)])
    def test_a_bound_far_away_does_not_shrink_the_interval(self, min_gain, in_sight):
        """Its place on the axis is then left out; the caption has its number."""
        promote = {"min_gain": min_gain}
        spec = make_spec(evaluation={**spec_values()["evaluation"], "promote": promote})
        found = interval(run_of(plan=make_plan(spec)), evaluation())
        assert (found.x_bound is not None) == in_sight
        assert found.x_high - found.x_low > 100
        assert found.bound == min_gain

    def test_worst_slices_come_first_and_small_ones_last(self):
        """By the gain over the champion; what cannot be compared comes after what can."""
        ours = [
            scored("c", "A", 500, 0.70),
            scored("c", "B", 500, 0.60),
            scored("c", "C", 10, 0.10),
            scored("c", None, 500, None),
        ]
        theirs = [scored("c", "A", 500, 0.75), scored("c", "B", 500, 0.59), scored("c", "C", 10, 0.9)]
        metrics = example("evaluation__duel")["challenger"]["metrics"]
        judged = evaluation(
            challenger={"metrics": metrics, "slices": ours}, champion={"metrics": metrics, "slices": theirs}
        )
        assert [row.value for row in slice_rows(run_of(), judged)] == ["A", "B", "(none)", "C"]
        alone = evaluation(challenger={"metrics": metrics, "slices": ours}, champion=None, difference=None)
        assert [row.value for row in slice_rows(run_of(), alone)] == ["B", "A", "(none)", "C"]


class TestData:
    """Days and features."""

    def test_every_day_of_the_window_is_there(self):
        """Also those without an example; the newest are the test days."""
        plan = make_plan()
        run = run_of(plan=plan, snapshot=make_snapshot(plan))
        found = days(run)
        assert len(found) == 10
        assert [day.day.isoformat() for day in found if day.state == "new"] == [
            "2013-11-10",
            "2013-11-16",
            "2013-11-17",
        ]
        assert [day.tested for day in found] == [False] * 8 + [True] * 2
        assert len(noteworthy(found)) == 7
        assert {day.state for day in days(run_of())} == {"empty"}

    def test_a_day_that_the_checks_left_out_is_marked_with_the_reason(self):
        """Among the days to look at, and in words on the page."""
        plan = make_plan()
        verdict = documents.Checks.parse(json.dumps({**example("checks__quarantined"), "run_key": plan.run_key}))
        run = run_of(plan=plan, snapshot=make_snapshot(plan), checks=verdict)
        (out,) = [day for day in days(run) if day.state == "out"]
        assert (out.day.isoformat(), out.rows) == ("2013-11-16", 100)
        assert out.reason == "left out: 3 values of distance on 2013-11-16 are outside 0 to 5000"
        assert out in noteworthy(days(run))
        page = render({kind: document.to_json() for kind, document in run_documents(plan, verdict).items()})
        assert "Left out of this run, of its training, its test and its statistics: 2013-11-16." in page
        assert "leaves out</td>" in page

    def test_features_come_in_the_order_of_the_spec_with_words(self):
        """Categories with their shares, numbers with their spread."""
        plan = make_plan()
        run = run_of(plan=plan, statistics=make_statistics(plan, nulls=8))
        carrier, distance = feature_rows(run, run.statistics)
        assert (carrier.kind, carrier.typical) == ("categorical", "2 values: UA 75%, AA 25%")
        assert distance.typical == "10 ± 3, from 0 to 20"
        assert distance.missing == pytest.approx(0.1)

    def test_features_without_a_row_say_so(self):
        """An empty split is no division by zero."""
        plan = make_plan()
        values = make_statistics(plan).to_json()
        values["splits"]["train"] = {
            "rows": 0,
            "features": {
                "carrier": {"kind": "categorical", "nulls": 0, "distinct": 0, "top": []},
                "distance": {
                    "kind": "numeric",
                    "nulls": 0,
                    "min": None,
                    "max": None,
                    "mean": None,
                    "stddev": None,
                    "quantiles": [],
                },
            },
            "label": {"mean": None, "nulls": 0},
        }
        statistics = documents.Statistics.parse(json.dumps(values))
        rows = feature_rows(run_of(plan=plan), statistics)
        assert [(row.missing, row.typical) for row in rows] == [(None, "no value")] * 2

    def test_leaves_name_listed_objects(self):
        """A feature that moved in the list did not change."""
        features = [{"name": "a", "kind": "numeric"}, {"name": "b", "kind": "numeric"}]
        one = {"features": features, "x": [1, 2], "y": {}}
        two = {"x": [1, 2], "y": {}, "features": features[::-1]}
        assert dict(leaves(one)) == dict(leaves(two))
        assert dict(leaves(one))["features.b.kind"] == '"numeric"'


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "-"),
        (0.04, "0.0 s"),
        (59.94, "59.9 s"),
        (118, "1 min 58 s"),
        (3599.6, "1 h 00 min"),
        (7503, "2 h 05 min"),
    ],
)
def test_durations_are_written_for_people(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("count", "words"), [(0, "0 B"), (999, "999 B"), (97078, "97.1 kB"), (999_960, "1.0 MB"), (2 * 10**15, "2000.0 TB")]
)
def test_sizes_are_written_for_people(count, words):
    assert size(count) == words


PAID = {"seconds": 10.0, "reused": False, "machine": "n1-standard-4", "estimated_usd": 0.5}
REUSED = {"seconds": None, "reused": True, "machine": "n1-standard-4", "estimated_usd": None}
LOST = {"seconds": None, "reused": False, "machine": "n1-standard-4", "estimated_usd": None}
AIRFLOWS = {"seconds": None, "reused": False, "machine": None, "estimated_usd": None}


@pytest.mark.parametrize(
    ("tasks", "seconds", "usd"),
    [
        pytest.param({"export": PAID, "train": PAID, "deploy": AIRFLOWS}, (20.0, False), "1.0000", id="all-known"),
        pytest.param({"export": REUSED, "train": PAID}, (10.0, False), "0.5000", id="reused-costs-nothing"),
        pytest.param({"export": PAID, "train": LOST}, (10.0, True), "at least 0.5000", id="a-part-unknown"),
        pytest.param({"train": {**PAID, "estimated_usd": None}}, (10.0, False), None, id="no-prices"),
        pytest.param({"snapshot": {**AIRFLOWS, "seconds": 1.0}}, (1.0, False), None, id="a-query-without-price"),
    ],
)
def test_a_sum_with_unknown_parts_says_so(tasks, seconds, usd):
    """A region without prices has no price; it does not cost nothing."""
    rows = [{"task": task, **values} for task, values in tasks.items()]
    timings = documents.Timings.parse(json.dumps({**example("timings__run"), "tasks": rows}))
    assert total_seconds(timings) == seconds
    assert total_usd(timings) == usd


def test_the_page_has_no_sum_where_no_price_is_known():
    """Neither in its facts nor under its table."""
    rows = [{**task, "estimated_usd": None} for task in example("timings__run")["tasks"]]
    page = render({"plan": make_plan().to_json(), "timings": {**example("timings__run"), "tasks": rows}})
    assert "<b>unknown</b><span>list price</span>" in page
    assert "0.0000" not in page
    assert page.count('<td class="n">unknown</td>') > 1
    assert "the price was unknown: no list price for n1-standard-4, pd-ssd in us-central1" in page


@pytest.mark.parametrize(("difference", "said"), [(-0.00001, "+0.0000"), (-0.0001, "-0.0001"), (0.5, "+0.5000")])
def test_a_difference_that_rounds_to_nothing_is_no_loss(difference: float, said: str) -> None:
    """A minus before zeros reads like one."""
    assert rendering.signed(difference) == said
