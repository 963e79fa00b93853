"""What a measurement rests on: how many independent units there are of each kind that it needs.

Comes in: labels, weights, and which rows belong together. Goes out: the scarcest kind, its effective number, and how
many are needed, below which nothing is judged.

| label, metric | units |
|---|---|
| binary | positives and negatives |
| several classes; `auc`, `balanced_accuracy`, `macro_f1` | rows of each class that occurs: each has the same say |
| several classes, another metric | rows that are not of the most frequent class |
| number | rows |
| `ndcg`, `ndcg10` | rows of groups whose labels are not all equal: "labels to order" |

Rows that belong together are one unit: of each kind also the groups that have some are counted. Units that count
unevenly say less than equal ones: their effective number is (Σ w)² / Σ w² (Kish, Survey Sampling, 1965, section 11.7).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import Evidence, Metric
from trainer.contract.metrics import OF_EACH_CLASS, OF_GROUPS, OF_KIND
from trainer.objective.metrics import Floats

Rows = npt.NDArray[np.intp]
"""Indices of examples. [n_rows]"""


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """The kinds of rows that a metric needs.

    Attributes:
        names: What messages call them.
        of_row: Number of each row's kind; -1: it is of none. [n]
    """

    names: tuple[str, ...]
    of_row: Rows


def kinds_of_rows(metric: Metric, labels: Floats, scores: Floats, groups: Rows | None = None) -> Kinds:
    """Return the kinds of rows that a metric needs. [n], [n] or [n, K], [n]."""
    if metric in OF_GROUPS and groups is not None:
        least, greatest = extremes(labels, groups)
        return Kinds(names=("labels to order",), of_row=np.where((least < greatest)[groups], 0, -1))
    if metric in OF_KIND["regression"]:
        return Kinds(names=("rows",), of_row=np.zeros(len(labels), np.intp))
    if scores.ndim == 1:
        return Kinds(names=("positives", "negatives"), of_row=np.asarray(labels != 1, np.intp))
    classes, of_row, counts = np.unique(labels, return_inverse=True, return_counts=True)
    if metric in OF_EACH_CLASS:
        return Kinds(names=tuple(f"rows of class {label:g}" for label in classes), of_row=of_row)
    names = ("rows outside the most frequent class",)
    return Kinds(names=names, of_row=np.where(of_row == counts.argmax(), -1, 0))


def extremes(labels: Floats, groups: Rows) -> tuple[Floats, Floats]:
    """Return the least and the greatest label of each group. [n], [n] → [groups] each."""
    count = int(groups.max()) + 1 if len(groups) else 0
    least, greatest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(least, groups, labels)
    np.maximum.at(greatest, groups, labels)
    return least, greatest


def gather_evidence(
    kinds: Kinds, weights: Floats, groups: Rows | None, min_rows: int, min_groups: int, unit: str = "groups"
) -> Evidence:
    """Return the scarcest units: those that fall short the most, else those that there are least of.

    Args:
        kinds: That are needed.
        weights: How much each row counts. [n]
        groups: Number of each row's group; None: each row stands for itself. [n]
        min_rows: Effective rows that each kind needs.
        min_groups: Effective groups that it needs.
        unit: What messages call the groups.
    """
    counted = (kinds.of_row >= 0) & (weights > 0)
    of_row, weights = kinds.of_row[counted], weights[counted]
    found = [_scarcest(kinds.names, of_row, weights, min_rows)]
    if groups is not None:
        pairs, of_pair = np.unique(groups[counted] * len(kinds.names) + of_row, return_inverse=True)
        names = [f"{unit} with {name}" for name in kinds.names]
        found.append(_scarcest(names, pairs % len(names), np.bincount(of_pair, weights).astype(np.float64), min_groups))
    short = [item for item in found if not is_enough(item)]
    return min(short or found, key=lambda item: item.effective / (item.needed if short else 1))


def is_enough(evidence: Evidence) -> bool:
    """Return whether something may be judged by it."""
    return evidence.effective >= evidence.needed


def _scarcest(names: Sequence[str], kinds: Rows, amounts: Floats, needed: int) -> Evidence:
    """Return the kind of the fewest effective units. [n_units], [n_units]."""
    sums, squares = (np.bincount(kinds, amounts**power, minlength=len(names)) for power in (1, 2))
    effective = np.divide(sums**2, squares, out=np.zeros_like(sums), where=squares > 0)
    place = int(effective.argmin())
    count = int(np.count_nonzero(kinds == place))
    return Evidence(units=names[place], count=count, effective=float(effective[place]), needed=needed)
