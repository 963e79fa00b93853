"""What quality is measured by, for each kind of label; and what answers without a model reach in it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

Metric = Literal[
    "auc",
    "accuracy",
    "log_loss",
    "brier",
    "pr_auc",
    "calibration_error",
    "balanced_accuracy",
    "macro_f1",
    "top2_accuracy",
    "top3_accuracy",
    "top5_accuracy",
    "top10_accuracy",
    "mae",
    "rmse",
    "r2",
    "medae",
    "smape",
    "pinball",
]
TOPS: Mapping[str, int] = {"top2_accuracy": 2, "top3_accuracy": 3, "top5_accuracy": 5, "top10_accuracy": 10}
"""Of how many likeliest classes each is; a label has those of fewer than its classes."""
HIGHER_IS_BETTER: frozenset[str] = frozenset(
    {"auc", "accuracy", "r2", "pr_auc", "balanced_accuracy", "macro_f1", *TOPS}
)
METRICS: Mapping[str, tuple[Metric, ...]] = {
    "binary": ("auc", "log_loss", "accuracy", "brier", "pr_auc", "calibration_error"),
    "multiclass": (
        "auc",
        "log_loss",
        "accuracy",
        "brier",
        "balanced_accuracy",
        "macro_f1",
        "top2_accuracy",
        "top3_accuracy",
        "top5_accuracy",
        "top10_accuracy",
    ),
    "regression": ("mae", "rmse", "r2", "medae", "smape", "pinball"),
}
"""By the kind of the label. `pinball` is of labels with quantiles, `TOPS` of more classes than they look at."""
ONLY_SHOWN: frozenset[str] = frozenset({"calibration_error"})
"""Metrics that cannot decide: always predicting the base rate is calibrated best of all."""
IN_UNIT: frozenset[str] = frozenset({"mae", "rmse", "medae", "pinball"})
"""Metrics in the label's own unit: no amount of them is large or small by itself."""


def constant_score(metric: Metric, shares: Sequence[float], *, binary: bool) -> float | None:
    """Return what always answering with the classes' shares reaches; None: it is of numbers.

    Args:
        metric: Of a label with classes.
        shares: Of each class; of a binary label of the negatives and the positives.
        binary: Whether the label is; one of two classes is not.
    """
    there, likeliest = sum(share > 0 for share in shares), max(shares)
    values: dict[str, float] = {
        "auc": 0.5,  # of equal scores
        "accuracy": likeliest,
        "log_loss": -sum(share * math.log(share) for share in shares if share > 0),
        # Of a binary label the squared error of the one probability, of several classes the sum over them.
        "brier": sum(share * (1 - share) for share in shares) / (2 if binary else 1),
        "pr_auc": shares[-1],
        "calibration_error": 0.0,
        "balanced_accuracy": 1 / there,
        "macro_f1": 2 * likeliest / (1 + likeliest) / there,
        **{name: sum(sorted(shares)[-most:]) for name, most in TOPS.items()},
    }
    return values.get(metric)
