"""Several labels of one model: the label, and auxiliary ones that are trained beside it.

The architecture is asked for as many logits as all labels need: the label's come first, then each auxiliary label's,
and each reads its own. So every label has weights of its own in the last layer, and all share the layers before it.

    loss = loss of the label + Σ weight * loss of an auxiliary label

An auxiliary label may be missing: that example adds nothing to its loss, and is not measured. Targets are a column for
each label then, NaN for missing; without auxiliary labels they are what the label's own kind gives.

Where examples have weights these are the last column of the targets, and an example's loss is multiplied by its weight
over the training split's mean weight, so that the loss keeps its size whatever the unit of the weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
import tf_keras

from trainer.contract.documents import Label, Statistics, WeightedLabel
from trainer.errors import DataError, RequestError
from trainer.objective.labels import Labels, labels_of, require_labels, require_weights
from trainer.objective.members import MembersLoss
from trainer.objective.metrics import Floats, Values

_INT64_MISSING = np.iinfo(np.int64).min


@dataclass(frozen=True, kw_only=True)
class Auxiliary:
    """A label beside the one that decides.

    Attributes:
        label: As requested.
        weight: Of its loss.
        kind: What it is.
    """

    label: Label
    weight: float
    kind: Labels

    @classmethod
    def of(cls, weighted: WeightedLabel, statistics: Statistics | None = None) -> Auxiliary:
        """Return a request's.

        Raises:
            DataError: A number of which the statistics say nothing.
        """
        return cls(label=weighted.label, weight=weighted.weight, kind=labels_of(weighted.label, statistics))

    def targets(self, column: tf.Tensor) -> tf.Tensor:
        """Return what the loss compares with, NaN for missing; a wrong number is infinite. [B] → float32 [B]."""
        missing = column == _INT64_MISSING if column.dtype == tf.int64 else tf.math.is_nan(column)
        values = tf.cast(self.kind.targets(column), tf.float32)
        wrong = tf.where(tf.math.is_nan(values), np.inf, values)
        return tf.where(missing, np.nan, wrong)

    def losses(self, targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Return each example's loss, 0 for a missing label. [B], [B, outputs] → [B]."""
        missing = tf.math.is_nan(targets)
        # A gradient through NaN would be NaN, also where it is not chosen.
        losses = _losses(self.kind, tf.where(missing, tf.zeros_like(targets), targets), logits)
        return tf.where(missing, tf.zeros_like(losses), losses)


@dataclass(frozen=True, kw_only=True)
class Weighting:
    """How much examples count.

    Attributes:
        column: That says it.
        mean: Over the training split.
    """

    column: str
    mean: float

    @classmethod
    def of(cls, column: str | None, statistics: Statistics | None) -> Weighting | None:
        """Return a request's; None: all count the same."""
        if column is None:
            return None
        counted = statistics.splits["train"].weight if statistics else None
        return cls(column=column, mean=(counted.mean if counted else None) or 1.0)


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What a model learns: the label that decides, and the auxiliary ones.

    Attributes:
        label: As requested.
        kind: What it is.
        auxiliary: Beside it.
        weighting: How much examples count; None: all the same.
    """

    label: Label
    kind: Labels
    auxiliary: tuple[Auxiliary, ...] = ()
    weighting: Weighting | None = None

    @property
    def outputs(self) -> int:
        """Logits per example."""
        return sum(self._widths)

    @property
    def kinds(self) -> list[Labels]:
        """The labels, the one that decides first."""
        return [self.kind, *(item.kind for item in self.auxiliary)]

    @property
    def _widths(self) -> list[int]:
        return [kind.outputs for kind in self.kinds]

    @property
    def _is_plain(self) -> bool:
        """Whether targets are what the label's own kind gives."""
        return not self.auxiliary and self.weighting is None

    def loss(self) -> tf_keras.losses.Loss:
        """Return the loss of all logits."""
        return MembersLoss(self.kind.loss() if self._is_plain else _JointLoss(self))

    @property
    def labels(self) -> list[Label]:
        """All labels."""
        return [self.label, *(item.label for item in self.auxiliary)]

    def targets(self, columns: Mapping[str, tf.Tensor]) -> tf.Tensor:
        """Return what the loss compares with. [B] each → [B], or float32 [B, labels] with the weight as one more."""
        targets = self.kind.targets(columns[self.label.name])
        if self._is_plain:
            return targets
        others = [item.targets(columns[item.label.name]) for item in self.auxiliary]
        weights = [tf.cast(columns[self.weighting.column], tf.float32)] if self.weighting else []
        return tf.stack([tf.cast(targets, tf.float32), *others, *weights], axis=1)

    def losses(self, targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Return each example's loss over all labels, times its weight. [B, columns], [B, outputs] → [B]."""
        width, parts = len(self.kinds) + bool(self.weighting), self.parts(logits)
        columns = tf.unstack(targets, num=width, axis=1)
        total = _losses(self.kind, columns[0], parts[0])
        for item, target, part in zip(self.auxiliary, columns[1 : len(parts)], parts[1:], strict=True):
            total += item.weight * item.losses(target, part)
        return total * columns[-1] / self.weighting.mean if self.weighting else total

    def parts(self, logits: tf.Tensor) -> list[tf.Tensor]:
        """Return each label's own. [B, outputs] → [B, its outputs] each; of members [B, members, …].

        Raises:
            RequestError: The architecture gives another number of logits.
        """
        if not self.auxiliary:
            return [logits]
        if logits.shape[-1] != self.outputs:
            raise RequestError(
                "training.model",
                f"{logits.shape[-1]} logits per example",
                f"{self.outputs}, for the label and {len(self.auxiliary)} auxiliary ones",
                "Let the architecture's build give as many logits as it is asked for, or remove auxiliary_labels",
            )
        parts: list[tf.Tensor] = tf.split(logits, self._widths, axis=-1)
        return parts

    def unit_change(self, before: Objective) -> tuple[Floats, Floats]:
        """Return what logits of an earlier training of the same labels are multiplied by, and what is added.

        [outputs] each.
        """
        pairs = [kind.unit_change(other) for kind, other in zip(self.kinds, before.kinds, strict=True)]
        return np.concatenate([factors for factors, _ in pairs]), np.concatenate([terms for _, terms in pairs])

    def auxiliary_scores(self, logits: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the auxiliary labels' answers, by name. [B, outputs] → [B], or [B, classes or quantiles], each."""
        parts = self.parts(logits)[1:]
        return {item.label.name: item.kind.scores(part) for item, part in zip(self.auxiliary, parts, strict=True)}

    def scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return the label's answers. [B, outputs] → [B], or [B, classes or quantiles]."""
        return self.kind.scores(self.parts(logits)[0])

    def epoch_scores(self, logits: tf.Tensor) -> tf.Tensor:
        """Return what `epoch_metrics` takes. → [B] or [B, outputs]."""
        if not self.auxiliary:
            return self.kind.epoch_scores(logits)
        pairs = zip(self.kinds, self.parts(logits), strict=True)
        return tf.concat([tf.reshape(kind.epoch_scores(part), [-1, kind.outputs]) for kind, part in pairs], axis=1)

    def epoch_metrics(self, targets: Floats, scores: Floats, asked: str | None = None) -> dict[str, float]:
        """Measure what is reported of each epoch: the label's as `val_<metric>`, others' as `val_<label>_<metric>`.

        Args:
            targets: What `targets` gave. [n] or [n, columns]
            scores: What `epoch_scores` gave. [n] or [n, outputs]
            asked: A metric to measure beside those that always are; one that is of no label here is not.
        """
        weights = np.asarray(targets[:, -1], np.float64) if self.weighting else np.ones(len(targets))
        labels = targets if self._is_plain else targets[:, 0]
        if not self.auxiliary:
            return _epoch_metrics(self.kind, (labels, scores, weights), "val_", asked)
        starts = [0, *itertools.accumulate(self._widths)]
        parts = [scores[:, start:end] for start, end in itertools.pairwise(starts)]
        metrics = _epoch_metrics(self.kind, (labels, parts[0], weights), "val_", asked)
        for place, item in enumerate(self.auxiliary, start=1):
            known = ~np.isnan(targets[:, place])
            if weights[known].any():
                rows = targets[known, place], parts[place][known], weights[known]
                metrics |= _epoch_metrics(item.kind, rows, f"val_{item.label.name}_", asked)
        return metrics

    def require_labels(self, targets: Values, where: str) -> None:
        """Check that every example has a right label, right auxiliary ones or none, and a right weight.

        Args:
            targets: What `targets` gave. [n] or [n, columns]
            where: Which examples, for the message.

        Raises:
            DataError: One is wrong.
        """
        require_labels(self.label, targets if self._is_plain else targets[:, 0], where, targets=True)
        if self.weighting:
            require_weights(self.weighting.column, targets[:, -1], where)
        for place, item in enumerate(self.auxiliary, start=1):
            known = targets[~np.isnan(targets[:, place]), place]
            if wrong := int(item.kind.wrong_targets(known).sum()):
                raise DataError(
                    f"{where}auxiliary label {item.label.name!r}",
                    f"{wrong} examples have another value",
                    f"{item.kind.expected}, or NULL",
                    "Make them NULL in the query",
                )


class _JointLoss(tf_keras.losses.Loss):  # type: ignore[misc]  # Keras has no types
    """The loss of all labels together."""

    def __init__(self, objective: Objective) -> None:
        super().__init__(name="loss")
        self._objective = objective

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Return each example's. [B, labels], [B, outputs] → [B]."""
        return self._objective.losses(y_true, y_pred)


def objective_of(
    label: Label,
    auxiliary: Sequence[WeightedLabel] = (),
    statistics: Statistics | None = None,
    weight: str | None = None,
) -> Objective:
    """Return what a request wants learnt.

    Raises:
        DataError: A number of which the statistics say nothing.
    """
    others = tuple(Auxiliary.of(item, statistics) for item in auxiliary)
    weighting = Weighting.of(weight, statistics)
    return Objective(label=label, kind=labels_of(label, statistics), auxiliary=others, weighting=weighting)


def _epoch_metrics(
    kind: Labels, rows: tuple[Floats, Floats, Floats], prefix: str, asked: str | None
) -> dict[str, float]:
    """Measure one label's targets, scores and weights, `loss` first; what is not defined is left out."""
    names = [*kind.of_epoch, *(metric for metric in kind.if_asked if prefix + metric == asked)]
    measured = kind.epoch_metrics(*rows, names)
    return {prefix + name: value for name, value in measured.items() if value is not None}


def _losses(kind: Labels, targets: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """Return each example's loss of one label. [B], [B, outputs] → [B]."""
    return kind.loss().call(targets[:, tf.newaxis], logits)
