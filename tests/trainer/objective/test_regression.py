"""A number as label: how training sees it, its losses against values worked out by hand, and the way back."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.refusals import refuses
from tests.support.trainer_documents import make_label, make_number_statistics
from trainer.contract.documents import RegressionLabel
from trainer.errors import DataError
from trainer.objective.labels import labels_of
from trainer.objective.outputs import Objective
from trainer.objective.regression import Regression

LABELS = np.array([0.0, 1.0, 3.0, 40.0])


def make_kind(values: np.ndarray = LABELS, **given: Any) -> Regression:
    """A kind of label whose training split has these values."""
    label = make_label(name="y", kind="regression", **given)
    assert isinstance(label, RegressionLabel)
    kind = labels_of(label, make_number_statistics(values, log1p=label.transform == "log1p"))
    assert isinstance(kind, Regression)
    return kind


def losses(kind: Regression, targets: list[float], logits: list[list[float]]) -> float:
    """What the loss gives Keras: the mean over examples."""
    return float(kind.loss()(tf.constant(targets, tf.float32), tf.constant(logits, tf.float32)))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("mse", (0.25 + 9) / 2),
        ("mae", (0.5 + 3) / 2),
        ("huber", (0.5**2 / 2 + 3 - 0.5) / 2),
        ("poisson", (math.exp(0.5) - 1 * 0.5 + math.exp(-1) - 2 * -1) / 2),
    ],
)
def test_losses_by_hand(loss: str, expected: float) -> None:
    assert losses(make_kind(loss=loss), [1.0, 2.0], [[0.5], [-1.0]]) == pytest.approx(expected, rel=1e-6)


def test_poisson_is_least_where_the_answer_is_the_mean() -> None:
    kind = make_kind(loss="poisson")
    targets = kind.targets(tf.constant(LABELS)).numpy().tolist()
    assert np.mean(targets) == pytest.approx(1)
    at = {output: losses(kind, targets, [[output]] * 4) for output in (-0.1, 0.0, 0.1)}
    assert min(at, key=at.__getitem__) == 0
    assert kind.scores(tf.zeros((1, 1))).numpy() == pytest.approx(LABELS.mean())


def test_the_quantile_loss_by_hand() -> None:
    """Of target 1 and outputs 0, 0.5, 2 under 0.1, 0.5, 0.9: errors 1, 0.5 and -1."""
    kind = make_kind(loss="quantile", quantiles=(0.1, 0.5, 0.9))
    found = kind.losses(tf.constant([1.0]), tf.constant([[0.0, 0.5, 2.0]]))
    assert found.numpy() == pytest.approx([(0.1 * 1 + 0.5 * 0.5 + 0.1 * 1) / 3])


@given(st.lists(st.lists(st.floats(-50, 50, width=32), min_size=4, max_size=4), min_size=1, max_size=5))
@example(logits=[[0.0, 0.0, 0.0, 0.0], [-18.0, 5.125, 0.0, 0.0]])  # alike but for a rounding
def test_quantiles_never_cross(logits: list[list[float]]) -> None:
    kind = make_kind(loss="quantile", quantiles=(0.05, 0.5, 0.75, 0.99), transform="log1p")
    assert (np.diff(kind.scores(tf.constant(logits)).numpy(), axis=1) >= 0).all()


def test_quantiles_begin_as_those_of_a_normal_distribution() -> None:
    kind = make_kind(loss="quantile", quantiles=(0.1, 0.5, 0.9))
    spread = 1.2815515655446004 * LABELS.std()
    expected = [LABELS.mean() - spread, LABELS.mean(), LABELS.mean() + spread]
    assert kind.scores(tf.zeros((1, 3))).numpy()[0] == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("transform", ["none", "log1p"])
@pytest.mark.parametrize("loss", ["mse", "huber"])
def test_answers_come_back_to_the_labels_unit(loss: str, transform: str) -> None:
    """A model that gives the targets answers with the labels."""
    kind = make_kind(loss=loss, transform=transform)
    targets = kind.targets(tf.constant(LABELS))
    assert targets.numpy().mean() == pytest.approx(0, abs=1e-6)
    assert targets.numpy().std() == pytest.approx(1)
    np.testing.assert_allclose(kind.scores(targets[:, tf.newaxis]).numpy(), LABELS, atol=1e-4)


def test_training_sees_the_same_whatever_the_unit() -> None:
    """Milliseconds since 1970 or hours since noon: what is learnt does not change."""
    small, large = LABELS, LABELS * 3.6e6 + 1.7e12
    seen = [make_kind(values).targets(tf.constant(values)).numpy() for values in (small, large)]
    np.testing.assert_allclose(seen[0], seen[1], atol=1e-6)


def test_epoch_metrics_are_in_the_labels_unit() -> None:
    kind = make_kind(transform="log1p")
    targets = kind.targets(tf.constant(LABELS)).numpy().astype(np.float64)
    answers = kind.targets(tf.constant(LABELS + 2)).numpy().astype(np.float64)[:, np.newaxis]
    found = kind.epoch_metrics(targets, answers, np.ones(len(targets)), kind.of_epoch)
    assert found["mae"] == pytest.approx(2, rel=1e-5)
    assert found["rmse"] == pytest.approx(2, rel=1e-5)
    assert found["r2"] == pytest.approx(1 - 4 / LABELS.var(), rel=1e-5)
    assert found["loss"] == pytest.approx(np.square(targets - answers[:, 0]).mean())


def test_r2_of_a_constant_validation_label_is_left_out() -> None:
    found = Objective(label=make_label(name="y", kind="regression"), kind=make_kind()).epoch_metrics(
        np.zeros(3), np.ones((3, 1))
    )
    assert set(found) == {"val_loss", "val_mae", "val_rmse"}


@pytest.mark.parametrize(
    ("given_", "values", "wrong"),
    [
        ({}, [1.0, math.nan, math.inf, float(np.iinfo(np.int64).min)], [False, True, True, True]),
        ({"min": 0.0, "max": 2.0}, [-0.1, 0.0, 2.0, 2.1], [True, False, False, True]),
        ({"loss": "poisson"}, [-1.0, 0.0], [True, False]),
        ({"transform": "log1p"}, [-1.0, -0.5], [True, False]),
    ],
)
def test_wrong_labels(given_: dict[str, Any], values: list[float], wrong: list[bool]) -> None:
    kind = make_kind(**given_)
    assert kind.wrong(np.array(values)).tolist() == wrong
    targets = kind.targets(tf.constant(values, tf.float64)).numpy()
    assert kind.wrong_targets(targets).tolist() == wrong


def test_a_missing_whole_number_is_wrong() -> None:
    kind = make_kind()
    targets = kind.targets(tf.constant([5, np.iinfo(np.int64).min], tf.int64)).numpy()
    assert kind.wrong_targets(targets).tolist() == [False, True]


def test_a_constant_label_does_not_divide_by_zero() -> None:
    kind = make_kind(np.array([5.0, 5.0]))
    assert kind.targets(tf.constant([5.0, 6.0])).numpy().tolist() == [0, 1]


def test_statistics_without_numbers_are_named() -> None:
    label = make_label(name="y", kind="regression")
    with refuses(DataError, found="'y'", way_out="check_data task"):
        labels_of(label, make_number_statistics(None))
