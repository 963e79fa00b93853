"""From the request to a model that can be trained, and to a copy of it on one device that can be stored."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import tensorflow as tf
import tf_keras

from trainer.contract.documents import Training
from trainer.features.preprocessing import InputShape
from trainer.input.source import Tensors
from trainer.models.hyperparameters import Hyperparameters, HyperparameterSet
from trainer.models.registry import Architecture, find_architecture, read_hyperparameters
from trainer.objective.outputs import Objective


class Float32Logits(tf_keras.Model):  # type: ignore[misc]  # Keras has no types
    """A model whose layers compute in lower precision and whose logits are float32, as losses need them.

    Args:
        inner: Gives logits.
    """

    def __init__(self, inner: tf_keras.Model) -> None:
        super().__init__(name=inner.name)
        self.inner = inner

    def call(self, inputs: Tensors, training: bool | None = None) -> tf.Tensor:
        """Return the inner model's logits. → [B, n]."""
        return tf.cast(self.inner(inputs, training=training), tf.float32)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a model is made, whatever it is made for.

    Attributes:
        training: As requested.
        architecture: Builds it.
        hyperparameters: Of the architecture, checked.
        objective: What it learns to predict.
    """

    training: Training
    architecture: Architecture
    hyperparameters: HyperparameterSet
    objective: Objective

    @classmethod
    def from_training(cls, training: Training, objective: Objective) -> Recipe:
        """Check a request's names.

        Raises:
            RequestError: An unknown architecture or hyperparameter, or a value out of its range.
        """
        architecture = find_architecture(training.model)
        hyperparameters = read_hyperparameters(architecture, training.hyperparameters)
        return cls(training=training, architecture=architecture, hyperparameters=hyperparameters, objective=objective)

    @property
    def of_steps(self) -> Hyperparameters:
        """The hyperparameters of an architecture that is trained by steps.

        Raises:
            TypeError: It is not.
        """
        if not isinstance(self.hyperparameters, Hyperparameters):
            raise TypeError(f"{type(self.hyperparameters).__name__} is no {Hyperparameters.__name__}")
        return self.hyperparameters

    def require_inputs(self, shape: InputShape) -> None:
        """Check that the architecture can read what the features give, and has what it needs for them.

        Raises:
            RequestError: It cannot, or has not.
        """
        self.architecture.require_inputs(self.training.model, shape)
        self.architecture.require_given(self.hyperparameters, shape)

    def build_model(self, shape: InputShape) -> tf_keras.Model:
        """Build a model whose layers compute in the requested precision; variables and logits are float32.

        AutoGraph is switched off, as inside a step: rewriting the source of Keras's layers is most of the time that a
        deep network takes to be built.
        """
        build = tf.autograph.experimental.do_not_convert(self.architecture.build)
        if self.training.precision == "float32":
            return build(shape, self.objective.outputs, self.hyperparameters)
        with _policy(self.training.precision):
            return Float32Logits(build(shape, self.objective.outputs, self.hyperparameters))

    def copy_model(self, model: tf_keras.Model, shape: InputShape) -> tf_keras.Model:
        """Return the same model on one device, whatever strategy holds this one; every replica must call it."""
        weights = model.get_weights()
        copied = self.build_model(shape)
        copied.set_weights(weights)
        return copied


@contextlib.contextmanager
def _policy(precision: str) -> Iterator[None]:
    before = tf_keras.mixed_precision.global_policy()
    tf_keras.mixed_precision.set_global_policy(precision)
    try:
        yield
    finally:
        tf_keras.mixed_precision.set_global_policy(before)
