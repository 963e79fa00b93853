"""A model's metrics, by the kind of the label."""

from __future__ import annotations

from trainer.contract.documents import Label, Quality, RegressionLabel
from trainer.objective.class_metrics import measure_scores
from trainer.objective.metrics import Floats
from trainer.objective.number_metrics import measure_numbers


def measure_by(label: Label, labels: Floats, scores: Floats, weights: Floats | None = None) -> Quality:
    """Give all metrics of one model.

    Args:
        label: Of the model.
        labels: At least one. [n]
        scores: The model's. [n], [n, classes] or [n, quantiles]
        weights: None: all count the same. [n]
    """
    if isinstance(label, RegressionLabel):
        return measure_numbers(labels, scores, label.quantiles, weights)
    return measure_scores(labels, scores, weights)
