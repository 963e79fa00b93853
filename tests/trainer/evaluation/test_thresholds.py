"""Both models as yes or no: what is measured where a threshold is given, found, or not there."""

from __future__ import annotations

import numpy as np

from tests.trainer.conftest import Run
from trainer.evaluation.scoring import Scored, measure_threshold
from trainer.evaluation.splits import splits_of
from trainer.objective.bootstrap import Resampling

LABELS = np.array([0.0, 1.0, 0.0, 1.0])
SCORED = Scored(
    keys=np.array([b"a", b"b", b"c", b"d"], object),
    labels=LABELS,
    scores={"challenger": np.array([0.1, 0.6, 0.7, 0.9]), "champion": np.array([0.1, 0.2, 0.3, 0.9])},
    slices={},
    numbers={},
    auxiliary={},
    requests={},
)
RESAMPLING = Resampling(samples=100, seed=1, confidence=0.9)


def test_without_a_rule_nothing_is_measured(exported: Run) -> None:
    request = exported.evaluate_request("/m", None)
    assert measure_threshold(request, SCORED, None, RESAMPLING) is None
    assert splits_of(request) == {"test"}


def test_a_number_needs_no_validation_split(exported: Run) -> None:
    request = exported.evaluate_request("/m", None, threshold={"rule": "number", "at": 0.65})
    assert splits_of(request) == {"test"}
    found = measure_threshold(request, SCORED, None, RESAMPLING)
    assert found is not None
    assert found.challenger is not None
    assert found.champion is not None
    assert (found.challenger.true_positives, found.challenger.false_positives) == (1, 1)
    assert (found.champion.true_positives, found.champion.false_positives) == (1, 0)


def test_both_models_are_measured_at_the_challengers_threshold(exported: Run) -> None:
    """The champion never answers the validation split."""
    request = exported.evaluate_request("/m", None, threshold={"rule": "recall", "at": 0.5})
    assert splits_of(request) == {"test", "validation"}
    found = measure_threshold(request, SCORED, (LABELS, np.array([0.1, 0.2, 0.6, 0.8])), RESAMPLING)
    assert found is not None
    assert found.threshold == 0.8
    assert found.champion is not None
    assert found.champion.true_positives == 1


def test_a_rule_that_no_threshold_obeys_leaves_a_reason(exported: Run) -> None:
    request = exported.evaluate_request("/m", None, threshold={"rule": "precision", "at": 0.99})
    found = measure_threshold(request, SCORED, (LABELS, np.array([0.1, 0.2, 0.6, 0.5])), RESAMPLING)
    assert found is not None
    assert (found.threshold, found.challenger, found.champion) == (None, None, None)
    assert "none reaches it, precision 0.6667, recall 1, F1 0.8 at 0.2" in found.message
