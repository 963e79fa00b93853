"""From which score on a binary answer is a yes: chosen on one split, and measured on another.

Label y ∈ {0, 1}, score p [n], weight w; at a threshold t, yes is p ≥ t:

| rate | formula |
|---|---|
| precision | Σ w [p ≥ t] y / Σ w [p ≥ t] |
| recall | Σ w [p ≥ t] y / Σ w y |
| f1 | 2 Σ w [p ≥ t] y / (Σ w [p ≥ t] + Σ w y) |

A threshold is chosen among the scores that occur, and one above all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainer.contract.documents import AtThreshold, ThresholdRule
from trainer.objective.bootstrap import Resampling, bootstrap_estimates
from trainer.objective.metrics import Floats, Ranking, Values, Weighing, weights_by_score


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A threshold, or None where none obeys the rule; and a sentence about it."""

    threshold: float | None
    message: str


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """What each threshold reaches, the highest first; a rate that is not defined is 0. [n_thresholds] each."""

    thresholds: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    false_positives: Floats
    false_negatives: Floats

    @classmethod
    def of(cls, labels: Floats, scores: Floats, weights: Floats) -> _Curve:
        ranking = Ranking.of(scores)
        positive, _ = weights_by_score(labels, ranking, weights)
        negative, _ = weights_by_score(1 - labels, ranking, weights)  # their difference would leave rounding errors
        found = np.concatenate([[0.0], np.cumsum(positive[::-1])])
        raised = np.concatenate([[0.0], np.cumsum(negative[::-1])])
        distinct = scores[ranking.positions][ranking.starts][::-1]
        return cls(
            thresholds=np.concatenate([[np.nextafter(distinct[0], np.inf)], distinct]),
            precision=_ratio(found, found + raised),
            recall=_ratio(found, np.full_like(found, found[-1])),
            f1=_ratio(2 * found, found + raised + found[-1]),
            false_positives=raised,
            false_negatives=found[-1] - found,
        )

    def describe(self, place: int) -> str:
        """Say what a threshold reaches."""
        reached = f"precision {self.precision[place]:.4g}, recall {self.recall[place]:.4g}, F1 {self.f1[place]:.4g}"
        return f"{reached} at {self.thresholds[place]:.6g}"


def choose_threshold(rule: ThresholdRule, labels: Floats, scores: Floats, weights: Floats | None = None) -> Choice:
    """Choose by a rule; of thresholds that are equally good the highest.

    Args:
        rule: Another than a number.
        labels: At least one. [n]
        scores: [n]
        weights: None: all count the same. [n]
    """
    scores = np.asarray(scores, np.float64)  # what lies just above all of them has no float32
    curve = _Curve.of(labels, scores, np.ones(len(labels)) if weights is None else weights)
    name, wanted, best = _aims(rule, curve)
    where = f"on {len(labels)} validation examples"
    allowed = wanted >= (rule.at or np.nextafter(0, 1))
    if not allowed.any():
        return Choice(
            threshold=None, message=f"{name} {where}: none reaches it, {curve.describe(int(wanted.argmax()))}"
        )
    place = int(np.argmax(np.where(allowed, best, -np.inf)))
    return Choice(threshold=float(curve.thresholds[place]), message=f"{name} {where}: {curve.describe(place)}")


def _aims(rule: ThresholdRule, curve: _Curve) -> tuple[str, Floats, Floats]:
    """Return the rule's name, what must be reached, and what is as great as can be then. [n_thresholds] each."""
    if rule.rule == "costs":
        wrong, missed = rule.false_positive or 0.0, rule.false_negative or 0.0
        costs = wrong * curve.false_positives + missed * curve.false_negatives
        return f"least cost of errors at {wrong:g} and {missed:g}", np.ones_like(costs), -costs
    if rule.rule == "max_f1":
        return "max_f1", curve.f1, curve.f1
    rates = curve.recall, curve.precision
    wanted, best = rates if rule.rule == "recall" else rates[::-1]
    return f"{rule.rule}>={rule.at:g}", wanted, best


def measure_at(threshold: float, labels: Floats, scores: Floats, resampling: Resampling) -> AtThreshold:
    """Return one model's rates with their intervals, and its confusion. [n], [n]."""
    yes, positive, every = np.asarray(scores, np.float64) >= threshold, labels == 1, resampling.whole(len(labels))
    rates = {
        "precision": _share(yes & positive, yes),
        "recall": _share(yes & positive, positive),
        "f1": _share(2.0 * (yes & positive), yes.astype(np.float64) + positive),
    }
    estimates = bootstrap_estimates(len(labels), list(rates.values()), resampling)
    return AtThreshold(
        **dict(zip(rates, estimates, strict=True)),
        true_positives=float(every @ (yes & positive)),
        false_positives=float(every @ (yes & ~positive)),
        false_negatives=float(every @ (~yes & positive)),
        true_negatives=float(every @ (~yes & ~positive)),
    )


def _share(part: Values, whole: Values) -> Weighing:
    """Return the function from weights to a share; None of nothing. [n], [n]."""

    def share(weights: Floats) -> float | None:
        total = weights @ whole
        return float(weights @ part / total) if total > 0 else None

    return share


def _ratio(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
