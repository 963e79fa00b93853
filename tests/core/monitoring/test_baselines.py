"""What answers are held against, by the champion's evaluation."""

from __future__ import annotations

import pytest

from retraining.core.documents import Evaluation
from retraining.core.documents.answers import AnswerCounts
from retraining.core.documents.evaluation import AuxiliaryScores
from retraining.core.monitoring.baselines import answer_baselines
from retraining.core.monitoring.request_log import read_requests
from retraining.core.monitoring.shifts import judge_shifts
from tests.support.contracts import EXAMPLES
from tests.support.request_log import CHAMPION_ID, counted
from tests.support.small_model import make_plan, make_spec, make_statistics

SCORES = AnswerCounts(edges=(0.001, 0.002, 0.01), counts=(0, 500, 400, 100))
AUXILIARY = [
    {"name": "minutes", "kind": "regression", "quantiles": [0.1, 0.5, 0.9], "loss": "quantile"},
    {"name": "gate", "kind": "multiclass", "classes": 3},
    {"name": "unknown", "kind": "binary"},
]
TRAIN = make_statistics(make_plan()).splits["train"]
LIKE_TRAINING = {"carrier": {"UA": 225, "AA": 75}, "distance": {str(index): 15 for index in range(1, 21)}}


def evaluate(**auxiliary: AnswerCounts) -> Evaluation:
    """An evaluation whose challenger answered so."""
    found = Evaluation.parse((EXAMPLES / "evaluation__duel.json").read_bytes(), "evaluation")
    others = {
        name: AuxiliaryScores(rows=10, metrics=found.challenger.metrics, counted=counts)
        for name, counts in auxiliary.items()
    }
    scores = found.challenger.model_copy(update={"counted": SCORES, "auxiliary": others})
    return found.model_copy(update={"challenger": scores})


def test_scores_are_held_against_the_bins_that_the_evaluation_counted() -> None:
    """Rare events: all scores are far below a fifteenth, and a shift among them is seen."""
    spec = make_spec()
    answers = answer_baselines(spec, TRAIN, evaluate())
    assert [item.edges for item in answers] == [(0.001, 0.002, 0.01)]

    def drift(bins: dict[str | None, int]) -> float | None:
        log = read_requests(counted(LIKE_TRAINING, answers={"late": bins}), ["late"])
        signals = judge_shifts(spec, TRAIN, log, answers, CHAMPION_ID)
        return next(item.value for item in signals if (item.kind, item.subject) == ("prediction_drift", "late"))

    assert drift({"1": 150, "2": 120, "3": 30}) == pytest.approx(0, abs=1e-9)
    moved = drift({"1": 0, "2": 30, "3": 270})
    assert moved is not None
    assert moved > 0.3


def test_auxiliary_labels_have_a_drift_of_their_own_where_the_evaluation_counted_them() -> None:
    spec = make_spec(auxiliary_labels=AUXILIARY, monitoring={"drift": {"features": {"gate": 1.0}}})
    numbers, classes = AnswerCounts(edges=(5.0, 9.0), counts=(0, 3, 1)), AnswerCounts(counts=(1, 1, 2))
    late, minutes, gate = answer_baselines(spec, TRAIN, evaluate(minutes=numbers, gate=classes))
    assert (late.name, late.is_main, late.output) == ("late", True, "score")
    assert (minutes.output, minutes.is_main, minutes.place, minutes.shares) == ("minutes", False, 1, (0.0, 0.75, 0.25))
    assert (gate.output, gate.is_main, gate.classes, gate.shares) == ("gate", False, 3, (0.25, 0.25, 0.5))
    assert gate.measure == "l_infinity"
