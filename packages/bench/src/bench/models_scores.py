"""How `make bench-models` scores an answer: log loss of classes, root mean square of a number's errors."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bench.models_sets import Set

Floats = npt.NDArray[np.float64]
_LEAST = 1e-7  # of a probability: float32 has no smaller distance from 1


def measure(set_: Set, labels: Floats, answers: Floats) -> tuple[float, float]:
    """Return loss and score.

    Args:
        labels: [n]
        answers: Numbers or chances of 1 [n], or chances [n, classes].

    Returns:
        Log loss and AUC, log loss and accuracy, or root mean square error and R².
    """
    if set_.kind == "regression":
        squares = (labels - answers) ** 2
        return float(np.sqrt(squares.mean())), float(1 - squares.sum() / ((labels - labels.mean()) ** 2).sum())
    chances = np.clip(answers, _LEAST, 1 - _LEAST).astype(np.float64)
    if chances.ndim == 1:
        chances = np.column_stack([1 - chances, chances])
    classes = labels.astype(int)
    loss = float(-np.log(chances[np.arange(len(classes)), classes]).mean())
    score = _area(classes, chances[:, 1]) if set_.kind == "binary" else float((chances.argmax(1) == classes).mean())
    return loss, score


def _area(labels: npt.NDArray[np.int_], scores: Floats) -> float:
    """Return the area under the ROC curve; answers that are equal count by half."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    positive = int(labels.sum())
    above = ranks[labels == 1].sum() - positive * (positive + 1) / 2
    return float(above / (positive * (len(labels) - positive)))
