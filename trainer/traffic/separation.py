"""How well a classifier tells requests from training examples: 0.5 is not at all, 1 always.

In: columns of both. Out: the AUC over folds with an interval, and what each column does for it. Each row is scored by a
classifier that has not seen it, nor any row with the same values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trainer.objective.metrics import area
from trainer.traffic.boosting import Boosted, boost
from trainer.traffic.columns import Encoder, Kind, Values, group_rows

NORMAL_95 = 1.959963984540054


@dataclass(frozen=True, kw_only=True)
class Separation:
    """What was found: the mean AUC of the folds, its interval of 95 %, the folds', and what each column adds.

    `losses` are by name: how much lower the AUC is when that column's values are shuffled among the judged rows.
    """

    auc: float
    low: float
    high: float
    folds: tuple[float, ...]
    losses: Mapping[str, float]


def separate(
    columns: Mapping[str, Values],
    kinds: Mapping[str, Kind],
    asked: npt.NDArray[np.bool_],
    *,
    folds: int,
    seed: int,
) -> Separation:
    """Return how well requests and training examples can be told apart.

    Args:
        columns: Of all rows, by name.
        kinds: Of each column; no others are looked at.
        asked: Of each row, whether it is a request.
        folds: How many classifiers are trained.
        seed: Of the folds and of what is shuffled.
    """
    random = np.random.default_rng(seed)
    groups = group_rows([columns[name] for name in kinds])
    fold_of = random.permutation(int(groups.max()) + 1)[groups] % folds
    areas, variances, losses = [], [], {name: [0.0] for name in kinds}
    for fold in range(folds):
        train, judged = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        encoder = Encoder(columns, kinds, asked, train)
        model = boost(encoder.encode({name: columns[name][train] for name in kinds}), asked[train])
        codes, labels = encoder.encode({name: columns[name][judged] for name in kinds}), asked[judged]
        found = _area(labels, model, codes)
        if found is None:  # one side alone
            continue
        areas.append(found)
        variances.append(variance(found, int(labels.sum()), int((~labels).sum())))
        for place, name in enumerate(kinds):
            shuffled = codes.copy()
            shuffled[:, place] = random.permutation(shuffled[:, place])
            losses[name].append(found - (_area(labels, model, shuffled) or found))
    if not areas:
        return Separation(auc=0.5, low=0.0, high=1.0, folds=(), losses=dict.fromkeys(kinds, 0.0))
    mean, deviation = float(np.mean(areas)), float(np.sqrt(np.sum(variances))) / len(areas)
    return Separation(
        auc=mean,
        low=max(0.0, mean - NORMAL_95 * deviation),
        high=min(1.0, mean + NORMAL_95 * deviation),
        folds=tuple(areas),
        losses={name: sum(each) / len(areas) for name, each in losses.items()},
    )


def variance(auc: float, positives: int, negatives: int) -> float:
    """Return the variance of an AUC (Hanley and McNeil 1982, "The meaning and use of the area under a ROC curve")."""
    of_positives, of_negatives = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    spread = auc * (1 - auc) + (positives - 1) * (of_positives - auc**2) + (negatives - 1) * (of_negatives - auc**2)
    return spread / (positives * negatives)


def _area(labels: npt.NDArray[np.bool_], model: Boosted, codes: npt.NDArray[np.uint8]) -> float | None:
    return area(labels.astype(np.float64), model.scores(codes))
