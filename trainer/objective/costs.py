"""What answers cost: by the matrix C of costs, whose row is the right class and whose column is the answer.

Of scores p the answer j is given that is cheapest by them, Σ_k p_k C[k, j], of equally cheap ones the first; with two
classes yes is given where that is the cheaper one or as cheap, from p = C[0, 1] / (C[0, 1] + C[1, 0]) on. Source:
Elkan, The Foundations of Cost-Sensitive Learning, IJCAI 2001, sections 1 and 2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from trainer.contract.documents import BinaryLabel, MulticlassLabel
from trainer.objective.metrics import Floats

Costs = Floats
"""By the right class and the answer. [classes, classes]"""


def cost_matrix(label: BinaryLabel | MulticlassLabel) -> Costs | None:
    """Return a label's costs; None: it has none."""
    if label.costs is None:
        return None
    if isinstance(label, BinaryLabel):
        return np.array([[0, label.costs.false_positive], [label.costs.false_negative, 0]], np.float64)
    names = [str(number) for number in range(label.classes)] if isinstance(label.classes, int) else label.classes
    matrix = 1 - np.eye(len(names))
    for right, answers in label.costs.items():
        for answer, cost in answers.items():
            matrix[names.index(right), names.index(answer)] = cost
    return matrix


def cheapest_answers(scores: Floats, costs: Costs) -> npt.NDArray[np.intp]:
    """Return the class that is answered. [n] or [n, classes] → [n]."""
    if scores.ndim == 1:
        return np.asarray(np.asarray(scores, np.float64) >= costs[0, 1] / (costs[0, 1] + costs[1, 0]), np.intp)
    return np.asarray((np.asarray(scores, np.float64) @ costs).argmin(axis=1), np.intp)


def paid(labels: Floats, scores: Floats, costs: Costs) -> Floats:
    """Return what each example's answer costs. [n], [n] or [n, classes] → [n]."""
    return costs[labels.astype(np.intp), cheapest_answers(scores, costs)]
