"""The trainer's stored vectors are what scikit-learn says, which is not in the trainer's environment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn import metrics

STORED = json.loads(
    (Path(__file__).resolve().parents[1] / "trainer" / "objective" / "number_metrics.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("kind", ["plain", "weighted"])
def test_the_stored_values_are_scikit_learns(kind: str) -> None:
    """Those of `tests/trainer/objective/test_number_metrics.py`."""
    labels, answers, scores = (np.array(STORED[name]) for name in ("labels", "answers", "scores"))
    weights = np.array(STORED["weights"]) if kind == "weighted" else np.ones(len(labels), int)
    rows = np.repeat(np.arange(len(labels)), weights)
    pinball = [
        metrics.mean_pinball_loss(labels, scores[:, index], alpha=level, sample_weight=weights)
        for index, level in enumerate(STORED["quantiles"])
    ]
    found = {
        "mae": metrics.mean_absolute_error(labels, answers, sample_weight=weights),
        "rmse": metrics.root_mean_squared_error(labels, answers, sample_weight=weights),
        "r2": metrics.r2_score(labels, answers, sample_weight=weights),
        "medae": metrics.median_absolute_error(labels[rows], answers[rows]),
        "pinball": np.mean(pinball),
    }
    assert STORED[kind] == pytest.approx(found, abs=1e-9)
