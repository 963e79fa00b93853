"""`make bench-monitor`: how often the monitor sees what is not there, and how soon it sees what is.

In: the flights of 2013. Out: `monitor.json` and the picture of `docs/monitoring.md`.

- False alarms: requests drawn from a month's own flights, measured against that month every hour for 30 days.
- Real windows: a month's flights hour by hour against the 60 days before: what a source does by itself.
- Delay: from an hour on a number moves, a category's share grows, or a column fails; counted until the first alarm.

An alarm is a feature over the threshold in at least k of the last n windows.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from bench.checkout import REPOSITORY_PATH
from bench.gates_plots import make_plot, write_plot
from bench.monitor_streams import FEATURES, WINDOW_HOURS, Shift, draw, month_of, real_windows

RESULT_PATH = Path(__file__).with_name("monitor.json")
IMAGES_PATH = REPOSITORY_PATH / "docs" / "images"
MONTHS = range(1, 13)
PER_WINDOW = (240, 960, 4800, 24000)
"""Requests of a window: the least that is judged is 200."""
THRESHOLDS = (0.05, 0.1, 0.3)
RULES = ((1, 1), (2, 3), (3, 5))
"""In at least k of the last n windows."""
HOURS = 30 * 24
TRAINING_DAYS = 60
BY_THEMSELVES = frozenset({"day_of_week", "temp", "humid", "wind_speed", "precip", "pressure", "visib"})
"""What include/models/flight_delays.yaml gives a threshold of 1: one day has one weekday and one weather."""
SHIFTS = (
    *(Shift(kind="moved", feature="distance", size=size) for size in (0.25, 0.5, 1.0)),
    *(Shift(kind="share", feature="carrier", size=size) for size in (0.1, 0.2, 0.4)),
    *(Shift(kind="outage", feature="arrival_minute", size=size) for size in (0.25, 0.5, 1.0)),
)
SHIFT_HOURS = 3 * 24
PLOTTED = Shift(kind="moved", feature="distance", size=1.0)


def alarms(values: Iterable[float], threshold: float, k: int, n: int) -> list[bool]:
    """Say for each window whether a value was strictly over the threshold in at least k of the last n."""
    over = [value > threshold for value in values]
    return [sum(over[max(0, place - n + 1) : place + 1]) >= k for place in range(len(over))]


def beginnings(found: Mapping[str, Sequence[float]], threshold: float, k: int, n: int) -> int:
    """Return how often an alarm of any feature begins."""
    in_alarm = _any_alarm(found, threshold, k, n)
    return sum(now and not before for before, now in itertools.pairwise([False, *in_alarm]))


def _any_alarm(found: Mapping[str, Sequence[float]], threshold: float, k: int, n: int) -> list[bool]:
    by_feature = [alarms(values, threshold, k, n) for values in found.values()]
    return [any(hour) for hour in zip(*by_feature, strict=True)]


def false_alarms(task: tuple[int, int, int]) -> dict[str, Any]:
    """Return alarms and largest distances of one month of requests drawn from itself: its size, month and seed."""
    per_window, month, seed = task
    found = draw(month_of(month), FEATURES, per_window, HOURS, seed=1000 * seed + month)
    return {"alarms": _by_rule(found), "largest": {name: max(values) for name, values in found.items()}}


def real_month(month: int) -> dict[str, Any]:
    """Return the share of a month's real hours in alarm, of all features and of those with a threshold below 1."""
    found, sizes = real_windows(month, TRAINING_DAYS)
    watched = {name: values for name, values in found.items() if name not in BY_THEMSELVES}
    shares = {
        what: {_key(threshold, 2, 3): statistics.mean(_any_alarm(of, threshold, 2, 3)) for threshold in THRESHOLDS}
        for what, of in (("all", found), ("watched", watched))
    }
    return {
        **shares,
        "largest": {name: max(values) for name, values in found.items()},
        "requests": statistics.median(sizes),
    }


def delay(task: tuple[Shift, int, int]) -> dict[str, int | None]:
    """Return the hours from a shift to the first alarm by threshold and rule; None: none in three days."""
    shift, per_window, month = task
    found = draw(month_of(month), [shift.feature], per_window, SHIFT_HOURS, month, shift, at=0)[shift.feature]
    result: dict[str, int | None] = {}
    for threshold, (k, n) in itertools.product(THRESHOLDS, RULES):
        seen = alarms(found, threshold, k, n)
        result[_key(threshold, k, n)] = seen.index(True) + 1 if True in seen else None
    return result


def measure(months: Sequence[int], seeds: int, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Run all."""
    known: dict[str, Any] = {"false_alarms": {}, "largest_by_chance": {}, "delay": {}}
    for per_window in PER_WINDOW:
        tasks = [(per_window, month, seed) for seed in range(seeds) for month in months]
        found = list(pool.map(false_alarms, tasks))
        keys = found[0]["alarms"]
        known["false_alarms"][per_window] = {key: _mean(each["alarms"][key] for each in found) for key in keys}
        largest = {name: max(each["largest"][name] for each in found) for name in FEATURES}
        known["largest_by_chance"][per_window] = {name: round(value, 4) for name, value in largest.items()}
    whole = [month for month in months if month >= 3]  # before, there are no 60 days to train on
    real = list(pool.map(real_month, whole))
    known["real"] = {
        what: {key: _mean(each[what][key] for each in real) for key in real[0][what]} for what in ("all", "watched")
    }
    known["real"]["requests"] = statistics.median(each["requests"] for each in real)
    known["real"]["largest"] = {name: round(max(each["largest"][name] for each in real), 4) for name in FEATURES}
    for shift in SHIFTS:
        by_size = {}
        for per_window in PER_WINDOW:
            found_delays = list(pool.map(delay, [(shift, per_window, month) for month in months]))
            by_size[per_window] = {key: _median([each[key] for each in found_delays]) for key in found_delays[0]}
        known["delay"][f"{shift.kind} {shift.feature} {shift.size:g}"] = by_size
    plotted = draw(
        month_of(months[0]), [PLOTTED.feature], PER_WINDOW[2], 2 * WINDOW_HOURS, 0, PLOTTED, at=WINDOW_HOURS // 2
    )
    known["plotted"] = [round(value, 4) for value in plotted[PLOTTED.feature]]
    return known


def write_plots(known: Mapping[str, Any], folder: Path) -> None:
    """Draw how a distance grows while the window fills with shifted requests."""
    values = {float(hour - WINDOW_HOURS // 2 + 1): value for hour, value in enumerate(known["plotted"])}
    title = "Distance of a number that moved by one standard deviation"
    write_plot(folder / "shift.svg", make_plot(title, "hours since it moved", values, dots=False))


def table_rows(known: Mapping[str, Any]) -> list[str]:
    """Return the rows of the tables in `docs/monitoring.md`."""
    rows = []
    for per_window, by_rule in known["false_alarms"].items():
        largest = max(known["largest_by_chance"][per_window].values())
        cells = [f"{by_rule[_key(threshold, k, n)]:.2f}" for threshold in THRESHOLDS for k, n in RULES]
        rows.append(f"| {int(per_window):,} | {largest:.3f} | {' | '.join(cells)} |")
    for name, what in (("all features", "all"), ("those that the file watches", "watched")):
        cells = [f"{100 * known['real'][what][_key(threshold, 2, 3)]:.0f} %" for threshold in THRESHOLDS]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    for name, by_size in known["delay"].items():
        found = [by_size[str(PER_WINDOW[1])][_key(threshold, k, n)] for threshold in THRESHOLDS for k, n in RULES]
        cells = ["never" if hours is None else f"{hours:g} h" for hours in found]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def _by_rule(found: Mapping[str, Sequence[float]]) -> dict[str, int]:
    return {
        _key(threshold, k, n): beginnings(found, threshold, k, n)
        for threshold, (k, n) in itertools.product(THRESHOLDS, RULES)
    }


def _key(threshold: float, k: int, n: int) -> str:
    return f"over {threshold:g} in {k} of {n}"


def _mean(values: Iterable[float]) -> float:
    return round(statistics.mean(values), 2)


def _median(hours: Sequence[int | None]) -> float | None:
    """Return the median; None where half of them saw nothing."""
    middle = statistics.median(float("inf") if each is None else each for each in hours)
    return None if middle == float("inf") else middle


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the result, draw it."""
    parser = argparse.ArgumentParser(prog="bench.monitor", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="of each month's draws")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    start = time.monotonic()
    with ProcessPoolExecutor(options.processes) as pool:
        known = measure(list(MONTHS), options.seeds, pool)
    known |= {
        "seeds": options.seeds,
        "months": len(MONTHS),
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__},
        "seconds": round(time.monotonic() - start),
    }
    RESULT_PATH.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    write_plots(known, IMAGES_PATH)
    print("\n".join(table_rows(json.loads(RESULT_PATH.read_text(encoding="utf-8")))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
