"""How alike the rows of one day are, on the flights of 2013: how much larger days make a difference's true error.

In: the flights of 2013. Out: `days_on_flights.json` and its table in docs/evaluation.md.

Two models are trained on the 60 days before a month's first day and answer the 28 days from it. The error of the
difference of their mean log loss is that of independent rows, and that of whole days; where days have no effect the
two are equal. `gates_days` says what a ratio makes of the gate, and how often rows then promote equal models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bench.flights import CATEGORIES, LABEL, NUMBERS, flights_by_day
from bench.origin import measure_and_keep
from trainer.objective.metrics import log_losses

RESULT_PATH = Path(__file__).with_name("days_on_flights.json")
MONTHS = range(3, 13)
TRAINING_DAYS, TEST_DAYS = 60, 28
Floats = npt.NDArray[np.float64]
Model = Callable[[Floats, Floats, Floats], Floats]
"""From training columns, training labels and test columns to scores."""


def boosted(seed: int, *, rows: float = 1.0) -> Model:
    """Return a training of boosted trees on a share of the rows, the newest."""

    def answer(columns: Floats, labels: Floats, asked: Floats) -> Floats:
        start = int(len(labels) * (1 - rows))
        model = HistGradientBoostingClassifier(max_iter=60, random_state=seed, early_stopping=True)
        model.fit(columns[start:], labels[start:])
        return np.asarray(model.predict_proba(asked)[:, 1], np.float64)

    return answer


def linear(columns: Floats, labels: Floats, asked: Floats) -> Floats:
    """Train a logistic regression; a missing number is the mean."""
    means = np.nanmean(columns, axis=0)
    filled = [np.where(np.isnan(each), means, each) for each in (columns, asked)]
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)).fit(filled[0], labels)
    return np.asarray(model.predict_proba(filled[1])[:, 1], np.float64)


PAIRS: Mapping[str, tuple[Model, Model]] = {
    "the same trees, another seed": (boosted(1), boosted(2)),
    "trees of 60 days, trees of the last 30": (boosted(1), boosted(1, rows=0.5)),
    "trees, logistic regression": (boosted(1), linear),
}
"""From what a nightly retraining changes to another architecture."""


def ratio_of_errors(differences: Floats, days: npt.NDArray[np.intp]) -> float:
    """Return the standard error of a mean over whole days by that over rows.

    Args:
        differences: One of each row. [n]
        days: Number of each row's day, from 0 on. [n]
    """
    n, count = len(differences), int(days.max()) + 1
    centred = differences - differences.mean()
    by_day = np.bincount(days, centred)
    of_days = np.sqrt((by_day**2).sum() * count / (count - 1)) / n
    return float(of_days / (centred.std(ddof=1) / np.sqrt(n)))


def columns_of_flights() -> tuple[Floats, Floats, npt.NDArray[np.datetime64]]:
    """Return features as numbers, labels, and the day of each flight. [n, features], [n], [n]."""
    table, day = flights_by_day()
    coded = [_codes(table[name]) for name in CATEGORIES]
    numbers = [table[name].to_numpy().astype(np.float64) for name in NUMBERS]
    columns = np.column_stack([*numbers, *coded])
    return columns, table[LABEL].to_numpy().astype(np.float64), day.to_numpy().astype("datetime64[D]")


def _codes(column: pa.ChunkedArray) -> Floats:
    codes = column.combine_chunks().dictionary_encode().indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.float64)


def measure() -> dict[str, Any]:
    """Return the ratio of each pair and month."""
    columns, labels, days = columns_of_flights()
    found: dict[str, list[float]] = {name: [] for name in PAIRS}
    for month in MONTHS:
        first = date(2013, month, 1)
        bounds = [first - timedelta(days=TRAINING_DAYS), first, first + timedelta(days=TEST_DAYS)]
        start, split, end = (np.datetime64(each) for each in bounds)
        train, test = (days >= start) & (days < split), (days >= split) & (days < end)
        of_row = np.unique(days[test], return_inverse=True)[1]
        for name, models in PAIRS.items():
            ours, theirs = (model(columns[train], labels[train], columns[test]) for model in models)
            losses = [log_losses(labels[test], scores) for scores in (ours, theirs)]
            found[name].append(round(ratio_of_errors(losses[0] - losses[1], of_row), 2))
    return {"months": list(MONTHS), "ratios": found}


def table(found: Mapping[str, Any]) -> str:
    """Return the table of the docs."""
    lines = ["| two models | median | least | greatest |", "|---|---|---|---|"]
    for name, ratios in found["ratios"].items():
        lines.append(f"| {name} | {median(ratios):.1f} | {min(ratios):.1f} | {max(ratios):.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(measure_and_keep(__doc__, measure, table, RESULT_PATH))
