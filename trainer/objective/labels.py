"""What a model learns to predict, by kind of label: values, loss, the form of its answers, what each epoch measures.

Everything that differs between two classes and several stands here; the formulas of the metrics are in `metrics.py`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import tensorflow as tf
import tf_keras

from trainer.contract.column_types import ROLE_TYPES
from trainer.contract.documents import Label, Manifest
from trainer.errors import DataError
from trainer.objective.metrics import Floats, area, hits, log_losses

Values = npt.NDArray[Any]
"""Labels as they stand in the examples. [n]"""

Mask = npt.NDArray[np.bool_]
"""[n]"""


class Labels(Protocol):
    """A kind of label.

    Attributes:
        outputs: Logits per example that a model gives.
        classes: How many; None: two, with one logit for both.
        expected: Which values are right.
    """

    outputs: int
    classes: int | None
    expected: str

    def loss(self) -> tf_keras.losses.Loss:
        """Give the loss of logits."""

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Give what the loss compares with. [B] → [B]."""

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Give probabilities. [B, outputs] → [B] of the positive class, or [B, classes]."""

    def wrong(self, values: Values) -> Mask:
        """Tell which labels are missing or no class. [n] → [n]."""

    def epoch_metrics(self, labels: Floats, scores: Floats) -> dict[str, float]:
        """Measure what is reported of each epoch, `val_loss` first; what is not defined is left out."""


def labels_of(label: Label) -> Labels:
    """Give the kind of a label."""
    return Binary() if label.kind == "binary" else Multiclass(label.classes)


class Binary:
    """0 or 1: one logit, whose sigmoid is the score."""

    outputs: int = 1
    classes: int | None = None
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

    def wrong(self, values: Values) -> Mask:
        """Tell which are neither."""
        return ~np.isin(values, (0, 1))

    def epoch_metrics(self, labels: Floats, scores: Floats) -> dict[str, float]:
        """Measure loss and AUC."""
        return _defined(val_loss=float(log_losses(labels, scores).mean()), val_auc=area(labels, scores))


class Multiclass:
    """A whole number from 0: a logit per class, whose softmax are the scores."""

    def __init__(self, classes: int) -> None:
        self.outputs: int = classes
        self.classes: int | None = classes
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

    def wrong(self, values: Values) -> Mask:
        """Tell which are no class."""
        right: Mask = (values >= 0) & (values < self.outputs) & (values == np.round(values))
        return ~right

    def epoch_metrics(self, labels: Floats, scores: Floats) -> dict[str, float]:
        """Measure loss, accuracy and AUC."""
        return _defined(
            val_loss=float(log_losses(labels, scores).mean()),
            val_accuracy=float(hits(labels, scores).mean()),
            val_auc=area(labels, scores),
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


def require_labels(label: Label, values: Values, where: str = "") -> None:
    """Check that every example has a class.

    Args:
        values: As they stand in the examples. [n]
        where: Which examples, for the message.

    Raises:
        DataError: One is missing, or is no class.
    """
    kind = labels_of(label)
    wrong = kind.wrong(values)
    if wrong.any():
        raise DataError(
            f"{where}label {label.name!r}",
            f"{int(wrong.sum())} examples are missing it or have another value",
            kind.expected,
            "Filter them in the query",
        )
