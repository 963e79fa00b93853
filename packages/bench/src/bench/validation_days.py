"""What early stopping should watch where days have effects: other rows of the same days, or other days. On the flights.

In: the flights of 2013. Out: `validation_days.json` and its table in docs/data.md. Boosted trees are grown on the days
before the last 14 before a month's 28th, a tenth of which is kept as a validation split by one of three rules; they end
30 trees after the least loss of that split, and answer the 14 days. Ten months, one seed each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss, roc_auc_score

from bench.flights import CATEGORIES, NUMBERS
from bench.gates_flights import columns_of_flights
from bench.origin import measure_and_keep

RESULT_PATH = Path(__file__).with_name("validation_days.json")
MONTHS = range(3, 13)
TRAINING_DAYS = (14, 21, 46)
TEST_DAYS, PATIENCE, MOST_TREES = 14, 30, 500
_CATEGORICAL = list(range(len(NUMBERS), len(NUMBERS) + len(CATEGORIES)))
Mask = npt.NDArray[np.bool_]
Days = npt.NDArray[np.int64]
Rule = Callable[[Days], Mask]
"""From the days of the rows to train on, as numbers, to which of them are the validation split. [n] to [n]."""


def rows_by_chance(days: Days) -> Mask:
    """Return a tenth of the rows, as a hash of their keys would choose them."""
    return np.asarray(np.random.default_rng(0).random(len(days)) < 0.1)


def whole_days(days: Days) -> Mask:
    """Return the days that `snapshot.sql.j2` takes."""
    return np.asarray(days * 618034 % 1_000_000 < 100_000)


def newest_days(days: Days) -> Mask:
    """Return the newest tenth of the days."""
    count = len(np.unique(days))
    return np.asarray(days > days.max() - max(1, round(count / 10)))


RULES: Mapping[str, Rule] = {
    "rows, by hash of the key": rows_by_chance,
    "whole days": whole_days,
    "the newest days": newest_days,
}


def measure() -> dict[str, Any]:
    """Return AUC, log loss and trees of each rule, number of training days and month."""
    columns, labels, dates = columns_of_flights()
    days = dates.astype(np.int64)
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for length in TRAINING_DAYS:
        of_length = found.setdefault(str(length), {name: [] for name in RULES})
        for month in MONTHS:
            end = (date(2013, month, 28) - date(1970, 1, 1)).days
            test = (days >= end - TEST_DAYS) & (days < end)
            window = (days >= end - TEST_DAYS - length) & (days < end - TEST_DAYS)
            for name, rule in RULES.items():
                of_length[name].append(
                    _judge((columns[window], labels[window]), rule(days[window]), (columns[test], labels[test]))
                )
    return {"months": list(MONTHS), "scores": found}


def _judge(
    trained: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
    watched: Mask,
    tested: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]],
) -> dict[str, float]:
    columns, labels = trained
    trees = HistGradientBoostingClassifier(
        max_iter=MOST_TREES,
        learning_rate=0.05,
        n_iter_no_change=PATIENCE,
        early_stopping=True,
        categorical_features=_CATEGORICAL,
        random_state=0,
    )
    trees.fit(columns[~watched], labels[~watched], X_val=columns[watched], y_val=labels[watched])
    scores = trees.predict_proba(tested[0])[:, 1]
    return {
        "auc": round(float(roc_auc_score(tested[1], scores)), 4),
        "log_loss": round(float(log_loss(tested[1], scores)), 4),
        "trees": float(trees.n_iter_),
    }


def table(found: Mapping[str, Any]) -> str:
    """Return the table of the docs: means over the months, and in how many each rule had the least log loss."""
    lines = ["| days to train on | validation | AUC | log loss | trees | least loss |", "|---|---|---|---|---|---|"]
    for length, of_rule in found["scores"].items():
        losses = {name: [each["log_loss"] for each in scores] for name, scores in of_rule.items()}
        least = [min(month) for month in zip(*losses.values(), strict=True)]
        for name, scores in of_rule.items():
            auc, loss, trees = (fmean(each[key] for each in scores) for key in ("auc", "log_loss", "trees"))
            best = sum(own == low for own, low in zip(losses[name], least, strict=True))
            lines.append(f"| {length} | {name} | {auc:.3f} | {loss:.3f} | {trees:.0f} | {best} of {len(least)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(measure_and_keep(__doc__, measure, table, RESULT_PATH))
