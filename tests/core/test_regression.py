"""A model whose label is a number, through the core: spec, statistics, checks, gates."""

from __future__ import annotations

import json
from datetime import date, timedelta

import pytest
from pydantic import ValidationError

from retraining.core import documents
from retraining.core.checks import dataset
from retraining.core.checks.labels import day_finding, shifted_days
from retraining.core.checks.quarantine import days_to_leave_out
from retraining.core.data import statistics
from retraining.core.errors import DataError
from retraining.core.jobs import requests
from retraining.core.promotion import gates
from tests.support.number_model import (
    CHAMPION,
    EVALUATION,
    LABEL,
    QUANTILES,
    SCHEMA,
    evaluation,
    judge,
    make_hourly,
    rows,
    taken,
)
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_spec


@pytest.fixture
def plan():
    """A run of the model."""
    return make_plan(make_hourly())


# --- the spec --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ({"loss": "quantile"}, "loss quantile needs quantiles"),
        ({"loss": "mse", "quantiles": [0.1, 0.5]}, "are learnt by loss quantile, and loss is mse"),
        ({"loss": "quantile", "quantiles": [0.5, 0.1]}, "rising numbers, each once"),
        ({"loss": "quantile", "quantiles": [0.5, 0.5]}, "rising numbers, each once"),
        ({"loss": "quantile", "quantiles": [0.5, 1.0]}, "less than 1"),
        ({"loss": "quantile", "quantiles": [0, 0.5]}, "greater than 0"),
        ({"loss": "quantile", "quantiles": [0.5]}, "loss mae learns the median"),
        ({"loss": "quantile", "quantiles": [0.1, 0.9]}, "lack 0.5"),
        ({"loss": "mape"}, "'mse', 'mae', 'huber', 'poisson' or 'quantile'"),
        ({"loss": "poisson", "transform": "log1p"}, "has a logarithm of its own"),
        ({"loss": "poisson", "min": -1}, "from 0 on"),
        ({"transform": "log1p", "min": -1}, "above -1"),
        ({"min": 5, "max": 5}, "min must be below max"),
    ],
)
def test_a_label_that_contradicts_itself_is_refused(label, words):
    with pytest.raises(ValidationError, match=words):
        make_hourly(label={**LABEL, **label})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"evaluation": {"metric": "auc", "min_value": 0.5}}, "metric of a regression label names 'auc'"),
        ({"evaluation": {**EVALUATION, "metric": "rmsle"}}, "never below 0: say so by label.min: 0"),
        ({"evaluation": {"metric": "ndcg", "min_value": 0.5}}, "never below 0: say so by label.min: 0"),
        (
            {"label": {**LABEL, "min": 0}, "evaluation": {"metric": "ndcg10", "min_value": 0.5}},
            "name in evaluation.group the column whose rows are ranked",
        ),
        ({"evaluation": {**EVALUATION, "metric": "pinball"}}, "names 'pinball'; expected one of: mae, rmse, r2, medae"),
        ({"evaluation": {**EVALUATION, "min_value": 1.0, "max_value": None}}, "metric mae needs max_value"),
        ({"evaluation": {**EVALUATION, "promote": {}}}, "promote.max_slice_loss has no default"),
        ({"evaluation": {**EVALUATION, "baselines": {"mean": "x"}}}, "every regression is held against"),
        ({"evaluation": {**EVALUATION, "baselines": {"last": "departures"}}}, "is the label itself"),
        ({"label": {"name": "departures", "kind": "binary"}}, "metric of a binary label names 'mae'"),
        ({"checks": {"label_rate": [0.1, 0.5]}}, "a regression has label.min and label.max"),
    ],
)
def test_what_does_not_go_with_a_number_is_refused(changes, words):
    with pytest.raises(ValidationError, match=words):
        make_hourly(**changes)


def test_baselines_are_of_numbers_only():
    with pytest.raises(ValidationError, match=r"baselines .* not of a binary"):
        make_spec(evaluation={"metric": "auc", "min_value": 0.6, "baselines": {"last": "was"}})


def test_a_logarithmic_error_is_of_labels_that_are_never_below_0():
    for label in ({**LABEL, "min": 0}, {**LABEL, "loss": "poisson"}):
        assert make_hourly(label=label, evaluation={**EVALUATION, "metric": "rmsle"}).evaluation.metric == "rmsle"


def test_pinball_is_of_labels_with_quantiles():
    evaluation = {**EVALUATION, "metric": "pinball"}
    assert make_hourly(label=QUANTILES, evaluation=evaluation).evaluation.metric == "pinball"


def test_a_gain_of_shares_stays_a_share():
    with pytest.raises(ValidationError, match="min_gain 30 of r2: expected"):
        make_hourly(evaluation={"metric": "r2", "min_value": 0.1, "promote": {"min_gain": 30}})
    in_unit = {**EVALUATION, "promote": {"min_gain": 30, "max_slice_loss": 1}}
    assert make_hourly(evaluation=in_unit).evaluation.promote.min_gain == 30


def test_a_run_may_override_baselines_and_keeps_what_was_stated(plan):
    changed = plan.spec.with_overrides({"evaluation.baselines": {"last_value": "was"}})
    assert set(changed.evaluation.baselines) == {"last_value", "same_hour_last_week"}
    assert documents.Plan.parse(json.dumps(plan.to_json())) == plan


@pytest.mark.parametrize(
    ("column", "type_", "words"),
    [
        ("departures", "STRING", "departures is STRING and cannot be a regression label"),
        ("departures", "BOOLEAN", "departures is BOOLEAN and cannot be a regression label"),
        ("departures_last_week", "STRING", "departures_last_week is STRING and cannot be a baseline"),
    ],
)
def test_columns_are_held_to_their_roles(plan, column, type_, words):
    schema = [{**item, "type": type_} if item["name"] == column else item for item in SCHEMA]
    snapshot = taken(plan, schema)
    judged = dataset.check_data(plan, snapshot, statistics.build_statistics(plan, snapshot, rows()))
    assert words in next(finding.message for finding in judged.findings if finding.check in ("types", "columns"))


def test_a_baseline_that_the_query_lacks_is_named(plan):
    with refuses(DataError, found="'departures_last_week'", way_out="'same_hour_last_week'"):
        taken(plan, SCHEMA[:-1])


@pytest.mark.parametrize("type_", ["INTEGER", "FLOAT", "NUMERIC", "BIGNUMERIC"])
def test_numbers_of_every_type_are_labels(plan, type_):
    schema = [{**item, "type": type_} if item["name"] == "departures" else item for item in SCHEMA]
    snapshot = taken(plan, schema)
    assert dataset.check_data(plan, snapshot, statistics.build_statistics(plan, snapshot, rows())).passed


# --- statistics and checks -------------------------------------------------------------------------------------------


def test_statistics_of_a_number(plan):
    found, judged = judge(plan, log1p=True)
    label = found.splits["train"].label
    assert label.numbers is not None
    assert (label.mean, label.counts, label.outside) == (None, None, None)
    assert (label.numbers.min, label.numbers.max, label.numbers.mean) == (12, 28, 20)
    assert (label.numbers.trained_mean, label.numbers.trained_stddev) == (3.0, 0.4)
    assert [(day.label.rate, day.label.mean, day.label.stddev) for day in found.days] == [
        (None, 20, 5.0),
        (None, 21, 5.0),
    ]
    assert judged.findings == ()


@pytest.mark.parametrize(
    ("label", "found", "missing"),
    [
        ({}, [], ["@label_low", "@label_high", "LN("]),
        ({"min": 0, "max": 90}, ["label < @label_low", "label > @label_high"], ["LN("]),
        ({"loss": "poisson"}, ["label < @label_low"], ["@label_high"]),
        ({"transform": "log1p"}, ["label <= -1", "LN(1 + label)"], ["@label_low"]),
    ],
)
def test_the_query_asks_for_the_labels_bounds(label, found, missing):
    plan = make_plan(make_hourly(label={**LABEL, **label}))
    query = statistics.render_statistics_sql(plan, taken(plan))
    assert all(text in query.sql for text in found)
    assert not any(text in query.sql for text in missing)
    named = {parameter.name for parameter in query.parameters}
    assert all((f"@{name}" in query.sql) == (name in named) for name in ("label_low", "label_high", "classes"))


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ({}, "finite numbers"),
        ({"loss": "poisson"}, "finite numbers, at least 0"),
        ({"transform": "log1p", "max": 90}, "finite numbers, above -1 (transform log1p), at most 90"),
        ({"min": 2}, "finite numbers, at least 2"),
    ],
)
def test_wrong_numbers_block_and_are_named_with_their_bounds(label, expected):
    _, judged = judge(make_plan(make_hourly(label={**LABEL, **label})), outside=2)
    finding = judged.findings[0]
    assert (finding.check, judged.passed, finding.expected) == ("label_range", False, expected)
    assert finding.message.startswith("2 labels of train")
    assert finding.found == "2 labels in train"


@pytest.mark.parametrize(
    ("constant", "metric", "words"),
    [
        (("train",), "mae", "all labels of train are 20: there is nothing to learn"),
        (("test",), "r2", "all labels of test are 20: R² is not defined, and evaluation.metric is r2"),
        (("test",), "mae", None),
    ],
)
def test_a_constant_label_is_named(constant, metric, words):
    bound = {"min_value": 0.5, "max_value": None} if metric == "r2" else {}
    plan = make_plan(make_hourly(evaluation={**EVALUATION, "metric": metric, **bound}))
    _, judged = judge(plan, constant=constant)
    assert [finding.message for finding in judged.findings if finding.check == "constant_label"] == (
        [words] if words else []
    )
    assert judged.passed == (words is None)


def test_a_day_with_another_mean_is_named(plan):
    _, judged = judge(plan, means=(20, 38))
    (finding,) = judged.findings
    assert (finding.check, finding.severity) == ("max_label_shift", "warn")
    assert finding.expected == "on 2013-11-10 29, the days' median, give or take 5 (1 deviations within a day)"
    assert judge(make_plan(make_hourly(checks={"max_label_shift": None})), means=(20, 38))[1].findings == ()


def weeks_of_days(plan, count, mean_of):
    """Days with rows like the first one's, each with a mean of its own."""
    day = statistics.build_days(plan, rows())[0]
    spans = [date(2013, 9, 2) + timedelta(days=place) for place in range(count)]  # from a Monday on
    return [
        day.model_copy(update={"span": span, "label": day.label.model_copy(update={"mean": mean_of(span)})})
        for span in spans
    ]


def quiet_weekends(span):
    return 20.0 if span.weekday() < 5 else 80.0


def test_ordinary_weekends_are_no_shift(plan):
    """However far from the other days': they are held against each other, where there are weeks of them."""
    days = weeks_of_days(plan, 60, quiet_weekends)
    assert shifted_days(plan.spec, days) == []
    odd = {date(2013, 10, 5): 20.0, date(2013, 10, 9): 80.0}  # a Saturday like a Wednesday, and the other way round
    shifted = weeks_of_days(plan, 60, lambda span: odd.get(span, quiet_weekends(span)))
    assert [day.span for day in shifted_days(plan.spec, shifted)] == list(odd)
    told = day_finding(plan.spec, shifted[33], shifted)
    assert told.expected == "80, the Saturdays' median, give or take 5 (1 deviations within a day)"


def test_less_than_three_weeks_are_held_against_all_days(plan):
    days = weeks_of_days(plan, 14, quiet_weekends)
    assert len(shifted_days(plan.spec, days)) == 4


def test_such_a_day_can_be_left_out():
    spec = make_hourly(checks={"max_label_shift": 3, "severity": {"max_label_shift": "quarantine"}})
    plan = make_plan(spec)
    days = statistics.build_days(plan, rows())
    usual = [days[0].model_copy(update={"span": days[0].span.replace(day=day)}) for day in (11, 12, 13, 14)]
    far = days[0].label.model_copy(update={"mean": 80.0})
    bad = days[0].model_copy(update={"span": days[0].span.replace(day=15), "label": far})
    assert days_to_leave_out(plan, [*usual, bad, days[1]]) == (bad.span,)


@pytest.mark.parametrize(("metric", "bound", "warns"), [("rmse", 4.5, True), ("rmse", 3.5, False), ("r2", -0.1, True)])
def test_a_floor_that_stops_nothing_is_named(metric, bound, warns):
    """The mean of the labels has R² 0 and their deviation, 4, as RMSE."""
    bounds = {"min_value": bound, "max_value": None} if metric == "r2" else {"max_value": bound}
    plan = make_plan(make_hourly(evaluation={**EVALUATION, "metric": metric, **bounds}))
    assert ("floor" in [finding.check for finding in judge(plan)[1].findings]) == warns


# --- the decision ----------------------------------------------------------------------------------------------------


def decide(plan, judged, champion=CHAMPION):
    request = requests.evaluation_job(plan, champion).request
    assert isinstance(request, documents.EvaluateRequest)
    return gates.decide(plan, request, judged, {"plan": "a" * 64, "evaluation": "b" * 64, "evaluate_request": "c" * 64})


def test_the_judge_is_told_of_baselines(plan):
    request = requests.evaluation_job(plan, CHAMPION).request
    assert isinstance(request, documents.EvaluateRequest)
    assert request.baselines == {"same_hour_last_week": "departures_last_week"}


def test_a_smaller_error_is_a_gain(plan):
    decision = decide(plan, evaluation(plan))
    assert decision.verdict == "promote"
    assert decision.message == (
        "Promoted: mae 1.500 beats the champion's 1.800 by 0.300 (95 % interval 0.200 to 0.400); "
        "no slice loses more than 1 mae."
    )


def test_a_larger_error_is_a_loss(plan):
    worse = {"metric": "mae", "mean": 0.3, "low": 0.2, "high": 0.4, "confidence": 0.95, "samples": 500}
    assert decide(plan, evaluation(plan, difference=worse)).verdict == "reject"


def test_a_slice_that_gets_worse_is_named(plan):
    found = evaluation(plan)
    slice_ = found.challenger.slices[0].model_dump()
    slice_["rows"] = 250
    slices = [{**slice_, "metrics": {**slice_["metrics"], "mae": 6.0}}]
    champion = found.champion.model_dump() if found.champion else {}
    champion["slices"] = [{**slice_, "metrics": {**slice_["metrics"], "mae": 2.0}}]
    judged = evaluation(plan, challenger={**found.challenger.model_dump(), "slices": slices}, champion=champion)
    assert "origin 'JFK' (6.000 against 2.000)" in decide(plan, judged).message


def test_the_first_champion_must_beat_every_baseline(plan):
    alone = {"champion": None, "difference": None}
    decision = decide(plan, evaluation(plan, **alone), champion=None)
    assert decision.verdict == "promote"
    assert "(mean, median, same_hour_last_week)" in decision.message
    found = evaluation(plan).model_dump(mode="json")["baselines"]
    found[2]["metrics"]["mae"] = 1.4
    decision = decide(plan, evaluation(plan, **alone, baselines=found), champion=None)
    assert "same_hour_last_week's (1.4000)" in decision.message
