"""The networks of one model, each by itself, and together: in the report of a whole training."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

from tests.support.trainer_documents import make_label
from trainer.contract.documents import Report
from trainer.contract.reading import parse_document
from trainer.objective.outputs import objective_of
from trainer.training.member_metrics import measure_members

MEMBERS = {"training": {"hyperparameters": {"members": 3, "hidden_units": [8], "dropout": 0.1}}}


class Answering(tf_keras.Model):
    """Gives the same logits for every example. [members] or []."""

    def __init__(self, logits: list[float]) -> None:
        super().__init__()
        self._logits = tf.constant(logits)

    def call(self, inputs: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Return them. [B] → [B, members, 1] or [B, 1]."""
        ones = tf.ones_like(inputs)[:, tf.newaxis]
        return (ones * self._logits)[:, :, tf.newaxis] if len(self._logits) > 1 else ones * self._logits


def binary():
    return objective_of(make_label("y", "binary"))


def test_each_is_measured_by_its_own_answers() -> None:
    """Log loss by its definition, over all blocks."""
    blocks = tf.data.Dataset.from_tensor_slices((tf.ones([6]), tf.constant([1.0, 0, 0, 1, 1, 1]))).batch(4)
    found = measure_members(Answering([0.0, 2.0]), blocks, binary())
    chance = 1 / (1 + np.exp(-2.0))
    expected = [np.log(2), -(4 * np.log(chance) + 2 * np.log(1 - chance)) / 6]
    assert found["val_loss"] == pytest.approx(expected, rel=1e-5)


def test_of_one_network_or_no_examples_there_is_nothing() -> None:
    blocks = tf.data.Dataset.from_tensor_slices((tf.ones([6]), tf.ones([6]))).batch(4)
    assert measure_members(Answering([1.0]), blocks, binary()) == {}
    assert measure_members(Answering([1.0, 2.0]), blocks.take(0), binary()) == {}


def test_the_report_has_each_member_also_after_a_kill(exported, tmp_path) -> None:
    """All members stand in every checkpoint: a killed training goes on with all of them, to the same end."""
    request = exported.train_request_in(tmp_path, **MEMBERS)
    report = exported.train(request)
    assert set(report.members) == {"val_loss", "val_auc"}
    losses = report.members["val_loss"]
    assert len(set(losses)) == 3
    assert report.metrics["val_loss"] <= np.mean(losses)  # log loss is convex in the answer
    shutil.rmtree(max((tmp_path / "checkpoints").glob("step-*")))
    Path(request.report_uri).unlink()
    again = exported.train(request)
    assert again.resumed_from_epoch == 2
    assert again.members == report.members
    stored = parse_document(Report, Path(request.report_uri).read_bytes(), "report")
    assert stored.members == report.members
