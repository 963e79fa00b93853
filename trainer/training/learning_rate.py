"""The learning rate over a training: scaled to the replicas, warmed up, lowered when nothing gets better.

Comes in: the request and the strategy. Goes out: a number where the rate is constant, else a schedule that depends on
the step alone and on one factor that is part of the training's state. Linear scaling and warm-up: Goyal et al.,
Accurate, Large Minibatch SGD, 2017, https://arxiv.org/abs/1706.02677
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tensorflow as tf
import tf_keras

from trainer.cluster.strategy import Strategy
from trainer.contract.documents import Training
from trainer.training.batches import Steps

_WARMUP_FRACTION = 0.05


class Rate(tf_keras.optimizers.schedules.LearningRateSchedule):  # type: ignore[misc]  # Keras has no types
    """Rises linearly over the first steps, then stays; all of it times a factor.

    Args:
        peak: After the warm-up.
        warmup_steps: In the first of them the rate is peak / warmup_steps.
    """

    def __init__(self, peak: float, warmup_steps: int) -> None:
        super().__init__()
        self._peak, self._warmup_steps = peak, max(warmup_steps, 1)
        self._factor = tf.Variable(
            1.0, trainable=False, dtype=tf.float32, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA
        )

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        """Return the rate of a step, from 0. scalar → scalar."""
        risen = tf.minimum(1.0, (tf.cast(step, tf.float32) + 1.0) / self._warmup_steps)
        return self._peak * risen * self._factor

    def set_factor(self, factor: float) -> None:
        """Set what the rate is multiplied by."""
        self._factor.assign(factor)

    def get_config(self) -> dict[str, Any]:
        """Return what it was made from."""
        return {"peak": self._peak, "warmup_steps": self._warmup_steps}


@dataclass(frozen=True, kw_only=True)
class RatePlan:
    """What is known of the rate before the optimizer is made.

    Attributes:
        peak: Highest rate.
        warmup_steps: Steps on the way there.
        changes: Whether it may be lowered.
        total_steps: Of the training.
    """

    peak: float
    warmup_steps: int
    changes: bool
    total_steps: int = 0

    def make(self) -> float | Rate:
        """Return what an optimizer takes; must be called in the strategy's scope."""
        return Rate(self.peak, self.warmup_steps) if self.warmup_steps or self.changes else self.peak


def plan_rate(training: Training, learning_rate: float, steps: Steps, strategy: Strategy) -> RatePlan:
    """Scale the rate by the replicas in lockstep, and count the warm-up's steps.

    Args:
        learning_rate: Of one replica.
    """
    fraction = training.warmup_fraction
    if fraction is None:
        fraction = _WARMUP_FRACTION if strategy.replicas > 1 else 0.0
    return RatePlan(
        peak=learning_rate * (strategy.replicas if training.scale_learning_rate else 1),
        warmup_steps=round(fraction * steps.total),
        changes=training.callbacks.reduce_lr is not None,
        total_steps=steps.total,
    )
