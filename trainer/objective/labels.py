"""What a model learns to predict, by kind of label: values, loss, the form of its answers, what each epoch measures.

Everything that differs between two classes and several stands here, numbers are in `regression.py`; the formulas of the
metrics are in `metrics.py` and `number_metrics.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol, Self

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.contract.column_types import ROLE_TYPES
from trainer.contract.documents import BinaryLabel, Label, Manifest, Metric, MulticlassLabel, Statistics
from trainer.contract.metrics import IF_ASKED, OF_EPOCH
from trainer.errors import DataError
from trainer.objective.answers import SCORE, SCORES, Answers
from trainer.objective.class_metrics import defined, weigh_scores
from trainer.objective.costs import Costs, cost_matrix
from trainer.objective.members import mean_of_members
from trainer.objective.metrics import Floats, Mask, Values
from trainer.objective.regression import Regression, Scale

WEIGHTS = "a finite number from 0 on"


class Labels(Protocol):
    """A kind of label.

    Attributes:
        outputs: Logits per example that a model gives.
        base: What is added to each of them before anything is made of it.
        answers: The form of what is made of them.
        expected: Which values are right.
        of_epoch: Metrics that each epoch reports, beside the loss.
        if_asked: Further ones, measured where a trial reports one of them.
    """

    outputs: int
    base: tuple[float, ...]
    answers: Answers
    expected: str
    of_epoch: tuple[Metric, ...]
    if_asked: tuple[Metric, ...]

    def loss(self) -> tf_keras.losses.Loss:
        """Return the loss of logits."""

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Return what the loss compares with. [B] → [B]."""

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return answers. [B, outputs] → [B] (of the positive class, or a number), or [B, classes or quantiles]."""

    def epoch_scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return what `epoch_metrics` takes. [B, outputs] → [B] or [B, outputs]."""

    def unit_change(self, before: Self) -> tuple[Floats, Floats]:
        """Return what logits of an earlier training are multiplied by, and what is added, to answer the same here.

        Args:
            before: The same kind of label, with that training's statistics.

        Returns:
            [outputs] each.
        """

    def wrong(self, values: Values) -> Mask:
        """Return which labels are missing or wrong. [n] → [n]."""

    def wrong_targets(self, targets: Values) -> Mask:
        """Return the same of what `targets` gave. [n] → [n]."""

    def epoch_metrics(
        self, targets: Floats, scores: Floats, weights: Floats, metrics: Sequence[Metric]
    ) -> dict[str, float | None]:
        """Measure the loss, and some of its metrics; None is not defined."""


def labels_of(label: Label, statistics: Statistics | None = None) -> Labels:
    """Return the kind of a label.

    Args:
        label: Of the model.
        statistics: Of the run; a training needs them.

    Raises:
        DataError: They say nothing of a number.
    """
    if label.kind == "regression":
        return Regression(label, Scale.of(label, statistics) if statistics else None)
    if label.kind == "binary":
        return Binary(_base_rate(label, statistics), label.classes or (), cost_matrix(label))
    names = () if isinstance(label.classes, int) else label.classes
    return Multiclass(class_count(label), _class_shares(label, statistics), names, cost_matrix(label))


def class_count(label: MulticlassLabel) -> int:
    """Return how many classes there are."""
    return label.classes if isinstance(label.classes, int) else len(label.classes)


def _base_rate(label: BinaryLabel, statistics: Statistics | None) -> float:
    """Return the share of 1 in the training split, never 0 or 1; where nothing is known of it, a half."""
    train = statistics.splits["train"] if statistics else None
    known = train.auxiliary_labels.get(label.name, train.label) if train else None
    if train is None or known is None or known.mean is None:
        return 0.5
    return (known.mean * train.rows + 1) / (train.rows + 2)


def _class_shares(label: MulticlassLabel, statistics: Statistics | None) -> tuple[float, ...]:
    """Return the share of each class in the training split, never 0; where nothing is known of it, equal ones."""
    train = statistics.splits["train"] if statistics else None
    known = train.auxiliary_labels.get(label.name, train.label) if train else None
    classes = class_count(label)
    counts = known.counts if known and known.counts and len(known.counts) == classes else (0,) * classes
    return tuple((count + 1) / (sum(counts) + classes) for count in counts)


class _FromShares(tf_keras.losses.Loss):  # type: ignore[misc]  # Keras has no types
    """A loss of logits that are counted from those of the classes' shares.

    Args:
        inner: Of whole logits.
        whole: From a model's logits to whole ones.
    """

    def __init__(self, inner: tf_keras.losses.Loss, whole: Callable[[tf.Tensor], tf.Tensor]) -> None:
        super().__init__(name="loss")
        self._inner, self._whole = inner, whole

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Return each example's. [B, 1], [B, outputs] → [B]."""
        return self._inner.call(y_true, self._whole(y_pred))


class Binary:
    """0 or 1: one logit, whose sigmoid is the score.

    A model's logits are counted from that of the training split's share of 1, so that it begins with the share as its
    answer and need not learn it first: Karpathy, A Recipe for Training Neural Networks, 2019,
    https://karpathy.github.io/2019/04/25/recipe/

    Args:
        share: Of 1; only training and its model need it.
        names: Of 0 and 1.
        costs: Of the label; None: it has none.
    """

    outputs: int = 1
    expected: str = "0 or 1"
    of_epoch: tuple[Metric, ...] = OF_EPOCH["binary"]

    def __init__(self, share: float = 0.5, names: tuple[str, ...] = (), costs: Costs | None = None) -> None:
        self._costs = costs
        self.if_asked: tuple[Metric, ...] = defined(IF_ASKED["binary"], 2, costs)
        self.base: tuple[float, ...] = (math.log(share / (1 - share)),)
        self.answers = Answers(output=SCORE, names=names)

    def loss(self) -> tf_keras.losses.Loss:
        """Return binary cross-entropy."""
        return _FromShares(tf_keras.losses.BinaryCrossentropy(from_logits=True), self._whole)

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Return float32."""
        return tf.cast(column, tf.float32)

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return the probability of 1."""
        return mean_of_members(tf.sigmoid(self._whole(logits)))[:, 0]

    def _whole(self, logits: tf.Tensor) -> tf.Tensor:
        return logits + tf.constant(self.base, logits.dtype)

    epoch_scores = scores

    def unit_change(self, before: Binary) -> tuple[Floats, Floats]:
        """Return that logits are counted from another share."""
        return np.ones(1), np.array(before.base) - np.array(self.base)

    def wrong(self, values: Values) -> Mask:
        """Return which are neither."""
        return ~np.isin(values, (0, 1))

    wrong_targets = wrong

    def epoch_metrics(
        self, targets: Floats, scores: Floats, weights: Floats, metrics: Sequence[Metric]
    ) -> dict[str, float | None]:
        """Measure loss and metrics. [n], [n] or [n, 1], [n]."""
        return _measure_classes(targets, scores.reshape(-1), weights, metrics, self._costs)


class Multiclass:
    """A whole number from 0: a logit per class, whose softmax are the scores.

    Args:
        shares: Of each class, as `Binary` has one; only training and its model need them.
        names: Of the classes.
        costs: Of the label; None: it has none.
    """

    of_epoch: tuple[Metric, ...] = OF_EPOCH["multiclass"]

    def __init__(
        self,
        classes: int,
        shares: tuple[float, ...] = (),
        names: tuple[str, ...] = (),
        costs: Costs | None = None,
    ) -> None:
        self._costs = costs
        self.base: tuple[float, ...] = tuple(math.log(share) for share in shares or (1 / classes,) * classes)
        self.outputs: int = classes
        self.answers = Answers(output=SCORES, classes=classes, names=names)
        self.if_asked: tuple[Metric, ...] = defined(IF_ASKED["multiclass"], classes, costs)
        self.expected: str = f"a whole number from 0 to {classes - 1}"

    def loss(self) -> tf_keras.losses.Loss:
        """Return cross-entropy of the class."""
        return _FromShares(tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True), self._whole)

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Return int64."""
        return tf.cast(column, tf.int64)

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return the probability of each class."""
        return mean_of_members(tf.nn.softmax(self._whole(logits)))

    def _whole(self, logits: tf.Tensor) -> tf.Tensor:
        return logits + tf.constant(self.base, logits.dtype)

    epoch_scores = scores

    def unit_change(self, before: Multiclass) -> tuple[Floats, Floats]:
        """Return that logits are counted from other shares."""
        return np.ones(self.outputs), np.array(before.base) - np.array(self.base)

    def wrong(self, values: Values) -> Mask:
        """Return which are no class."""
        right: Mask = (values >= 0) & (values < self.outputs) & (values == np.round(values))
        return ~right

    wrong_targets = wrong

    def epoch_metrics(
        self, targets: Floats, scores: Floats, weights: Floats, metrics: Sequence[Metric]
    ) -> dict[str, float | None]:
        """Measure loss and metrics. [n], [n, outputs], [n]."""
        return _measure_classes(targets, scores, weights, metrics, self._costs)


def _measure_classes(
    targets: Floats, scores: Floats, weights: Floats, metrics: Sequence[Metric], costs: Costs | None
) -> dict[str, float | None]:
    names: dict[str, Metric] = {"loss": "log_loss", **{metric: metric for metric in metrics}}
    return {name: weigh_scores(metric, targets, scores, costs)(weights) for name, metric in names.items()}


def label_type(label: Label, manifest: Manifest) -> str:
    """Return the label column's type.

    Raises:
        DataError: There is no such column, or its type has no such values.
    """
    return _column_type(f"label {label.name!r}", label.name, label.kind, labels_of(label).expected, manifest)


def weight_type(column: str, manifest: Manifest) -> str:
    """Return the type of the column that says how much an example counts.

    Raises:
        DataError: There is no such column, or its type has no such values.
    """
    return _column_type(f"weight {column!r}", column, "weight", WEIGHTS, manifest)


def _column_type(where: str, name: str, role: str, expected: str, manifest: Manifest) -> str:
    type_ = next((column.type for column in manifest.columns if column.name == name), None)
    if type_ not in ROLE_TYPES[role]:
        raise DataError(
            where,
            f"column of type {type_}" if type_ else "no such column",
            f"{' or '.join(ROLE_TYPES[role])}, {expected}",
            "CAST it in the query" if type_ else "Add it to the query",
        )
    return type_


def require_labels(label: Label, values: Values, where: str = "", *, targets: bool = False) -> None:
    """Check that every example has a right label.

    Args:
        values: As they stand in the examples. [n]
        where: Which examples, for the message.
        targets: Whether they are what `Labels.targets` gave.

    Raises:
        DataError: One is missing or wrong.
    """
    kind = labels_of(label)
    wrong = kind.wrong_targets(values) if targets else kind.wrong(values)
    _require_none(wrong, f"{where}label {label.name!r}", kind.expected)


def require_weights(column: str, values: Values, where: str = "") -> None:
    """Check that every example has a right weight.

    Args:
        column: That says it.
        values: [n]
        where: Which examples, for the message.

    Raises:
        DataError: One is missing, negative or infinite.
    """
    _require_none(~(np.isfinite(values) & (values >= 0)), f"{where}weight {column!r}", WEIGHTS)


def _require_none(wrong: Mask, where: str, expected: str) -> None:
    if wrong.any():
        found = f"{int(wrong.sum())} examples are missing it or have another value"
        raise DataError(where, found, expected, "Filter them in the query")
