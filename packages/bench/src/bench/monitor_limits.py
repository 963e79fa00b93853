"""The default limits of `make bench-monitor` on real flights: false alarms of unchanged and of real days, and shifts.

In: the flights of 2013. Out: for limits of 0.3, of 0.1, and by the training days, how many windows are over them
(`monitor_limits.json`). A month has the 60 days before it as training data; each of 10 months has windows

- unchanged: drawn from the training days themselves, of every feature and a constant (over a limit only by chance);
- shifted: drawn, and then one feature shifted;
- real: the days of the month (over a limit by the season, the weather, or chance).
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bench import monitor_baselines
from bench.checkout import REPOSITORY_PATH
from bench.flights import NUMBERS
from bench.monitor_streams import FEATURES, year
from bench.origin import with_origin
from retraining.core.monitoring.limits import Distances, calibrate, limit_of
from retraining.core.spec.files import load_spec
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.monitoring import DriftLimits

RESULT_PATH = Path(__file__).with_name("monitor_limits.json")
MONTHS = range(3, 13)
TRAINING_DAYS, REQUESTS, DRAWN, LEAST_ROWS = 60, 1000, 8, 200
SIZES = (240, REQUESTS)
"""Requests of a drawn window; the least that is judged is 200."""
RULES: Mapping[str, float | None] = {"0.3": 0.3, "0.1": 0.1, "by the days": None}
CONSTANT = "constant"
Random = np.random.Generator
Column = Sequence[Any]


@dataclass(frozen=True, kw_only=True)
class Window:
    """The values of one feature in one window, and what happened to it: nothing, a shift, or a day of the year."""

    what: str
    feature: str
    values: Column


def kilometres(values: Column, _: Random) -> Column:
    """Return miles in kilometres."""
    return [value if value is None else 1.609344 * value for value in values]


def half_a_deviation(values: Column, _: Random) -> Column:
    """Return numbers that grew by half of their deviation."""
    by = 0.5 * float(np.std([value for value in values if value is not None]))
    return [value if value is None else value + by for value in values]


def replaced(values: Column, random: Random) -> Column:
    """Return values of which a fifth are new ones."""
    gone = random.random(len(values)) < 0.2
    return [f"new {value}" if new else value for value, new in zip(values, gone, strict=True)]


def missing(values: Column, random: Random) -> Column:
    """Return values of which a quarter are missing."""
    gone = random.random(len(values)) < 0.25
    return [None if new else value for value, new in zip(values, gone, strict=True)]


def another_constant(values: Column, _: Random) -> Column:
    """Return another number than the one that there was."""
    return [500.0] * len(values)


SHIFTS: Mapping[str, tuple[str, Callable[[Column, Random], Column]]] = {
    "miles in kilometres": ("distance", kilometres),
    "half a deviation": ("departure_minute", half_a_deviation),
    "20 % of the carriers replaced": ("carrier", replaced),
    "25 % missing": ("arrival_minute", missing),
    "a constant, 5 to 500": (CONSTANT, another_constant),
}


@cache
def spec_with(threshold: float | None) -> ModelSpec:
    """Return the flights' model with one threshold for all features."""
    spec = load_spec(REPOSITORY_PATH / "include" / "models" / "flight_delays.yaml")
    monitoring = spec.monitoring.model_copy(update={"drift": DriftLimits(threshold=threshold)})
    return spec.model_copy(update={"monitoring": monitoring})


def days_of(month: int) -> tuple[dict[str, list[Column]], dict[str, list[Column]]]:
    """Return each feature's training days and those of the month; a constant is among them."""
    columns, months, minutes = year()
    start = int(minutes[months == month].min()) // 1440
    end = int(minutes[months == month].max()) // 1440 + 1
    found: tuple[dict[str, list[Column]], ...] = (defaultdict(list), defaultdict(list))
    for side, days in zip(found, (range(start - TRAINING_DAYS, start), range(start, end)), strict=True):
        for day in days:
            rows = slice(*np.searchsorted(minutes, [day * 1440, (day + 1) * 1440]))
            for name in FEATURES:
                values = columns[name][rows]
                side[name].append([_plain(name, value) for value in values])
            side[CONSTANT].append([5.0] * (rows.stop - rows.start))
    return found[0], found[1]


def windows_of(
    month: int, training: Mapping[str, Sequence[Column]], real: Mapping[str, Sequence[Column]]
) -> Iterator[Window]:
    """Yield the windows of a month."""
    random = np.random.default_rng(month)
    for name, days in training.items():
        whole = [value for day in days for value in day]
        for size in SIZES:
            for _ in range(DRAWN):
                drawn = [whole[place] for place in random.integers(0, len(whole), size)]
                yield Window(what=f"unchanged, {size:,} requests", feature=name, values=drawn)
                for shift, (feature, change) in SHIFTS.items():
                    if feature == name and size == REQUESTS:
                        yield Window(what=shift, feature=name, values=change(drawn, random))
        for day in real[name]:
            yield Window(what="real days", feature=name, values=day)


def measure_month(month: int) -> dict[str, Counter[str]]:
    """Return over each rule's limit how many windows of each kind are, and (`of`) how many there are."""
    training, real = days_of(month)
    baselines = {name: monitor_baselines.calibrated(days, LEAST_ROWS) for name, days in training.items()}
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for window in windows_of(month, training, real):
        counted = found[window.what]
        counted["of"] += 1
        baseline, rows = baselines[window.feature]
        for rule, over in verdicts(window, baseline, rows).items():
            counted[rule] += over
    return dict(found)


def verdicts(window: Window, baseline: monitor_baselines.Statistics, rows: int) -> dict[str, bool]:
    """Return by each rule whether a window's skew is exceeded.

    Args:
        window: Of one feature.
        baseline: Its statistics.
        rows: Of the training data.
    """
    distance = monitor_baselines.distance_of(baseline, rows, window.values)
    found = {}
    for rule, threshold in RULES.items():
        spec = spec_with(threshold)
        limit = limit_of(
            spec, window.feature, calibrate(spec, Distances(measure=distance.measure), baseline.usual, distance.chance)
        )
        found[rule] = limit.is_exceeded(distance.value, distance.low)
    return found


def table_rows(known: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return the rows of the table in `docs/monitoring.md`."""
    rows = []
    for what, of in known.items():
        shares = [f"{100 * of.get(rule, 0) / of['of']:.1f} %" for rule in RULES]
        rows.append(f"| {what} | {of['of']:,} | {' | '.join(shares)} |")
    return rows


def measure_months(processes: int) -> dict[str, Counter[str]]:
    """Return what was counted in all months."""
    found = defaultdict[str, Counter[str]](Counter)
    with ProcessPoolExecutor(processes) as pool:
        for month in pool.map(measure_month, MONTHS):
            for what, counted in month.items():
                found[what].update(counted)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the result."""
    parser = argparse.ArgumentParser(prog="bench.monitor_limits", description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    known = with_origin(lambda: {"windows": measure_months(options.processes)})
    RESULT_PATH.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table_rows(known["windows"])))
    return 0


def _plain(name: str, value: object) -> object:
    if value is None or name not in NUMBERS:
        return value
    number = float(str(value))
    return None if math.isnan(number) else number


if __name__ == "__main__":
    raise SystemExit(main())
