"""What a decision says of answers as yes or no."""

from __future__ import annotations

import json

from retraining.core.documents.answers import Estimate, ThresholdScores
from retraining.core.promotion.gates import threshold_sentence
from tests.support.contracts import EXAMPLES


def test_a_decision_says_what_the_threshold_reaches() -> None:
    scores = json.loads((EXAMPLES / "evaluation__duel.json").read_text())["threshold"]
    assert threshold_sentence(ThresholdScores.model_validate(scores)) == (
        " At threshold 0.125: precision 0.331, recall 0.781."
    )
    nothing = {**scores["challenger"], "precision": None, "recall": Estimate(value=0, low=0, high=0).model_dump()}
    assert threshold_sentence(ThresholdScores.model_validate({**scores, "challenger": nothing})) == (
        " At threshold 0.125: no precision, recall 0.000."
    )


def test_a_rule_that_is_not_met_is_named_and_changes_nothing_else() -> None:
    words = "precision>=0.99 on 3 validation examples: none reaches it, precision 0.6667, recall 1, F1 0.8 at 0.2"
    unmet = ThresholdScores(threshold=None, message=words, confidence=0.95, challenger=None, champion=None)
    assert threshold_sentence(unmet) == f" No threshold: {words}."
    assert threshold_sentence(None) == ""
