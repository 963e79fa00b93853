"""The trainer's stored vectors are what scikit-learn says, which is not in the trainer's environment."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics

from trainer.objective.number_metrics import measure_numbers

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


AMOUNTS = st.tuples(st.integers(0, 50), st.floats(-5, 50), st.integers(1, 5))


@settings(deadline=None)
@given(st.lists(AMOUNTS, min_size=1, max_size=30))
def test_relative_errors_are_scikit_learns(rows: list[tuple[int, float, int]]) -> None:
    """Which has no answers below 0 in a logarithm, and divides by almost 0 where a label is 0."""
    labels, answers, weights = (np.array(column, np.float64) for column in zip(*rows, strict=True))
    found = measure_numbers(labels, answers, weights=weights)
    expected = metrics.root_mean_squared_log_error(labels, np.maximum(answers, 0), sample_weight=weights)
    assert found.rmsle == pytest.approx(expected, abs=1e-9)
    there = labels != 0
    assert (found.mape is None) is not there.any()
    if there.any():
        expected = metrics.mean_absolute_percentage_error(labels[there], answers[there], sample_weight=weights[there])
        assert found.mape == pytest.approx(expected, abs=1e-9)


def test_a_label_below_0_has_no_logarithmic_error() -> None:
    assert measure_numbers(np.array([-1.0, 2.0]), np.array([1.0, 2.0])).rmsle is None
