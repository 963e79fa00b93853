"""A model begins with the training split's shares of the classes as its answer."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import tensorflow as tf

from tests.support.trainer_documents import make_label, make_statistics
from trainer.contract.documents import LabelStatistics
from trainer.objective.labels import labels_of

BINARY = make_label(name="y", kind="binary")
CLASSES = make_label(name="y", kind="multiclass", classes=3)


def statistics_with(rows, **label):
    made = make_statistics(rows)
    split = dataclasses.replace(made.splits["train"], label=LabelStatistics(**{"mean": None, "nulls": 0, **label}))
    return dataclasses.replace(made, splits={"train": split})


@pytest.mark.parametrize(("mean", "share"), [(0.03, 0.03), (0.5, 0.5), (0.0, 1 / 1002), (1.0, 1001 / 1002)], ids=str)
def test_logits_of_nothing_are_the_share_of_1(mean, share):
    kind = labels_of(BINARY, statistics_with(1000, mean=mean))
    assert kind.scores(tf.zeros([2, 1])).numpy() == pytest.approx(share, rel=0.04)
    loss = kind.loss()(tf.constant([[1.0]]), tf.zeros([1, 1])).numpy()
    assert loss == pytest.approx(-math.log(share), rel=0.04)


def test_logits_of_nothing_are_the_share_of_each_class():
    kind = labels_of(CLASSES, statistics_with(1000, counts=(900, 100, 0)))
    np.testing.assert_allclose(kind.scores(tf.zeros([1, 3])), [[901 / 1003, 101 / 1003, 1 / 1003]], rtol=1e-5)
    loss = kind.loss()(tf.constant([[1]]), tf.zeros([1, 3])).numpy()
    assert loss == pytest.approx(-math.log(101 / 1003), rel=1e-5)


@pytest.mark.parametrize("label", [BINARY, CLASSES], ids=["binary", "multiclass"])
def test_without_statistics_all_classes_are_as_likely(label):
    scores = labels_of(label).scores(tf.zeros([1, labels_of(label).outputs])).numpy()
    assert np.allclose(scores, 0.5 if label is BINARY else 1 / 3)
