"""A recipe's model, ready to be trained: built where the strategy wants it, with optimizer and loss.

The optimizer is Adam, with weight decay where the hyperparameters have it; a part that was trained elsewhere waits, and
then learns more slowly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.cluster.strategy import Strategy
from trainer.features.preprocessing import InputShape
from trainer.models.pretrained import PretrainedHyperparameters, pretrained_variables
from trainer.training.batches import Steps
from trainer.training.keras_internals import variable_key
from trainer.training.learning_rate import Rate, RatePlan, plan_rate
from trainer.training.recipe import Recipe
from trainer.training.step_control import LossWatch
from trainer.training.steps import exchange_at_once, prepare_fit


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


def make_model(
    recipe: Recipe, shape: InputShape, steps: Steps, strategy: Strategy
) -> tuple[tf_keras.Model, Rate | None]:
    """Build and compile.

    Returns:
        The model, and its learning rate where that may change.
    """
    plan = plan_rate(recipe.training, recipe.of_steps.learning_rate, steps, strategy)
    with strategy.scope.scope():
        model = recipe.build_model(shape)
        return model, compile_model(recipe, model, plan)


def compile_model(recipe: Recipe, model: tf_keras.Model, plan: RatePlan) -> Rate | None:
    """Set optimizer and loss; must be called in the strategy's scope.

    Returns:
        The learning rate's schedule, where the rate may change.
    """
    rate = plan.make()
    optimizer = _optimizer(recipe, model, rate, plan.total_steps)
    if tf.distribute.get_strategy().num_replicas_in_sync > 1:
        exchange_at_once(optimizer)
    if recipe.training.precision == "mixed_float16":
        optimizer = tf_keras.mixed_precision.LossScaleOptimizer(optimizer)
    # Several steps per call, so that Keras builds a loop; `step_control.Pace` chooses how many.
    model.compile(optimizer=optimizer, loss=recipe.objective.loss(), steps_per_execution=2)
    prepare_fit(model, LossWatch())
    model.optimizer.build(model.trainable_variables)
    return rate if isinstance(rate, Rate) else None


def _optimizer(recipe: Recipe, model: tf_keras.Model, rate: float | Rate, steps: int) -> tf_keras.optimizers.Optimizer:
    clip_norm, chosen = recipe.training.clip_norm, recipe.of_steps
    slow = pretrained_variables(model)
    options = {"global_clipnorm": clip_norm, "weight_decay": chosen.weight_decay or None}
    if not slow or not isinstance(chosen, PretrainedHyperparameters):
        optimizer = tf_keras.optimizers.Adam(rate, **options)
    else:
        optimizer = FineTuningAdam(
            rate,
            slow=slow,
            first_step=round(chosen.fine_tune_from * steps),
            factor=chosen.fine_tune_rate,
            **options,
        )
    if chosen.weight_decay:
        kept = [variable for variable in model.trainable_variables if "/bias" in variable.name]
        optimizer.exclude_from_weight_decay([*kept, *slow])
    return optimizer
