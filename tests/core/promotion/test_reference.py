"""The gate of reference lines: who surely loses to what a minute gives is promoted by name alone."""

from __future__ import annotations

import pytest

from retraining.core import documents as d
from retraining.core.promotion.reference import reference_gate
from retraining.core.spec.model import ModelSpec
from tests.support.small_decision import decide, evaluation, failed, metrics, scores
from tests.support.small_model import make_plan, make_spec

EVALUATION = {"metric": "auc", "min_value": 0.55, "promote": {"min_examples": 100}}


def line(gain=None, name="trees", auc=0.7, **changes):
    """Return a line that the challenger's difference to is `gain`: mean, low, high."""
    difference = None
    if gain is not None:
        mean, low, high = gain
        difference = d.Difference(metric="auc", mean=mean, low=low, high=high, confidence=0.975, samples=500)
    values = {"rows": 4000, "features": 7, "metrics": metrics(auc), **changes}
    return d.ReferenceLine(name=name, difference=difference, **values)


def absent(reason, name="trees"):
    return d.ReferenceLine(name=name, rows=0, features=0, not_judged=reason)


LOST, CHANCE, WON = (-0.03, -0.05, -0.01), (-0.01, -0.03, 0.01), (0.02, 0.01, 0.03)


def with_promote(**promote) -> ModelSpec:
    return make_spec(evaluation={**EVALUATION, "promote": {**EVALUATION["promote"], **promote}})


@pytest.mark.parametrize(
    ("gains", "passes"),
    [((WON, WON), True), ((WON, CHANCE), True), ((CHANCE, CHANCE), True), ((WON, LOST), False), ((LOST, LOST), False)],
    ids=["beats both", "may lose by chance", "both by chance", "surely loses to one", "surely loses to both"],
)
def test_a_sure_loss_alone_stops_promotion(small_plan, gains, passes):
    lines = (line(gains[0], "linear"), line(gains[1]))
    decision = decide(small_plan, scores(0.684), scores(0.671), reference=lines)
    assert decision.verdict == ("promote" if passes else "reject")
    assert failed(decision) == ([] if passes else ["reference"])


def test_the_sentence_names_the_line_the_numbers_and_the_way_out(small_plan):
    decision = decide(small_plan, scores(0.684), scores(0.671), reference=(line(WON, "linear"), line(LOST)))
    assert "auc 0.684 surely loses to small boosted trees (0.700, gain -0.0300 (-0.0500 to" in decision.message
    assert "set evaluation.promote.below_reference: true" in decision.message
    assert "linear" not in decision.message


def test_a_first_model_is_held_to_the_lines_too(small_plan):
    assert failed(decide(small_plan, scores(0.684), champion=None, reference=(line(LOST),))) == ["reference"]


def test_by_name_such_a_model_is_promoted():
    plan = make_plan(with_promote(below_reference=True))
    gate = reference_gate(plan, evaluation(plan, scores(0.684), reference=(line(LOST),)))
    assert gate.passed
    assert "evaluation.promote.below_reference accepts it" in gate.message


@pytest.mark.parametrize(("low", "high", "passes"), [(0.01, 0.03, False), (-0.01, 0.03, True), (-0.03, -0.01, True)])
def test_of_an_error_more_is_a_loss(low, high, passes):
    plan = make_plan(make_spec(evaluation={"metric": "log_loss", "max_value": 1.0}))
    difference = d.Difference(metric="log_loss", mean=(low + high) / 2, low=low, high=high, confidence=0.975, samples=5)
    of_loss = line().model_copy(update={"difference": difference})
    assert reference_gate(plan, evaluation(plan, scores(0.684), reference=(of_loss,))).passed == passes


def test_what_was_not_judged_stops_nothing_and_is_said_once(small_plan):
    reason = "no feature is a number or a category"
    decision = decide(small_plan, scores(0.684), scores(0.671), reference=(absent(reason, "linear"), absent(reason)))
    gate = next(gate for gate in decision.gates if gate.gate == "reference")
    assert decision.verdict == "promote"
    assert (gate.found, gate.message) == ("not judged", f"the reference lines linear and trees not judged: {reason}")


def test_a_line_that_was_not_judged_is_named_beside_one_that_was(small_plan):
    short = d.Evidence(units="positives", count=3, effective=3.0, needed=20)
    lines = (line(LOST, "linear"), line(None, evidence=short))
    gate = reference_gate(small_plan, evaluation(small_plan, scores(0.684), reference=lines))
    assert not gate.passed
    assert gate.message.endswith("the reference line trees not judged: 3 positives, 20 are needed")


def test_an_evaluation_of_an_earlier_release_has_no_such_gate(small_plan):
    """So that a replay gives the decision that was taken then."""
    assert "reference" not in [gate.gate for gate in decide(small_plan, scores(0.684), scores(0.671)).gates]
