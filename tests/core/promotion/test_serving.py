"""The gate of what the challenger answers as serving loads it."""

from __future__ import annotations

import pytest

from retraining.core.documents import ServedAnswers, Serving
from retraining.core.promotion.serving import serving_gate
from tests.support.small_decision import decide, failed, scores
from tests.support.small_model import make_plan, make_spec


def answers(batch=1, **changes):
    return ServedAnswers(**{"rows": 200, "batch": batch, "not_finite": 0, "max_error": 1e-7, "key": "AA-17", **changes})


GOOD = Serving(single=answers(), together=answers(1000), inputs=13)


def test_a_model_that_answers_as_it_was_judged_passes(small_plan):
    decision = decide(small_plan, scores(0.684), scores(0.671), serving=GOOD)
    assert decision.verdict == "promote"
    gate = decision.gates[-1]
    assert (gate.gate, gate.found) == ("serving", "largest error 1e-07")
    assert "and 13 malformed requests" in gate.message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"single": answers(max_error=0.3)},
            "requests of one row: an answer 0.3 from the judge's score, to key 'AA-17'",
        ),
        ({"together": answers(1000, max_error=1.1e-5)}, "a request of 1000 rows: an answer 1.1e-05 from the judge's"),
        ({"single": answers(not_finite=7, max_error=None)}, "7 answers to requests of one row are not finite, first "),
        ({"unanswered": ("distance missing: score is not finite",)}, "no finite answer to distance missing: score is"),
        ({"unanswered": tuple("abcdefg")}, "no finite answer to a; b; c; d; e, and 2 more"),
        ({"signature": ("no output 'score'",)}, "its signature has no output 'score'"),
        ({"problem": "OSError: no variables"}, "it cannot be asked (OSError: no variables)"),
    ],
    ids=["alone", "together", "not finite", "missing", "many", "signature", "not loaded"],
)
def test_each_fault_stops_promotion_and_is_named(small_plan, changes, words):
    decision = decide(small_plan, scores(0.684), scores(0.671), serving=GOOD.model_copy(update=changes))
    assert decision.verdict == "reject"
    assert failed(decision) == ["serving"]
    assert decision.message.startswith("Rejected: as serving")
    assert words in decision.message


def test_all_faults_are_named_at_once(small_plan):
    gate = serving_gate(small_plan, Serving(single=answers(max_error=0.3), unanswered=("x missing: nan",)))
    assert gate.message.count(";") == 1


def test_half_precision_is_given_its_rounding(small_plan):
    training = {"model": "dense", "precision": "mixed_bfloat16"}
    off = GOOD.model_copy(update={"together": answers(1000, max_error=5e-3)})
    assert serving_gate(make_plan(make_spec(training=training)), off).passed
    assert not serving_gate(small_plan, off).passed


def test_a_model_of_another_framework_is_named_as_not_checked(small_plan):
    decision = decide(small_plan, scores(0.684), scores(0.671), serving=Serving(skipped="it has scores alone"))
    assert decision.verdict == "promote"
    assert decision.gates[-1].message.endswith(": it has scores alone")


def test_an_evaluation_of_an_earlier_release_has_no_such_gate(small_plan):
    """So that a replay gives the decision that was taken then."""
    assert "serving" not in [gate.gate for gate in decide(small_plan, scores(0.684), scores(0.671)).gates]
