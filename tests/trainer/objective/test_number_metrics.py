"""Metrics of numbers against scikit-learn, by stored vectors, and against values worked out by hand.

`number_metrics.json` was written by scikit-learn 1.9.1: `mean_absolute_error`, `root_mean_squared_error`, `r2_score`,
`median_absolute_error` and the mean of `mean_pinball_loss` over the quantiles, with and without `sample_weight` (the
median of repeated rows). `tests/core/test_number_metrics.py` holds the file to scikit-learn.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.differences import bootstrap_difference
from trainer.contract.documents import Metric
from trainer.objective.number_metrics import (
    describe_answers,
    measure_baselines,
    measure_numbers,
    symmetric_errors,
    weigh_numbers,
)

STORED = json.loads((Path(__file__).parent / "number_metrics.json").read_text())
LABELS, ANSWERS, SCORES, WEIGHTS = (
    np.array(STORED[name], np.float64) for name in ("labels", "answers", "scores", "weights")
)
QUANTILES = tuple(STORED["quantiles"])
METRICS: tuple[Metric, ...] = ("mae", "rmse", "r2", "medae")


def array(*values: float) -> np.ndarray:
    return np.array(values, np.float64)


@pytest.mark.parametrize("metric", METRICS)
def test_as_scikit_learn_says(metric: Metric) -> None:
    assert getattr(measure_numbers(LABELS, ANSWERS), metric) == pytest.approx(STORED["plain"][metric], abs=1e-9)
    weighed = weigh_numbers(metric, LABELS, ANSWERS, ())(WEIGHTS)
    assert weighed == pytest.approx(STORED["weighted"][metric], abs=1e-9)


def test_pinball_as_scikit_learn_says() -> None:
    found = measure_numbers(LABELS, SCORES, QUANTILES)
    assert found.pinball == pytest.approx(STORED["plain"]["pinball"], abs=1e-9)
    assert weigh_numbers("pinball", LABELS, SCORES, QUANTILES)(WEIGHTS) == pytest.approx(STORED["weighted"]["pinball"])
    assert found.mae == pytest.approx(np.abs(LABELS - SCORES[:, 1]).mean())
    assert measure_numbers(LABELS, ANSWERS).pinball is None


def test_four_examples_by_hand() -> None:
    """Errors 1, -2, 0, 4 of the labels 1, 2, 0, 10."""
    found = measure_numbers(array(1, 2, 0, 10), array(0, 4, 0, 6))
    assert found.mae == pytest.approx(7 / 4)
    assert found.rmse == pytest.approx((21 / 4) ** 0.5)
    assert found.medae == pytest.approx(1.5)
    assert found.r2 == pytest.approx(1 - 21 / (1 + 4 + 100 - 4 * 3.25**2))
    assert found.smape == pytest.approx((2 + 2 * 2 / 6 + 0 + 2 * 4 / 16) / 4)


def test_smape_is_from_0_to_2() -> None:
    assert symmetric_errors(array(0, 5, 5), array(0, -5, 5)).tolist() == [0, 2, 0]


def test_r2_is_not_defined_for_equal_labels() -> None:
    assert measure_numbers(array(5, 5), array(4, 6)).r2 is None
    assert bootstrap(array(5, 5), array(4, 6), array(5, 5), metric="r2") is None


def bootstrap(labels: np.ndarray, ours: np.ndarray, theirs: np.ndarray, **given: Any):
    return bootstrap_difference(labels, ours, theirs, samples=200, seed=3, confidence=0.9, **given)


@pytest.mark.parametrize("metric", [*METRICS, "smape", "pinball"])
def test_every_metric_has_a_paired_interval(metric: Metric) -> None:
    """Answers twice as far from the labels are surely worse; of equal ones the difference is 0 in every sample."""
    worse = LABELS[:, np.newaxis] + 3 * (SCORES - LABELS[:, np.newaxis])
    found = bootstrap(LABELS, SCORES, worse, metric=metric, quantiles=QUANTILES)
    whole = [getattr(measure_numbers(LABELS, scores, QUANTILES), metric) for scores in (SCORES, worse)]
    assert found is not None
    assert found.mean == pytest.approx(whole[0] - whole[1])
    assert found.low > 0 if metric == "r2" else found.high < 0
    same = bootstrap(LABELS, SCORES, SCORES, metric=metric, quantiles=QUANTILES)
    assert same is not None
    assert (same.mean, same.low, same.high) == (0, 0, 0)


def test_a_resample_is_measured_as_the_rows_themselves() -> None:
    """A weight is the number of times that a row stands in a sample."""
    rows = np.repeat(np.arange(len(LABELS)), WEIGHTS.astype(int))
    for metric in (*METRICS, "smape", "pinball"):
        drawn = getattr(measure_numbers(LABELS[rows], SCORES[rows], QUANTILES), metric)
        assert weigh_numbers(metric, LABELS, SCORES, QUANTILES)(WEIGHTS) == pytest.approx(drawn)


def test_baselines_are_measured_where_they_have_a_value() -> None:
    labels, answers = array(1, 2, 3, 10), array(1, 2, 4, 8)
    last = array(np.nan, 1, 2, 3)
    found = {item.name: item for item in measure_baselines(labels, answers, {"last": ("was", last)}, ())}
    assert found["mean"].metrics.r2 == pytest.approx(0)
    assert found["median"].metrics.mae == pytest.approx((1.5 + 0.5 + 0.5 + 7.5) / 4)
    assert (found["last"].rows, found["last"].column) == (3, "was")
    assert found["last"].metrics.mae == pytest.approx((1 + 1 + 7) / 3)
    assert found["last"].challenger.mae == pytest.approx(1)
    nothing = measure_baselines(labels, answers, {"gone": ("was", last * np.nan)}, ())
    assert [item.name for item in nothing] == ["mean", "median"]


def test_what_a_page_shows_counts_every_row() -> None:
    found = describe_answers(LABELS, SCORES, QUANTILES)
    assert sum(found.residuals.counts) == len(LABELS) == sum(item.rows for item in found.bins)
    assert found.quantiles[0] == SCORES[:, 1].min()
    assert found.quantiles[10] == np.median(SCORES[:, 1])
    assert [item.answer for item in found.bins] == sorted(item.answer for item in found.bins)


def test_equal_answers_and_labels_have_a_chart_too() -> None:
    found = describe_answers(array(2, 2), array(2, 2), ())
    assert sum(found.residuals.counts) == 2
    assert (found.residuals.edges[0], found.residuals.edges[-1]) == (-0.5, 0.5)
    assert len(found.bins) == 2
