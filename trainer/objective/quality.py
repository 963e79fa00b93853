"""A model's metrics, by the kind of the label; and how often it answers what, for the monitor to hold requests against.

Numbers are counted in bins with about as many answers each, so that a rare event's small scores are told apart. Edges
lie between answers and never on one: many equal answers fall into one bin, however they are rounded when served.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from trainer.contract.documents import AnswerCounts, Label, Quality, RegressionLabel
from trainer.contract.metrics import OF_GROUPS
from trainer.objective.class_metrics import measure_scores
from trainer.objective.costs import cost_matrix
from trainer.objective.evidence import Rows
from trainer.objective.metrics import Floats
from trainer.objective.number_metrics import measure_numbers, point
from trainer.objective.rankings import weigh_gains


def measure_by(
    label: Label, labels: Floats, scores: Floats, weights: Floats | None = None, groups: Rows | None = None
) -> Quality:
    """Return all metrics of one model.

    Args:
        label: Of the model.
        labels: At least one. [n]
        scores: The model's. [n], [n, classes] or [n, quantiles]
        weights: None: all count the same. [n]
        groups: Number of each example's group, within which order counts; None: there are none. [n]
    """
    if isinstance(label, RegressionLabel):
        measured: Quality = measure_numbers(labels, scores, label.quantiles, weights)
    else:
        measured = measure_scores(labels, scores, weights, cost_matrix(label))
    if groups is None or label.kind == "multiclass":
        return measured
    every = np.ones(len(labels)) if weights is None else weights
    answers = point(scores, label.quantiles) if isinstance(label, RegressionLabel) else scores
    values: dict[str, Any] = {
        name: weigh_gains(labels, answers, groups, best)(every) for name, best in OF_GROUPS.items()
    }
    return replace(measured, **values)


_STEPS = 20
_GRID = 1e-6
"""Of the largest answer: what is closer is equal; float32 has steps of 1e-7."""
_SMALLEST = 1e-3
_MOST_DAYS, _MOST_COUNTS = 90, 100
"""What the monitor's limits come from; with more, the document would be large and say no more."""


def count_answers(label: Label, scores: Floats, days: Sequence[Rows] | None = None) -> AnswerCounts:
    """Count a model's answers to a label: numbers in bins, of quantiles the median, several classes by the likeliest.

    Args:
        label: What was answered.
        scores: At least one, all finite. [n] or [n, classes or quantiles]
        days: Which answers are of one day, the first day first; None: they are not counted by day. [n_days] of [n_rows]
    """
    if label.kind == "multiclass":
        edges, places, count = np.array([]), scores.argmax(axis=1), scores.shape[1]
    else:
        answers = point(scores, label.quantiles) if isinstance(label, RegressionLabel) else scores
        edges = _edges_between(answers)
        places, count = np.searchsorted(edges, answers, side="right"), len(edges) + 1
    counted = AnswerCounts(edges=tuple(edges.tolist()), counts=_counts(places, count))
    if days is None:
        return counted
    newest = days[-_MOST_DAYS:] if count <= _MOST_COUNTS else ()
    return replace(counted, by_day=tuple(_counts(places[rows], count) for rows in newest))


def _counts(places: Rows, count: int) -> tuple[int, ...]:
    return tuple(np.bincount(places, minlength=count).tolist())


def _edges_between(answers: Floats) -> Floats:
    """Return edges between neighbouring answers at 5 % steps, and around all of them. [n]."""
    grid = _GRID * max(float(np.abs(answers).max()), _SMALLEST)
    values, rows = np.unique(np.rint(answers / grid), return_counts=True)
    places = np.searchsorted(np.cumsum(rows), len(answers) * np.arange(1, _STEPS) / _STEPS)
    inner = (values[:-1] + values[1:]) / 2
    edges: Floats = np.unique([values[0] - 1, *inner[places[places < len(inner)]], values[-1] + 1]) * grid
    return edges
