"""Both loops, their options, and what they say while they run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf
import tf_keras

from tests.support.job_log import collect_messages
from tests.support.refusals import refuses
from trainer.errors import RequestError
from trainer.storage import Storage
from trainer.training.batches import Steps
from trainer.training.callbacks import Progress
from trainer.training.checkpoints import Checkpoints
from trainer.training.steps import _CustomLoop, exchange_at_once

HYPERPARAMETERS = {"learning_rate": 0.02, "hidden_units": [8]}


def train(exported, folder: Path, said: list[str] | None = None, **training):
    training = {"epochs": 2, "hyperparameters": HYPERPARAMETERS, **training}
    return exported.train(exported.train_request_in(folder, training=training), said)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"hyperparameters": {**HYPERPARAMETERS, "dropout": 0.3, "l2": 0.01}}, id="dropout-and-decay"),
        pytest.param({"clip_norm": 0.05}, id="clipped", marks=pytest.mark.long),
        pytest.param({"warmup_fraction": 0.5}, id="warmed-up", marks=pytest.mark.long),
        pytest.param({"precision": "mixed_float16"}, id="float16", marks=pytest.mark.long),
    ],
)
def test_the_custom_loop_gives_what_fit_gives(exported, tmp_path: Path, options: dict) -> None:
    """Bit by bit, on the same seed."""
    fit = train(exported, tmp_path / "fit", **options)
    custom = train(exported, tmp_path / "custom", loop="custom", **options)
    assert custom.history == fit.history
    assert custom.golden == fit.golden
    plain = train(exported, tmp_path / "plain")
    assert fit.history != plain.history


def test_accumulated_parts_give_the_step_of_a_whole_batch(exported, tmp_path: Path) -> None:
    """Four parts of 16 rows against 64 rows at once: sums of float32 in another order, 1e-5 on every loss."""
    whole = train(exported, tmp_path / "whole", batch_size=64)
    parts = train(exported, tmp_path / "parts", batch_size=16, accumulate_steps=4, loop="custom")
    assert parts.steps == whole.steps
    assert parts.history["val_loss"] == pytest.approx(whole.history["val_loss"], abs=1e-5)


def test_a_variable_that_the_loss_does_not_depend_on_has_no_gradient_in_parts_either() -> None:
    """Modules have such variables; fit and whole batches train them by leaving them alone."""

    class Half(tf_keras.Model):
        def build(self, input_shape):
            self.unused = self.add_weight(name="unused", shape=[2])
            self.used = self.add_weight(name="used", shape=[1, 1], initializer="ones")
            super().build(input_shape)

        def call(self, inputs):
            return inputs @ self.used

    model = Half()
    model.compile("sgd", "mse")
    model.build([None, 1])
    loop = _CustomLoop(model, SimpleNamespace(accumulate_steps=2))
    gradients = loop._gradients((tf.constant([[1.0], [3.0]]), tf.constant([[0.0], [0.0]])))
    found = {variable.name: gradient for variable, gradient in zip(model.trainable_variables, gradients, strict=True)}
    assert found["unused:0"] is None
    assert found["used:0"].numpy().tolist() == [[10.0]]


def test_small_embeddings_are_exchanged_whole_and_large_ones_by_their_slices() -> None:
    """One exchange for all that is dense; gradients stay what they were."""
    seen: list[list] = []
    optimizer = SimpleNamespace(aggregate_gradients=lambda pairs: seen.append(pairs) or pairs)
    exchange_at_once(optimizer)
    slices = tf.IndexedSlices(tf.constant([[1.0], [2.0], [4.0]]), tf.constant([0, 2, 2]), tf.constant([3, 1]))
    small, large = tf.Variable(tf.zeros([3, 1])), SimpleNamespace(shape=tf.TensorShape([1 << 20, 2]))
    pairs = [(slices, small), (slices, large), (tf.constant([5.0]), small), (None, small)]
    found = optimizer.aggregate_gradients(pairs)
    assert [gradient for gradient, _ in seen[0][1:]] == [slices, pairs[2][0], None]
    assert found[0][0].numpy().tolist() == [[1.0], [0.0], [6.0]]


def test_fit_cannot_accumulate(exported, tmp_path: Path) -> None:
    with refuses(RequestError, where="training.accumulate_steps", found="fit", way_out="custom"):
        train(exported, tmp_path, accumulate_steps=2)


@pytest.mark.parametrize("precision", [pytest.param("mixed_bfloat16", marks=pytest.mark.long), "mixed_float16"])
def test_lower_precision_learns_as_well_and_is_stored_as_float32_scores(
    exported, tmp_path: Path, precision: str
) -> None:
    full = train(exported, tmp_path / "full")
    found = train(exported, tmp_path / "lower", precision=precision)
    assert found.metrics["val_loss"] == pytest.approx(full.metrics["val_loss"], abs=0.02)
    assert found.history != full.history
    assert found.signature.outputs == {"score": "float32"}
    assert tf_keras.mixed_precision.global_policy().name == "float32"


@pytest.mark.long
def test_a_plateau_lowers_the_rate(exported, tmp_path: Path) -> None:
    options = {"epochs": 12, "hyperparameters": {"learning_rate": 0.2, "hidden_units": [16]}}
    without = train(exported, tmp_path / "without", **options)
    lowered = train(exported, tmp_path / "with", **options, callbacks={"reduce_lr": {"patience": 1, "factor": 0.1}})
    losses = lowered.history["val_loss"]
    worse = next(epoch for epoch in range(1, 12) if losses[epoch] >= min(losses[:epoch]))
    assert losses[: worse + 1] == without.history["val_loss"][: worse + 1]
    assert losses[worse + 1] != without.history["val_loss"][worse + 1]
    factor, best = 1.0, float("inf")
    for loss in losses:
        factor, best = (factor, loss) if loss < best else (factor * 0.1, best)
    state = Checkpoints(str(tmp_path / "with/checkpoints"), Storage()).newest_state()
    assert state is not None
    assert state.rate_factor == pytest.approx(factor)


def test_tensorboard_gets_histograms_and_a_profile(exported, tmp_path: Path) -> None:
    train(exported, tmp_path, callbacks={"tensorboard": {"histograms": True, "profile": True}}, epochs=3)
    logs = tmp_path / "logs/from-epoch-00001"
    assert list(logs.rglob("*.xplane.pb"))
    tags = {
        value.tag
        for path in logs.glob("*tfevents*")
        for record in tf.data.TFRecordDataset(str(path))
        for value in tf.compat.v1.Event.FromString(record.numpy()).summary.value
    }
    assert "epoch_val_loss" in tags
    assert any(tag.startswith("hidden_0/kernel") for tag in tags)


def test_a_long_epoch_says_where_it_is_every_ten_seconds() -> None:
    now, said = [0.0], []
    steps = Steps(rows=12_800, rows_per_step=128, per_epoch=100, epochs=2)
    progress = Progress(steps, False, lambda: now[0])
    with collect_messages(said):
        progress.on_epoch_begin(1)
        for done in range(40, 100, 4):
            progress.on_train_batch_begin(done)
            now[0] += 4.0
            progress.on_train_batch_end(done + 3, {"loss": tf.constant(0.43125)})
        progress.on_epoch_end(1, {"loss": 0.4, "val_auc": 0.7})
    assert said[0] == "epoch 2/2 step 52/100 loss=0.4313 128 examples/s 0:48 left"
    assert len(said) == 5
    assert said[-1] == "epoch 2/2 loss=0.4000 val_auc=0.7000 128 examples/s"
