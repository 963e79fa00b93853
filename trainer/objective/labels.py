"""What a model learns to predict, by kind of label: values, loss, the form of its answers, what each epoch measures.

Everything that differs between two classes and several stands here, numbers are in `regression.py`; the formulas of the
metrics are in `metrics.py` and `number_metrics.py`.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.contract.column_types import ROLE_TYPES
from trainer.contract.documents import Label, Manifest, Statistics
from trainer.errors import DataError
from trainer.objective.answers import SCORE, SCORES, Answers
from trainer.objective.metrics import Floats, Mask, Values, area, hits, log_losses
from trainer.objective.regression import Regression, Scale


class Labels(Protocol):
    """A kind of label.

    Attributes:
        outputs: Logits per example that a model gives.
        answers: The form of what is made of them.
        expected: Which values are right.
    """

    outputs: int
    answers: Answers
    expected: str

    def loss(self) -> tf_keras.losses.Loss:
        """Give the loss of logits."""

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Give what the loss compares with. [B] → [B]."""

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Give answers. [B, outputs] → [B] (of the positive class, or a number), or [B, classes or quantiles]."""

    def epoch_scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Give what `epoch_metrics` takes. [B, outputs] → [B] or [B, outputs]."""

    def wrong(self, values: Values) -> Mask:
        """Tell which labels are missing or wrong. [n] → [n]."""

    def wrong_targets(self, targets: Values) -> Mask:
        """Tell the same of what `targets` gave. [n] → [n]."""

    def epoch_metrics(self, targets: Floats, scores: Floats) -> dict[str, float]:
        """Measure what is reported of each epoch, `val_loss` first; what is not defined is left out."""


def labels_of(label: Label, statistics: Statistics | None = None) -> Labels:
    """Give the kind of a label.

    Args:
        label: Of the model.
        statistics: Of the run; a training needs them.

    Raises:
        DataError: They say nothing of a number.
    """
    if label.kind == "regression":
        return Regression(label, Scale.of(label, statistics) if statistics else None)
    return Binary() if label.kind == "binary" else Multiclass(label.classes)


class Binary:
    """0 or 1: one logit, whose sigmoid is the score."""

    outputs: int = 1
    answers = Answers(output=SCORE)
    expected: str = "0 or 1"

    def loss(self) -> tf_keras.losses.Loss:
        """Give binary cross-entropy."""
        return tf_keras.losses.BinaryCrossentropy(from_logits=True)

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Give float32."""
        return tf.cast(column, tf.float32)

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Give the probability of 1."""
        return tf.sigmoid(logits)[:, 0]

    epoch_scores = scores

    def wrong(self, values: Values) -> Mask:
        """Tell which are neither."""
        return ~np.isin(values, (0, 1))

    wrong_targets = wrong

    def epoch_metrics(self, targets: Floats, scores: Floats) -> dict[str, float]:
        """Measure loss and AUC. [n], [n] or [n, 1]."""
        scores = scores.reshape(-1)
        return _defined(val_loss=float(log_losses(targets, scores).mean()), val_auc=area(targets, scores))


class Multiclass:
    """A whole number from 0: a logit per class, whose softmax are the scores."""

    def __init__(self, classes: int) -> None:
        self.outputs: int = classes
        self.answers = Answers(output=SCORES, classes=classes)
        self.expected: str = f"a whole number from 0 to {classes - 1}"

    def loss(self) -> tf_keras.losses.Loss:
        """Give cross-entropy of the class."""
        return tf_keras.losses.SparseCategoricalCrossentropy(from_logits=True)

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Give int64."""
        return tf.cast(column, tf.int64)

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Give the probability of each class."""
        return tf.nn.softmax(logits)

    epoch_scores = scores

    def wrong(self, values: Values) -> Mask:
        """Tell which are no class."""
        right: Mask = (values >= 0) & (values < self.outputs) & (values == np.round(values))
        return ~right

    wrong_targets = wrong

    def epoch_metrics(self, targets: Floats, scores: Floats) -> dict[str, float]:
        """Measure loss, accuracy and AUC."""
        return _defined(
            val_loss=float(log_losses(targets, scores).mean()),
            val_accuracy=float(hits(targets, scores).mean()),
            val_auc=area(targets, scores),
        )


def _defined(**metrics: float | None) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if value is not None}


def label_type(label: Label, manifest: Manifest) -> str:
    """Give the label column's type.

    Raises:
        DataError: There is no such column, or its type has no such values.
    """
    type_ = next((column.type for column in manifest.columns if column.name == label.name), None)
    if type_ not in ROLE_TYPES[label.kind]:
        raise DataError(
            f"label {label.name!r}",
            f"column of type {type_}" if type_ else "no such column",
            f"{' or '.join(ROLE_TYPES[label.kind])}, {labels_of(label).expected}",
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
    if wrong.any():
        raise DataError(
            f"{where}label {label.name!r}",
            f"{int(wrong.sum())} examples are missing it or have another value",
            kind.expected,
            "Filter them in the query",
        )
