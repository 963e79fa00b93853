"""The trainer's curves are scikit-learn's, which is not in the trainer's environment; of many points a part of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from sklearn import metrics
from sklearn.calibration import calibration_curve

from tests.core.test_class_metrics import Floats, binary, several
from trainer.contract.documents import CalibrationBin
from trainer.objective.curves import draw_curves

CLOSE = 1e-6  # to what they are rounded


@settings(deadline=None)
@given(binary())
def test_two_classes(examples: tuple[Floats, Floats, Floats]) -> None:
    """Every point, with ties, weights and single classes."""
    labels, scores, weights = examples
    curves = draw_curves(labels, scores, weights)
    assert (curves.roc is None) is (len(set(labels)) == 1)
    assert (curves.precision_recall is None) is (1 not in labels)
    if curves.roc:
        wrong, found, _ = metrics.roc_curve(labels, scores, sample_weight=weights, drop_intermediate=False)
        assert curves.roc.false_positive_rate == pytest.approx(wrong, abs=CLOSE)
        assert curves.roc.true_positive_rate == pytest.approx(found, abs=CLOSE)
    if curves.precision_recall:
        precision, recall, _ = metrics.precision_recall_curve(labels, scores, sample_weight=weights)
        assert curves.precision_recall.recall == pytest.approx(recall[-2::-1], abs=CLOSE)  # its (0, 1) is no answer
        assert curves.precision_recall.precision == pytest.approx(precision[-2::-1], abs=CLOSE)
    times = weights.astype(int)
    assert_calibrated(curves.calibration, np.repeat(labels, times), np.repeat(scores, times))
    assert sum(part.rows for part in curves.calibration) == len(labels)


@settings(deadline=None)
@given(several())
def test_several_classes(examples: tuple[Floats, Floats, Floats]) -> None:
    """The likeliest class, and whether it is right."""
    labels, scores, _ = examples
    curves = draw_curves(labels, scores)
    assert curves.roc is None
    assert curves.precision_recall is None
    assert_calibrated(curves.calibration, scores.argmax(axis=1) == labels, scores.max(axis=1))


def assert_calibrated(bins: tuple[CalibrationBin, ...], labels: Floats, scores: Floats) -> None:
    positive, score = calibration_curve(labels, scores, n_bins=15, pos_label=1)
    assert [part.positive for part in bins] == pytest.approx(positive, abs=CLOSE)
    assert [part.score for part in bins] == pytest.approx(score, abs=CLOSE)


def test_many_points_are_thinned() -> None:
    """To at most 100 that are all exact, with both ends, and with the area of all."""
    random = np.random.default_rng(7)
    labels = random.integers(0, 2, 20_000).astype(np.float64)
    scores = 1 / (1 + np.exp(-random.normal(labels, 1)))
    curves = draw_curves(labels, scores)
    assert curves.roc
    assert curves.precision_recall
    wrong, found, _ = metrics.roc_curve(labels, scores, drop_intermediate=False)
    roc = list(zip(curves.roc.false_positive_rate, curves.roc.true_positive_rate, strict=True))
    assert 50 < len(roc) <= 100
    assert set(roc) <= set(zip(wrong.round(6).tolist(), found.round(6).tolist(), strict=True))
    assert (roc[0], roc[-1]) == ((0, 0), (1, 1))
    assert metrics.auc(*zip(*roc, strict=True)) == pytest.approx(metrics.roc_auc_score(labels, scores), abs=0.001)
    precision, recall, _ = metrics.precision_recall_curve(labels, scores)
    points = list(zip(curves.precision_recall.recall, curves.precision_recall.precision, strict=True))
    assert 50 < len(points) <= 100
    assert set(points) <= set(zip(recall.round(6).tolist(), precision.round(6).tolist(), strict=True))
    assert points[-1] == (1, round(labels.mean(), 6))
    area = metrics.average_precision_score(labels, scores)
    assert metrics.auc(*zip(*points, strict=True)) == pytest.approx(area, abs=0.01)
