"""A version that applications of the champion cannot ask is promoted only where the spec accepts exactly its change."""

from __future__ import annotations

import re

import pytest

from retraining.core.documents import Signature
from retraining.core.promotion.signatures import changes_digest, signature_changes
from tests.support.small_decision import CHAMPION, decide, failed, scores
from tests.support.small_model import make_plan, make_spec

SERVED = Signature(
    inputs={"carrier": "string", "distance": "float32", "words": "string"},
    outputs={"score": "float32"},
    input_shapes={"words": (-1,)},
    output_shapes={},
)


def changed(**values):
    return SERVED.model_copy(update=values)


def judged(after, *, before=SERVED, accept=None):
    plan = make_plan(make_spec(deployment={"accept_signature": accept}))
    champion = CHAMPION.model_copy(update={"signature": before})
    return decide(plan, scores(0.684), scores(0.671), champion=champion, signature=after)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (
            changed(inputs={"distance": "float32", "tail": "string", "words": "string"}),
            "input `carrier` is gone; input `tail` (STRING) is new",
        ),
        (
            changed(inputs={**SERVED.inputs, "distance": "string"}),
            "input `distance` is STRING and was FLOAT32",
        ),
        (
            changed(outputs={"scores": "float32"}, output_shapes={"scores": (3,)}),
            "output `score` is gone; output `scores` (FLOAT32[3]) is new",
        ),
        (changed(input_shapes={}), "input `words` is STRING and was STRING[?]"),
    ],
    ids=["gone and new", "another type", "another label", "another shape"],
)
def test_a_changed_signature_is_rejected_with_its_changes_until_the_spec_accepts_them(after, expected):
    decision = judged(after)
    assert failed(decision) == ["signature"]
    assert f"the signature changes: {expected}; applications" in decision.message
    digest = re.search(r'deployment\.accept_signature: "([0-9a-f]{16})"', decision.message)
    assert digest
    accepted = judged(after, accept=digest[1])
    assert accepted.verdict == "promote"
    (gate,) = [gate for gate in accepted.gates if gate.gate == "signature"]
    assert gate.message == f"the signature changes, and deployment.accept_signature accepts it: {expected}"
    another = after.model_copy(update={"outputs": {**after.outputs, "more": "float32"}})
    assert failed(judged(another, accept=digest[1])) == ["signature"]


def test_the_order_of_the_inputs_is_no_change():
    again = changed(inputs=dict(reversed(SERVED.inputs.items())))
    assert signature_changes(SERVED, again) == []
    assert judged(again).verdict == "promote"


def test_a_champion_whose_signature_no_report_tells_stops_nothing_and_is_named():
    decision = judged(SERVED, before=None)
    assert decision.verdict == "promote"
    (gate,) = [gate for gate in decision.gates if gate.gate == "signature"]
    assert gate.found == "not known"
    assert "no training report" in gate.message


def test_a_decision_of_an_earlier_release_is_replayed_without_the_gate():
    assert "signature" not in [gate.gate for gate in judged(None).gates]


def test_the_first_version_changes_no_signature():
    plan = make_plan(make_spec())
    gates = {gate.gate: gate for gate in decide(plan, scores(0.684), signature=SERVED).gates}
    assert gates["signature"].passed


def test_shapes_count_where_both_reports_have_them():
    without = changed(input_shapes=None, output_shapes=None, outputs={"score": "float64"})
    (change,) = signature_changes(without, SERVED)
    assert str(change).startswith("output `score` is FLOAT32")
    assert "FLOAT64" in str(change)
    assert changes_digest([change]) != changes_digest(signature_changes(SERVED, without))
