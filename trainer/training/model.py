"""A recipe's model, ready to be trained: built where the strategy wants it, with optimizer and loss."""

from __future__ import annotations

import tensorflow as tf
import tf_keras

from trainer.cluster.strategy import Strategy
from trainer.features.preprocessing import InputShape
from trainer.models.pretrained import PretrainedHyperparameters, pretrained_variables
from trainer.training.batches import Steps
from trainer.training.fine_tuning import FineTuningAdam
from trainer.training.learning_rate import Rate, RatePlan, plan_rate
from trainer.training.recipe import Recipe
from trainer.training.step_control import LossWatch
from trainer.training.steps import exchange_at_once, prepare_fit


def make_model(
    recipe: Recipe, shape: InputShape, steps: Steps, strategy: Strategy
) -> tuple[tf_keras.Model, Rate | None]:
    """Build and compile.

    Returns:
        The model, and its learning rate where that may change.
    """
    plan = plan_rate(recipe.training, recipe.hyperparameters.learning_rate, steps, strategy)
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
    clip_norm, chosen = recipe.training.clip_norm, recipe.hyperparameters
    slow = pretrained_variables(model)
    if not slow or not isinstance(chosen, PretrainedHyperparameters):
        return tf_keras.optimizers.Adam(rate, global_clipnorm=clip_norm)
    return FineTuningAdam(
        rate,
        slow=slow,
        first_step=round(chosen.fine_tune_from * steps),
        factor=chosen.fine_tune_rate,
        global_clipnorm=clip_norm,
    )
