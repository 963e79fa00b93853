"""Where the test split says too little, nothing is judged by it, and people are told what is missing."""

from __future__ import annotations

import pytest

from retraining.core import documents as d
from retraining.core.promotion.slices import SliceLoss
from tests.support.small_decision import decide, failed, scores
from tests.support.small_model import make_plan, make_spec, spec_values

FEW = d.Evidence(units="positives", count=3, effective=3, needed=20)
ENOUGH = d.Evidence(units="positives", count=400, effective=400, needed=20)
ONE_LARGE = d.Evidence(units="groups with positives", count=14, effective=1.23, needed=5)


def message_of(decision: d.Decision, name: str) -> str:
    return next(gate.message for gate in decision.gates if gate.gate == name)


def test_a_gain_of_three_positives_is_not_judged_and_the_champion_stays(small_plan) -> None:
    decision = decide(small_plan, scores(0.9), scores(0.6), evidence=FEW, difference_evidence=FEW)
    assert decision.verdict == "reject"
    assert failed(decision) == ["examples", "gain"]
    assert decision.message == (
        "Rejected: the test days have too few positives to judge a model by: 3 positives, 20 are needed; lengthen "
        "data.test_days; auc was not judged against the champion's, which stays."
    )
    assert next(gate.found for gate in decision.gates if gate.gate == "gain") == "not judged"


def test_a_gain_of_one_large_group_is_not_judged(small_plan) -> None:
    decision = decide(small_plan, scores(0.9), scores(0.6), evidence=ENOUGH, difference_evidence=ONE_LARGE)
    assert failed(decision) == ["gain"]
    assert decision.message == (
        "Rejected: auc was not judged against the champion's, which stays: 14 groups with positives that say as much "
        "as 1.23 equal ones, 5 are needed; lengthen data.test_days, or group by another column in evaluation.group."
    )


def test_a_first_version_is_not_judged_by_three_positives(small_plan) -> None:
    decision = decide(small_plan, scores(0.9), evidence=FEW)
    assert (decision.verdict, failed(decision)) == ("reject", ["examples"])
    assert "3 positives, 20 are needed; lengthen data.test_days" in decision.message
    assert decide(small_plan, scores(0.9), evidence=ENOUGH).verdict == "promote"


def test_where_examples_have_no_time_more_of_them_are_tested() -> None:
    data = {**spec_values()["data"], "split": "hash", "test_percent": 20}
    data = {name: value for name, value in data.items() if name not in ("event_time", "window_days", "test_days")}
    decision = decide(make_plan(make_spec(data=data)), scores(0.9), evidence=FEW)
    assert "raise data.test_percent" in message_of(decision, "examples")


def test_enough_evidence_changes_no_verdict(small_plan) -> None:
    """Nor a word: an evaluation of an earlier release, without evidence, is decided as it was."""
    sides = scores(0.684), scores(0.671)
    known = decide(small_plan, *sides, evidence=ENOUGH, difference_evidence=ENOUGH)
    before = decide(small_plan, *sides)
    assert (known.verdict, known.message, known.gates) == ("promote", before.message, before.gates)


@pytest.mark.parametrize(("evidence", "verdict"), [(FEW, "promote"), (ENOUGH, "reject"), (None, "reject")])
def test_a_slice_that_says_too_little_stops_nothing(small_plan, evidence, verdict) -> None:
    ours, theirs = scores(0.7, UA=(500, 0.60), AA=(500, 0.7)), scores(0.69, UA=(500, 0.65), AA=(500, 0.7))
    decision = decide(small_plan, ours, theirs, deviation=0.002, slice_evidence={"UA": evidence, "AA": ENOUGH})
    assert decision.verdict == verdict
    told = "; 1 of 2 slices not judged (one has 3 positives, 20 are needed)" in message_of(decision, "slices")
    assert told is (evidence is FEW)


def test_no_slice_says_enough(small_plan) -> None:
    ours, theirs = scores(0.7, UA=(500, 0.60)), scores(0.69, UA=(500, 0.65))
    decision = decide(small_plan, ours, theirs, deviation=0.0, slice_evidence={"UA": FEW})
    assert message_of(decision, "slices") == (
        "no slice is large enough to compare; 1 of 1 slices not judged (one has 3 positives, 20 are needed)"
    )


@pytest.mark.parametrize(
    ("degrees", "quantile"), [(4, 2.1318), (19, 1.7291), (1000, 1.6464)], ids=["five units", "twenty", "many"]
)
def test_few_units_make_a_loss_less_sure(degrees: float, quantile: float) -> None:
    """The 95 % quantiles of Student's distribution; the same ratio is 5 % on the other side of the bound."""
    for sign, chance in ((1, 0.05), (-1, 0.95)):
        loss = SliceLoss(mean=0.03 + sign * quantile * 0.01, deviation=0.01, where="", degrees=degrees)
        assert loss.chance(0.03) == pytest.approx(chance, abs=1e-3)
