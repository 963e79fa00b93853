"""A number as label: how training sees it, its losses, and how answers come back to its unit.

Training sees the label by its mean and deviation over the training split, after the label's transform, so that the same
learning rate suits any unit; `scores` undoes both, inside the stored model. Under `poisson` the output is the logarithm
of the answer over the training mean.

With label t and output a, both as training sees them:

| loss | formula | source |
|---|---|---|
| mse | (t - a)² |  |
| mae | abs(t - a) |  |
| huber | (t - a)² / 2 up to abs(t - a) = 1, abs(t - a) - 1/2 beyond | Huber 1964, Annals of Math. Statistics 35 |
| poisson | exp(a) - t a | negative log likelihood without the label's own term |
| quantile | mean over quantiles q of max(q (t - a), (q - 1) (t - a)) | Koenker, Bassett 1978, Econometrica 46 |
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.contract.documents import Metric, RegressionLabel, Statistics
from trainer.contract.metrics import IF_ASKED, OF_EPOCH
from trainer.errors import DataError
from trainer.objective.answers import PREDICTION, QUANTILES, Answers
from trainer.objective.members import mean_of_members
from trainer.objective.metrics import Floats, Mask, Values
from trainer.objective.number_metrics import defined, weigh_numbers

_INT64_MISSING = np.iinfo(np.int64).min
_MOST_EXPONENT = 60.0
"""Above it exp() of an answer would leave float32 where it is multiplied with a mean."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """What the training split says of the label: `centre` is taken from it, `unit` divides it."""

    centre: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, label: RegressionLabel, statistics: Statistics) -> Scale:
        """Read it; a label that never changes has the unit 1.

        Raises:
            DataError: There are no statistics of the label.
        """
        train = statistics.splits.get("train")
        numbers = train.auxiliary_labels.get(label.name, train.label).numbers if train else None
        if numbers is None or numbers.trained_mean is None or numbers.trained_stddev is None:
            raise DataError(
                f"statistics of run {statistics.run_key}, split train",
                f"nothing about label {label.name!r} as a number",
                "its mean and deviation",
                "Delete statistics.json, then clear the run's check_data task and what follows it",
            )
        if label.loss == "poisson":
            return cls(unit=numbers.trained_mean or 1.0)
        return cls(centre=numbers.trained_mean, unit=numbers.trained_stddev or 1.0)


class NumberLoss(tf_keras.losses.Loss):  # type: ignore[misc]  # Keras has no types
    """The loss of a model's outputs.

    Args:
        kind: Of label.
    """

    def __init__(self, kind: Regression) -> None:
        super().__init__(name="loss")
        self._kind = kind

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Return each example's. [B, 1], [B, outputs] → [B]."""
        return self._kind.losses(tf.reshape(y_true, [-1]), self._kind.answers_of(y_pred))


class Regression:
    """A number.

    Args:
        label: Of the model.
        scale: Of the training split; only training and its model need it.
    """

    of_epoch: tuple[Metric, ...] = OF_EPOCH["regression"]

    def __init__(self, label: RegressionLabel, scale: Scale | None = None) -> None:
        self._label, self.scale = label, scale or Scale()
        self.outputs: int = len(label.quantiles) or 1
        self.base: tuple[float, ...] = (0.0,) * self.outputs
        self.answers = Answers(output=QUANTILES if label.quantiles else PREDICTION, quantiles=label.quantiles)
        self.if_asked: tuple[Metric, ...] = defined(IF_ASKED["regression"], label.quantiles)
        bounds = (("at least", self._low), ("at most", label.max), ("above", -1 if self._log1p else None))
        parts = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
        self.expected: str = ", ".join(["a finite number", *parts])

    def loss(self) -> tf_keras.losses.Loss:
        """Return the label's."""
        return NumberLoss(self)

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Return float32 by the training split's mean and deviation; NaN where the label is missing or wrong."""
        values = tf.cast(column, tf.float64)
        right = tf.logical_not(self._outside(values))
        if self._log1p:
            values = tf.math.log1p(values)
        values = (values - self.scale.centre) / self.scale.unit
        return tf.cast(tf.where(right, values, tf.constant(math.nan, tf.float64)), tf.float32)

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return numbers in the label's unit. [B, outputs] → [B], or [B, quantiles]."""
        answers = self._in_unit(self.epoch_scores(logits))
        if not self._label.quantiles:
            return answers[:, 0]
        # Quantiles that all but touch cross by a rounding on the way to the label's unit.
        rising = itertools.accumulate(tf.unstack(answers, axis=1), tf.maximum)
        return tf.stack([*rising], axis=1)

    def epoch_scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return what training compares with targets. [B, outputs] → [B, outputs]."""
        return mean_of_members(self.answers_of(logits))

    def answers_of(self, logits: tf.Tensor) -> tf.Tensor:
        """Return answers as training sees them; quantiles cannot cross. [B, outputs] → [B, outputs], of members too.

        The lowest quantile is an output of its own; each next one lies above it by the softplus of its output. Outputs
        of 0 are the quantiles of a normal distribution.
        """
        if not self._label.quantiles:
            return logits
        normal = [NormalDist().inv_cdf(level) for level in self._label.quantiles]
        starts = [normal[0], *(_inverse_softplus(high - low) for low, high in itertools.pairwise(normal))]
        raw = logits + tf.constant(starts, logits.dtype)
        return tf.cumsum(tf.concat([raw[..., :1], tf.nn.softplus(raw[..., 1:])], axis=-1), axis=-1)

    def losses(self, targets: tf.Tensor, answers: tf.Tensor) -> tf.Tensor:
        """Return each example's loss. [B], [B, outputs] → [B]."""
        target = targets[:, tf.newaxis]
        errors = target - answers
        if self._label.loss == "mae":
            losses = tf.abs(errors)
        elif self._label.loss == "huber":
            size = tf.abs(errors)
            losses = tf.where(size <= 1, tf.square(errors) / 2, size - 0.5)
        elif self._label.loss == "poisson":
            losses = tf.exp(tf.minimum(answers, tf.cast(_MOST_EXPONENT, answers.dtype))) - target * answers
        elif self._label.loss == "quantile":
            levels = tf.constant(self._label.quantiles, answers.dtype)
            losses = tf.maximum(levels * errors, (levels - 1) * errors)
        else:
            losses = tf.square(errors)
        return tf.reduce_mean(losses, axis=1)

    def unit_change(self, before: Regression) -> tuple[Floats, Floats]:
        """Return that the label has another mean and deviation.

        Of quantiles above the lowest it holds near an output of 0 alone.
        """
        then, now = before.scale, self.scale
        if self._label.loss == "poisson":
            return np.ones(1), np.array([math.log(then.unit / now.unit)])
        factor = then.unit / now.unit
        factors, terms = np.ones(self.outputs), np.zeros(self.outputs)
        factors[0], terms[0] = factor, (then.centre - now.centre) / now.unit
        if self._label.quantiles:
            normal = [NormalDist().inv_cdf(level) for level in self._label.quantiles]
            gaps = [high - low for low, high in itertools.pairwise(normal)]
            terms[0] += (factor - 1) * normal[0]
            terms[1:] = [_inverse_softplus(factor * gap) - _inverse_softplus(gap) for gap in gaps]
        return factors, terms

    def wrong(self, values: Values) -> Mask:
        """Return which labels are missing or outside what the request says. [n] → [n]."""
        wrong: Mask = self._outside(tf.constant(np.asarray(values, np.float64))).numpy()
        return wrong

    def wrong_targets(self, targets: Values) -> Mask:
        """Return the same of targets. [n] → [n]."""
        return np.logical_not(np.isfinite(targets))

    def epoch_metrics(
        self, targets: Floats, scores: Floats, weights: Floats, metrics: Sequence[Metric]
    ) -> dict[str, float | None]:
        """Measure loss as training sees it, and metrics in the label's unit. [n], [n, outputs], [n]."""
        loss = np.average(self.losses(tf.constant(targets), tf.constant(scores)).numpy(), weights=weights)
        labels = self._in_unit(tf.constant(targets), is_label=True).numpy()
        answers = self._in_unit(tf.constant(scores)).numpy()
        measured: dict[str, float | None] = {"loss": float(loss)}
        for name in metrics:
            measured[name] = weigh_numbers(name, labels, answers, self._label.quantiles)(weights)
        return measured

    @property
    def _log1p(self) -> bool:
        return self._label.transform == "log1p"

    @property
    def _low(self) -> float | None:
        return 0.0 if self._label.loss == "poisson" and self._label.min is None else self._label.min

    def _outside(self, values: tf.Tensor) -> tf.Tensor:
        """Return which labels are missing or out of bounds; float64. [B] → [B]."""
        outside = tf.logical_not(tf.math.is_finite(values)) | (values == float(_INT64_MISSING))
        if self._low is not None:
            outside |= values < self._low
        if self._label.max is not None:
            outside |= values > self._label.max
        return outside | (values <= -1) if self._log1p else outside

    def _in_unit(self, values: tf.Tensor, *, is_label: bool = False) -> tf.Tensor:
        """Undo scale and transform of answers, or of targets; any shape."""
        most = tf.cast(_MOST_EXPONENT, values.dtype)
        if self._label.loss == "poisson" and not is_label:
            return self.scale.unit * tf.exp(tf.minimum(values, most))
        values = values * self.scale.unit + self.scale.centre
        return tf.math.expm1(tf.minimum(values, most)) if self._log1p else values


def _inverse_softplus(value: float) -> float:
    return math.log(math.expm1(value))
