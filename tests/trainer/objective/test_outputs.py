"""What an epoch reports: the same of every label always, and of the evaluation's metrics the one that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.trainer_documents import make_label
from trainer.contract.documents import WeightedLabel
from trainer.objective.outputs import objective_of

BINARY = make_label(name="late", kind="binary")
CLASSES = make_label(name="gate", kind="multiclass", classes=3)
FOUR = make_label(name="belt", kind="multiclass", classes=4)
NUMBER = make_label(name="minutes", kind="regression")
QUANTILES = make_label(name="minutes", kind="regression", loss="quantile", quantiles=(0.1, 0.5, 0.9))
ANSWERS = {
    BINARY: ([0, 1, 1, 0], [0.2, 0.6, 0.4, 0.5]),
    CLASSES: ([0, 2], [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]]),
    FOUR: ([2, 3], [[0.4, 0.1, 0.2, 0.3], [0.4, 0.3, 0.2, 0.1]]),
    NUMBER: ([0, 2, 4, 10], [[0], [1], [8], [10]]),
    QUANTILES: ([10, 4], [[8, 9, 14], [4, 4, 5]]),
}
PINBALL = ((0.1 * 2 + 0.5 * 1 + 0.1 * 4) / 3 + (0 + 0 + 0.1 * 1) / 3) / 2


@pytest.mark.parametrize(
    ("label", "metric", "expected"),
    [
        (BINARY, "brier", (0.04 + 0.16 + 0.36 + 0.25) / 4),
        (BINARY, "accuracy", 0.5),  # ½ counts as late
        (BINARY, "pr_auc", (1 + 2 / 3) / 2),  # by falling scores: right, wrong, right, wrong
        (CLASSES, "brier", ((0.25 + 0.09 + 0.04) + (0.04 + 0.36 + 0.64)) / 2),
        (CLASSES, "balanced_accuracy", 0.5),
        (FOUR, "top3_accuracy", 0.5),
        (NUMBER, "medae", 0.5),  # of 0, 0, 1, 4
        (NUMBER, "smape", (0 + 2 / 3 + 8 / 12 + 0) / 4),
        (QUANTILES, "pinball", PINBALL),
        (QUANTILES, "medae", 0.5),
    ],
)
def test_a_metric_that_is_asked_for_is_measured_beside_the_others(label, metric: str, expected: float) -> None:
    """By hand; of an auxiliary label it has that label's name."""
    targets, scores = (np.array(values, np.float64) for values in ANSWERS[label])
    alone = objective_of(label)
    plain, asked = (alone.epoch_metrics(targets, scores, name) for name in (None, f"val_{metric}"))
    assert asked == {**plain, f"val_{metric}": pytest.approx(expected)}
    assert f"val_{metric}" not in plain
    beside = objective_of(BINARY, [WeightedLabel(label=label, weight=1.0)])
    rows = len(targets)
    both = np.stack([np.arange(rows) % 2, targets], axis=1)
    joint = np.concatenate([np.full((rows, 1), 0.5), scores.reshape(rows, -1)], axis=1)
    name = f"val_{label.name}_{metric}"
    plain, asked = (beside.epoch_metrics(both, joint, asked) for asked in (None, name))
    assert asked == {**plain, name: pytest.approx(expected)}


def test_a_metric_of_no_label_is_not_measured() -> None:
    targets, scores = (np.array(values, np.float64) for values in ANSWERS[NUMBER])
    names = ("val_loss", "val_mae", "val_rmse", "val_r2")
    for asked in (None, "val_pinball", "val_brier", "val_other_medae", "medae"):
        assert tuple(objective_of(NUMBER).epoch_metrics(targets, scores, asked)) == names
