"""How well examples are ordered within groups: discounted cumulative gain, exact, in NumPy; weights resample groups.

Of a group with labels y ≥ 0 in the order of their answers, the highest first, DCG = Σ y_i / log2(i + 1) over places
i = 1, 2, …, and NDCG is DCG over that of the best order. Examples with the same answer share the mean of the discounts
of their places, as any of their orders would be as right. Where all labels of a group are equal any order is the best:
such groups say nothing and are left out. The metric is the mean over groups, each weighted by the mean weight of its
examples.

Sources: Järvelin, Kekäläinen, Cumulated gain-based evaluation of IR techniques, ACM TOIS 20 (2002); for equal answers
McSherry, Najork, Computing Information Retrieval Performance Measures Efficiently in the Presence of Tied Scores, ECIR
2008.
"""

from __future__ import annotations

import numpy as np

from trainer.objective.evidence import Rows, extremes
from trainer.objective.metrics import Floats, Weighing


def weigh_gains(labels: Floats, answers: Floats, groups: Rows, best: int) -> Weighing:
    """Return the function from weights to the mean NDCG; None: of no group with a weight, or a label is below 0.

    Args:
        labels: The gains. [n]
        answers: The higher the earlier. [n]
        groups: Number of each example's group, from 0 on. [n]
        best: Of how many of each group; 0: of all.
    """
    if not len(labels) or (labels < 0).any():
        return lambda _: None
    sizes = np.bincount(groups)
    least, greatest = extremes(labels, groups)
    counted = least < greatest
    reached = _sum_gains(labels, answers, groups, best)
    possible = _sum_gains(labels, labels, groups, best)
    values = np.divide(reached, possible, out=np.zeros(len(sizes)), where=possible > 0)

    def average(weights: Floats) -> float | None:
        each = np.divide(np.bincount(groups, weights, len(sizes)), sizes, out=np.zeros(len(sizes)), where=sizes > 0)
        total = each[counted].sum()
        return float(min(each[counted] @ values[counted] / total, 1)) if total > 0 else None

    return average


def _sum_gains(labels: Floats, answers: Floats, groups: Rows, best: int) -> Floats:
    """Return each group's discounted gains. → [groups]."""
    order = np.lexsort((-answers, groups))
    group, answer = groups[order], answers[order]
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    discounts = 1 / np.log2(place + 2)
    if best:
        discounts[place >= best] = 0
    tied = np.cumsum(np.r_[False, (group[1:] != group[:-1]) | (answer[1:] != answer[:-1])])
    shared = np.bincount(tied, discounts) / np.bincount(tied)
    return np.bincount(group, labels[order] * shared[tied], int(groups.max()) + 1).astype(np.float64)
