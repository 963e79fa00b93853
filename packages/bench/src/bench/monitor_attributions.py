"""`make bench-attributions`: how often the signal of attributions is over its limit, with and without a reason.

In: the flights of 2013, and made-up data. Out: `attributions.json` and the tables of docs/monitoring.md. Orders,
shares, distances and what chance makes of them are the core's own.

On flights boosted trees of 60 days answer a sample of each of the 28 days that follow; it is held against one of the
seven test days before. On made-up data a model of its own answers each day of a month, and nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier

from bench.flights import CATEGORIES, NUMBERS
from bench.gates_flights import Floats, columns_of_flights
from bench.origin import measure_and_keep
from retraining.core.monitoring.attributions import ROUNDED_ODDS, distances_by_chance, draw_order, shares_of
from retraining.core.monitoring.attributions import total_variation as distance_of

RESULT_PATH = Path(__file__).with_name("attributions.json")
MONTHS = range(3, 13)
TRAINING_DAYS, TEST_DAYS, SERVED_DAYS, ROWS = 60, 7, 28, 100
LIMITS = (0.1, 0.15, 0.2, 0.25, 0.3)
FEATURES = [*NUMBERS, *CATEGORIES]
ONE, TWO = ("departure_minute",), ("departure_minute", "carrier")
MADE_MONTHS, MADE_DAYS, MADE_LIMITS = 20, 30, (0.2, 0.25)
Model = Callable[[Floats], Floats]
"""From columns to log-odds. [n, features] to [n]."""
Rows = list[tuple[float, ...]]


def attributions_of(model: Model, columns: Floats, baselines: Floats, seed: str) -> Rows:
    """Return what each feature adds to each answer, in an order of the core's for each row. [n, features]."""
    n, count = columns.shape
    names = [str(feature) for feature in range(count)]
    orders = np.array([[int(name) for name in draw_order(names, seed, row)] for row in range(n)])
    mixed, places = np.tile(baselines, (n, 1)), np.arange(n)
    before, added = model(mixed), np.zeros((n, count))
    for step in range(count):
        features = orders[:, step]
        mixed[places, features] = columns[places, features]
        after = model(mixed)
        added[places, features] = after - before
        before = after
    return [tuple(row) for row in added.tolist()]


def shift_of(found: Rows, then: Rows, seed: str) -> float:
    """Return how far the shares moved beyond what chance makes on average; 0 where chance may have done all of it."""
    distance = distance_of(shares_of(then), shares_of(found))
    chance = distances_by_chance(found, then, seed)
    return max(0.0, distance - sum(chance) / len(chance)) if distance > max(chance) else 0.0


def log_odds(probabilities: Floats) -> Floats:
    """Return log-odds as the core takes them."""
    within = np.clip(probabilities, ROUNDED_ODDS, 1 - ROUNDED_ODDS)
    return np.asarray(np.log(within / (1 - within)))


@dataclass(frozen=True, kw_only=True)
class Flights:
    """Columns, labels and days of the flights. [n, features], [n], [n]."""

    columns: Floats
    labels: Floats
    days: npt.NDArray[np.datetime64]

    def between(self, start: date, end: date) -> npt.NDArray[np.bool_]:
        """Return which flights are of some days."""
        return (self.days >= np.datetime64(start)) & (self.days < np.datetime64(end))


def baselines_of(columns: Floats) -> Floats:
    """Return medians of numbers and the commonest codes of categories. [features]."""
    found = np.nanmedian(columns, axis=0)
    for place in range(len(NUMBERS), len(FEATURES)):
        found[place] = np.bincount(columns[:, place].astype(int)).argmax()
    return np.asarray(found, np.float64)


def without(columns: Floats, names: Sequence[str], values: Floats) -> Floats:
    """Return the columns with some features at other values."""
    changed = columns.copy()
    for name in names:
        changed[:, FEATURES.index(name)] = values[FEATURES.index(name)]
    return changed


def with_losses(of_day: Floats, of_week: Floats, baselines: Floats) -> dict[str, Floats]:
    """Return the requests of a day and of a week as they are, and with features that lost their meaning."""
    return {
        "real days": of_day,
        "real days, `visib` missing": without(of_day, ["visib"], np.full(len(FEATURES), np.nan)),
        "`departure_minute` lost": without(of_day, ONE, baselines),
        "it and `carrier` lost": without(of_day, TWO, baselines),
        "real windows of seven days": of_week,
        "seven days, `departure_minute` lost": without(of_week, ONE, baselines),
    }


def month_of_flights(flights: Flights, month: int) -> dict[str, list[float]]:
    """Return the shift of each day's requests, by what is done to them."""
    start = date(2013, month, 1)
    tested = start - timedelta(days=TEST_DAYS)
    train = flights.between(tested - timedelta(days=TRAINING_DAYS), tested)
    columns = flights.columns[train]
    fitted = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(columns, flights.labels[train])
    baselines = baselines_of(columns)
    chance = np.random.default_rng(month)

    def drawn(rows: Floats) -> Floats:
        return np.asarray(rows[chance.choice(len(rows), min(ROWS, len(rows)), replace=False)])

    test = flights.columns[flights.between(tested, start)]
    days = [start + timedelta(days=day) for day in range(SERVED_DAYS)]
    asked: dict[str, list[Floats]] = {}
    for day in days:
        of_day, of_week = (
            drawn(flights.columns[flights.between(day, day + timedelta(days=span))]) for span in (1, TEST_DAYS)
        )
        cases = {"drawn from the test days": drawn(test), **with_losses(of_day, of_week, baselines)}
        for name, rows in cases.items():
            asked.setdefault(name, []).append(rows)

    def model(rows: Floats) -> Floats:
        return log_odds(fitted.predict_proba(rows)[:, 1])

    then = attributions_of(model, drawn(test), baselines, f"{month}|then")
    return {
        name: [
            round(shift_of(attributions_of(model, rows, baselines, f"{month}|{day}"), then, f"{month}|{day}|{name}"), 4)
            for day, rows in enumerate(each)
        ]
        for name, each in asked.items()
    }


@dataclass(frozen=True, kw_only=True)
class Made:
    """A made-up model and how it is asked: a logistic regression with one product of two features.

    Attributes:
        features: How many.
        rows: Of each side.
        bias: Log-odds where all features are 0.
        jump: Added where the third feature is over 2.05, which one row in 50 is.
    """

    features: int = 13
    rows: int = 100
    bias: float = 0.0
    jump: float = 0.0


MADE: Mapping[str, Made] = {
    "13 features, 100 requests": Made(),
    "13 features, 30 requests": Made(rows=30),
    "100 features, 100 requests": Made(features=100),
    "100 features, 30 requests": Made(features=100, rows=30),
    "labels of which 0.3 % are positive, 100 requests": Made(bias=-6.0),
    "labels of which 0.3 % are positive, 30 requests": Made(rows=30, bias=-6.0),
    "a feature that matters in one row of 50, 100 requests": Made(bias=-6.0, jump=6.0),
}


def unchanged_days(made: Made, seed: int) -> list[float]:
    """Return the shift of each day of months in which nothing changes, each month with a model of its own."""
    chance = np.random.default_rng(seed)
    found = []
    for month in range(MADE_MONTHS):
        weights = chance.exponential(1.0, made.features) * chance.choice([-1.0, 1.0], made.features)
        product = chance.normal(0.0, 1.0)
        baselines = np.zeros(made.features)

        def model(rows: Floats, weights: Floats = weights, product: float = product) -> Floats:
            jumps = np.where(rows[:, 2] > 2.05, made.jump, 0.0)
            return np.asarray(rows @ weights + product * rows[:, 0] * rows[:, 1] + made.bias + jumps)

        sides = [chance.normal(0.0, 1.0, (made.rows, made.features)) for _ in range(MADE_DAYS + 1)]
        then, *days = [
            attributions_of(model, rows, baselines, f"{seed}|{month}|{day}") for day, rows in enumerate(sides)
        ]
        found += [round(shift_of(rows, then, f"{seed}|{month}|{day}"), 4) for day, rows in enumerate(days)]
    return found


def measure() -> dict[str, Any]:
    """Return on how many days of both kinds of data the shift is over each limit, by what was done to them."""
    columns, labels, days = columns_of_flights()
    flights = Flights(columns=columns, labels=labels, days=days)
    of_flights: dict[str, list[float]] = {}
    for month in MONTHS:
        for name, shifts in month_of_flights(flights, month).items():
            of_flights.setdefault(name, []).extend(shifts)
    return {
        "flights": {name: counted(shifts, LIMITS) for name, shifts in of_flights.items()},
        "unchanged": {
            name: counted(unchanged_days(made, seed), MADE_LIMITS) for seed, (name, made) in enumerate(MADE.items())
        },
    }


def counted(shifts: Sequence[float], limits: Sequence[float]) -> dict[str, int]:
    """Return how many days there are, and on how many the shift is over each limit."""
    return {"days": len(shifts), **{f"over {limit}": sum(shift > limit for shift in shifts) for limit in limits}}


def table(found: Mapping[str, Any]) -> str:
    """Return the tables of the docs."""
    lines = [f"| requests | {' | '.join(map(str, LIMITS))} |", f"|---|{'---|' * len(LIMITS)}"]
    lines += [f"| {name} | {_shares(counts)} |" for name, counts in found["flights"].items()]
    lines += ["", f"| nothing changed | days | {' | '.join(f'over {limit}' for limit in MADE_LIMITS)} |"]
    lines.append(f"|---|---|{'---|' * len(MADE_LIMITS)}")
    lines += [f"| {name} | {' | '.join(map(str, counts.values()))} |" for name, counts in found["unchanged"].items()]
    return "\n".join(lines)


def _shares(counts: Mapping[str, int]) -> str:
    shares = (100 * count / counts["days"] for name, count in counts.items() if name != "days")
    return " | ".join(f"{share:.1f} %" if 0 < share < 1 else f"{share:.0f} %" for share in shares)


if __name__ == "__main__":
    raise SystemExit(measure_and_keep(__doc__, measure, table, RESULT_PATH))
