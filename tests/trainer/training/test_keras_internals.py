"""What is used of Keras's inside is there in this version, does what it is used for, and is used in one file."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
import tf_keras

import trainer
from trainer.training import keras_internals
from trainer.training.keras_internals import (
    FirstStep,
    mean_loss,
    seed_layers,
    take_numbers_as_they_are,
    variable_key,
    wait_for_workers,
)

FOLDER = Path(trainer.__file__).parent
# Of other libraries: each says beside it what it is for.
OTHERS = {"input/tensorflow_io.py", "storage/gcs.py"}


@pytest.fixture
def model() -> tf_keras.Model:
    """One layer, compiled."""
    made = tf_keras.Sequential([tf_keras.layers.Dense(1, input_shape=(2,))])
    made.compile("sgd", "mse")
    return made


BATCH = (np.ones([8, 2], np.float32), np.zeros([8, 1], np.float32))


def test_the_mean_loss_is_the_epochs(model: tf_keras.Model) -> None:
    history = model.fit(*BATCH, batch_size=4, epochs=1, verbose=0).history
    assert float(mean_loss(model).result()) == pytest.approx(history["loss"][0])


def test_fit_begins_inside_an_epoch_and_forgets_that_afterwards(model: tf_keras.Model) -> None:
    class Steps(tf_keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, _logs: object = None) -> None:
            seen.append((self.params["epochs"], batch))

    seen: list[tuple[int, int]] = []
    batches = tf.data.Dataset.from_tensor_slices(BATCH).batch(2).repeat()
    model.fit(batches, epochs=2, initial_epoch=1, steps_per_epoch=4, verbose=0, callbacks=[Steps(), FirstStep(1, 3)])
    assert seen == [(2, 3)]
    model.fit(batches, epochs=1, steps_per_epoch=4, verbose=0, callbacks=[Steps()])
    assert len(seen) == 5


def test_numbers_stay_tensors_for_those_who_take_them(model: tf_keras.Model) -> None:
    class Taken(tf_keras.callbacks.Callback):
        def on_train_batch_end(self, _batch: int, logs: dict[str, object]) -> None:
            types.append(isinstance(logs["loss"], tf.Tensor))

    types: list[bool] = []
    waits, takes = Taken(), Taken()
    take_numbers_as_they_are(takes)
    model.fit(*BATCH, batch_size=8, verbose=0, callbacks=[waits])
    model.fit(*BATCH, batch_size=8, verbose=0, callbacks=[takes])
    assert types == [False, True]


def test_an_optimizer_knows_each_variable_by_a_key(model: tf_keras.Model) -> None:
    keys = [variable_key(model.optimizer, variable) for variable in model.trainable_variables]
    assert len(set(keys)) == 2


def test_a_model_has_a_place_for_a_coordinator(model: tf_keras.Model) -> None:
    """Whom `fit` puts there with parameter servers is waited for; alone there is nobody."""
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'join'"):
        wait_for_workers(model)


def test_layers_draw_what_python_3_11_drew() -> None:
    seed_layers(7)
    first = tf_keras.initializers.GlorotUniform()(shape=(2, 2)).numpy()
    seed = random.Random(7).randint(1, 10**9)
    expected = tf_keras.initializers.GlorotUniform(seed=seed)(shape=(2, 2)).numpy()
    np.testing.assert_array_equal(first, expected)


def test_no_other_file_reads_a_private_attribute() -> None:
    found = {
        path.relative_to(FOLDER).as_posix()
        for path in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls", "os"})
    }
    assert found == OTHERS | {Path(keras_internals.__file__).relative_to(FOLDER).as_posix()}
