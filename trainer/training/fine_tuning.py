"""Adam for models of which a part was trained elsewhere: that part waits, and then learns more slowly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.training.keras_internals import variable_key
from trainer.training.learning_rate import Rate


class FineTuningAdam(tf_keras.optimizers.Adam):  # type: ignore[misc]  # Keras has no types
    """Adam whose steps are shorter for some variables, and nothing at first.

    Adam's step is proportional to the learning rate, so that a fraction of a step is a step at a fraction of the rate.
    Its moments are kept from the first step on: fine tuning begins with moments that fit.

    Args:
        learning_rate: A number or a schedule.
        first_step: From which step on they are trained.
        factor: What their learning rate is multiplied by then.
    """

    def __init__(
        self,
        learning_rate: float | Rate,
        *,
        slow: Sequence[tf.Variable],
        first_step: int,
        factor: float,
        **others: Any,  # noqa: ANN401 - as Keras takes them
    ) -> None:
        super().__init__(learning_rate, **others)
        self._slow = frozenset(variable_key(self, variable) for variable in slow)
        self._first_step, self._factor = first_step, factor

    def update_step(self, gradient: tf.Tensor, variable: tf.Variable) -> None:
        """Take a step for one variable."""
        if variable_key(self, variable) not in self._slow:
            super().update_step(gradient, variable)
            return
        before = tf.identity(variable)
        super().update_step(gradient, variable)
        factor = tf.where(self.iterations < self._first_step, 0.0, self._factor)
        variable.assign(before + tf.cast(factor, variable.dtype) * (variable - before))
