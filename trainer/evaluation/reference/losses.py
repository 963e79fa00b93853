"""The losses that reference lines are fitted by: where a score starts, its slope and curvature, what is answered.

A score is what linear models and trees add up: log odds, logarithms of chances less a constant, of a number the
standardised label, of a count its logarithm. [n, outputs] throughout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from trainer.contract.documents import Label
from trainer.objective.labels import class_count
from trainer.objective.metrics import Floats

_FARTHEST = 30.0
"""A score's distance from 0: exp stays finite."""
_LEAST_CURVATURE = 1e-6


class Loss(Protocol):
    """A loss of scores."""

    @property
    def outputs(self) -> int:
        """Scores per row."""

    @property
    def bound(self) -> float:
        """What no curvature exceeds."""

    def start(self) -> Floats:
        """Return the best score without features. [outputs]."""

    def losses(self, scores: Floats, labels: Floats) -> Floats:
        """Return each row's loss. [n, outputs], [n] → [n]."""

    def slopes(self, scores: Floats, labels: Floats) -> Floats:
        """Return the negative slopes. [n, outputs], [n] → [n, outputs]."""

    def curvatures(self, scores: Floats) -> Floats:
        """Return the curvatures. [n, outputs] → [n, outputs]."""

    def answers(self, scores: Floats) -> Floats:
        """Return answers as a model gives them. [n, outputs] → [n] or [n, classes]."""


def loss_of(label: Label, labels: Floats, weights: Floats) -> Loss:
    """Return the loss of a label: whatever numbers are trained by, lines go by squares, of counts by Poisson's.

    Args:
        label: Of the model.
        labels: Of the rows that lines are fitted on. [n]
        weights: Their weights. [n]
    """
    if label.kind == "multiclass":
        counts = np.bincount(labels.astype(np.intp), weights, minlength=class_count(label))
        return Softmax(shares=(counts + 1) / (counts.sum() + class_count(label)))
    mean = float(np.average(labels, weights=weights))
    if label.kind == "binary":
        return Logistic(share=float(np.clip(mean, 1e-6, 1 - 1e-6)))
    if label.loss == "poisson":
        return Poisson(mean=max(mean, 1e-6))
    is_log = label.transform == "log1p"
    seen = np.log1p(np.maximum(labels, 0)) if is_log else labels
    middle = float(np.average(seen, weights=weights))
    deviation = float(np.sqrt(np.average((seen - middle) ** 2, weights=weights)))
    return Squared(mean=middle, deviation=deviation or 1.0, is_log=is_log)


@dataclass(frozen=True, kw_only=True)
class Squared:
    """Squares of a standardised number, or of ln(1 + number)."""

    mean: float
    deviation: float
    is_log: bool
    outputs: int = 1
    bound: float = 1.0

    def start(self) -> Floats:
        """Return the mean."""
        return np.zeros(1)

    def losses(self, scores: Floats, labels: Floats) -> Floats:
        """Return half the squares."""
        return (self._targets(labels) - scores[:, 0]) ** 2 / 2

    def slopes(self, scores: Floats, labels: Floats) -> Floats:
        """Return the residuals."""
        return self._targets(labels)[:, None] - scores

    def curvatures(self, scores: Floats) -> Floats:
        """Return ones."""
        return np.ones_like(scores)

    def answers(self, scores: Floats) -> Floats:
        """Return numbers in the label's unit."""
        numbers = scores[:, 0] * self.deviation + self.mean
        return np.expm1(np.minimum(numbers, 2 * _FARTHEST)) if self.is_log else numbers

    def _targets(self, labels: Floats) -> Floats:
        seen = np.log1p(np.maximum(labels, 0)) if self.is_log else labels
        return (seen - self.mean) / self.deviation


@dataclass(frozen=True, kw_only=True)
class Poisson:
    """Of counts: the score is the logarithm of the mean."""

    mean: float
    outputs: int = 1
    bound: float = np.inf

    def start(self) -> Floats:
        """Return the mean's logarithm."""
        return np.array([np.log(self.mean)])

    def losses(self, scores: Floats, labels: Floats) -> Floats:
        """Return the negative log likelihood, without what no score changes."""
        near = _near(scores)
        return np.exp(near[:, 0]) - labels * near[:, 0]

    def slopes(self, scores: Floats, labels: Floats) -> Floats:
        """Return label minus mean."""
        return labels[:, None] - np.exp(_near(scores))

    def curvatures(self, scores: Floats) -> Floats:
        """Return the means."""
        return np.maximum(np.exp(_near(scores)), _LEAST_CURVATURE)

    def answers(self, scores: Floats) -> Floats:
        """Return the means."""
        return np.exp(_near(scores))[:, 0]


@dataclass(frozen=True, kw_only=True)
class Logistic:
    """Of two classes: the score is the log odds of 1."""

    share: float
    outputs: int = 1
    bound: float = 0.25

    def start(self) -> Floats:
        """Return the log odds of the share of 1."""
        return np.array([np.log(self.share / (1 - self.share))])

    def losses(self, scores: Floats, labels: Floats) -> Floats:
        """Return the log losses."""
        return np.logaddexp(0, scores[:, 0]) - labels * scores[:, 0]

    def slopes(self, scores: Floats, labels: Floats) -> Floats:
        """Return label minus chance."""
        return labels[:, None] - self._chances(scores)

    def curvatures(self, scores: Floats) -> Floats:
        """Return the labels' variances."""
        chances = self._chances(scores)
        return np.maximum(chances * (1 - chances), _LEAST_CURVATURE)

    def answers(self, scores: Floats) -> Floats:
        """Return the chances of 1."""
        return self._chances(scores)[:, 0]

    def _chances(self, scores: Floats) -> Floats:
        return 1 / (1 + np.exp(-_near(scores)))


@dataclass(frozen=True, kw_only=True)
class Softmax:
    """Of several classes: a score each.

    The bound is that of Böhning, Multinomial logistic regression algorithm, 1992, Annals of the Institute of
    Statistical Mathematics 44.
    """

    shares: Floats
    bound: float = 0.5

    @property
    def outputs(self) -> int:
        """One per class."""
        return len(self.shares)

    def start(self) -> Floats:
        """Return the logarithms of the shares."""
        return np.log(self.shares)

    def losses(self, scores: Floats, labels: Floats) -> Floats:
        """Return the log losses."""
        highest = scores.max(axis=1)
        total = highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1))
        losses: Floats = total - scores[np.arange(len(labels)), labels.astype(np.intp)]
        return losses

    def slopes(self, scores: Floats, labels: Floats) -> Floats:
        """Return 1 for the label's class, minus the chances."""
        slopes = -self.answers(scores)
        slopes[np.arange(len(labels)), labels.astype(np.intp)] += 1
        return slopes

    def curvatures(self, scores: Floats) -> Floats:
        """Return each class's variance."""
        chances = self.answers(scores)
        return np.maximum(chances * (1 - chances), _LEAST_CURVATURE)

    def answers(self, scores: Floats) -> Floats:
        """Return the chances."""
        odds: Floats = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances: Floats = odds / odds.sum(axis=1, keepdims=True)
        return chances


def _near(scores: Floats) -> Floats:
    return np.clip(scores, -_FARTHEST, _FARTHEST)
