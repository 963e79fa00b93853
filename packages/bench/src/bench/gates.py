"""`make bench-gates`: how often the judge errs, in simulated comparisons of models whose true difference is known.

In: `flight_scores.parquet`, the answers that the flights model left on its test days. Out:
`gates.json`: equal models, gains of several sizes, a year of nights, and the cells of `gates_cells.py` and
`gates_days.py`; and the
pictures of `docs/evaluation.md`. Two models are the real answers, as logits, each with noise of its own; one is better
by what is added to the logits of the late flights. Each comparison draws its test rows anew and asks the judge's own
bootstrap and the gate's own correction.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from bench.checkout import REPOSITORY_PATH
from bench.gates_cells import measure_cells, table_head, table_lines
from bench.gates_days import days_head, measure_days
from bench.gates_plots import write_plots
from bench.origin import with_origin
from retraining.core.promotion.slices import SliceLoss, surely_worse
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics, bootstrap_slices
from trainer.objective.evidence import Rows
from trainer.objective.metrics import Floats, area

SCORES_PATH = Path(__file__).with_name("flight_scores.parquet")
RESULT_PATH = Path(__file__).with_name("gates.json")
IMAGES_PATH = REPOSITORY_PATH / "docs" / "images"
GAINS = (0.002, 0.005, 0.01, 0.02)
CONFIDENCE, MAX_SLICE_LOSS, LEAST_ROWS = 0.95, 0.03, 300  # include/models/flight_delays.yaml
SAMPLES = 200
"""Fewer than the judge's 500: its decisions hardly differ, and there are thousands."""
QUICK = 50
"""Comparisons of each cell where the tables alone are asked for."""
NOISE = 0.12
"""Of a logit: the standard error of a difference is then 0.0025, as between two nights of the demonstration."""
NIGHTS, DECAY = 365, 0.0005
"""Nights of a year, and what a champion's AUC loses in a night of slow decay."""


@dataclass(frozen=True, kw_only=True)
class Population:
    """What test rows are drawn from: labels, logits, and each row's slices by column."""

    labels: Floats
    logits: Floats
    columns: Mapping[str, Sequence[str]]


@cache
def population() -> Population:
    """Return the flights of the test days; carrier and origin stand in their keys."""
    table = pq.read_table(SCORES_PATH).to_pydict()
    scores, keys = np.array(table["score"]), [key.split("-") for key in table["key"]]
    columns = {"carrier": [key[3] for key in keys], "origin": [key[5] for key in keys]}
    return Population(labels=np.array(table["label"]), logits=np.log(scores / (1 - scores)), columns=columns)


def shift_for(gain: float) -> float:
    """Return what is added to the logits of the late flights so that AUC is higher by so much."""
    if gain == 0:
        return 0.0
    flights, random = population(), np.random.default_rng(0)
    logits = flights.logits + NOISE * random.normal(size=len(flights.logits))
    goal = area(flights.labels, logits) or 0.0
    low, high = -1.0, 1.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        reached = area(flights.labels, logits + middle * flights.labels) or 0.0
        low, high = (middle, high) if reached < goal + gain else (low, middle)
    return (low + high) / 2


def compare(seed: int, challenger: float, champion: float = 0.0, *, slices: bool = False) -> dict[str, Any]:
    """Compare two models once, as a night does: on rows drawn anew, each model with noise of its own.

    Args:
        seed: Of this comparison.
        challenger: Its shift.
        champion: The champion's.
        slices: Whether slices are looked at.
    """
    flights, random = population(), np.random.default_rng(seed)
    n = len(flights.labels)
    rows = random.integers(0, n, n)
    labels = flights.labels[rows]
    sides = [flights.logits[rows] + NOISE * random.normal(size=n) + shift * labels for shift in (challenger, champion)]
    pair = Pair(labels=labels, challenger=sides[0], champion=sides[1])
    resampling = Resampling(samples=SAMPLES, seed=seed, confidence=CONFIDENCE)
    found = bootstrap_metrics(pair, ["auc"], resampling)["auc"]
    result: dict[str, Any] = {"promoted": found.low > 0, "gain": found.mean, "deviation": found.deviation}
    if slices:
        cuts = [part for values in flights.columns.values() for part in _cut(np.array(values)[rows])]
        losses = [
            SliceLoss(mean=-each.mean, deviation=each.deviation or 0.0, where="", degrees=evidence.effective - 1)
            for each, evidence in bootstrap_slices(pair, "auc", cuts, resampling)
            if each
        ]
        level = 1 - CONFIDENCE
        result["blocked"] = bool(surely_worse(losses, MAX_SLICE_LOSS, level))
        result["blocked_at_no_loss"] = bool(surely_worse(losses, 0.0, level))
        result["blocked_by_points"] = any(loss.mean > MAX_SLICE_LOSS for loss in losses)
    return result


def simulate_year(seed: int, shifts: Sequence[float]) -> dict[str, Any]:
    """Return the nights of a promotion and the champion's age each night; a challenger is always fresh.

    Args:
        seed: Of the year.
        shifts: Of a champion, by its age in nights.
    """
    age, promotions, ages = 1, [], []
    for night in range(NIGHTS):
        ages.append(age)
        if compare(seed * NIGHTS + night, shifts[0], shifts[age])["promoted"]:
            promotions.append(night)
            age = 0
        age += 1
    return {"promotions": promotions, "ages": ages}


def _cut(values: npt.NDArray[np.str_]) -> list[Rows]:
    """Return the rows of each value that are enough to judge."""
    parts = (np.flatnonzero(values == value) for value in np.unique(values))
    return [rows for rows in parts if len(rows) >= LEAST_ROWS]


def _share(results: Sequence[Mapping[str, Any]], what: str) -> float:
    return sum(bool(result[what]) for result in results) / len(results)


def measure(comparisons: int, per_gain: int, years: int, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Run all simulations."""

    def repeat(start: int, times: int, shift: float, **how: bool) -> list[dict[str, Any]]:
        seeds = range(start * 10_000, start * 10_000 + times)
        return list(pool.map(partial(compare, challenger=shift, **how), seeds, chunksize=10))

    equal = repeat(0, comparisons, 0.0, slices=True)
    known: dict[str, Any] = {
        "equal": {
            "promoted": _share(equal, "promoted"),
            "deviation": float(np.mean([result["deviation"] for result in equal])),
            **{what: _share(equal, what) for what in ("blocked", "blocked_at_no_loss", "blocked_by_points")},
        },
        "gains": {},
    }
    for place, gain in enumerate(GAINS, start=1):
        found = repeat(place, per_gain, shift_for(gain))
        known["gains"][str(gain)] = {
            "promoted": _share(found, "promoted"),
            "gain": float(np.mean([result["gain"] for result in found])),
        }
    for name, decay in (("equal_nights", 0.0), ("slow_decay", DECAY)):
        ages = range(0, NIGHTS + 2, 61)
        shifts = np.interp(range(NIGHTS + 1), ages, [shift_for(-decay * age) for age in ages]).tolist()
        found_years = list(pool.map(partial(simulate_year, shifts=shifts), range(500, 500 + years)))
        known[name] = {
            "promotions": float(np.mean([len(year["promotions"]) for year in found_years])),
            "regret": float(np.mean([decay * age for year in found_years for age in year["ages"]])),
            "first_year": found_years[0],
        }
    return known


def print_tables(cells: Mapping[str, Any], days: Mapping[str, Any]) -> None:
    """Print the shares of false promotions and stops beside the promise."""
    for name in ("promotions", "stops"):
        times, most = cells["comparisons"][name], 100 * cells["promise"]
        print(f"false {name} in {times:,} comparisons of each cell, at most {most:g} %")
        print("\n".join([table_head(), *table_lines(cells[name])]))
    most = 100 * days["promise"]
    print(f"false promotions in {days['comparisons']:,} comparisons of each cell, by days at most {most:g} %")
    print("\n".join([days_head(), *table_lines(days["promotions"])]))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, write the result, draw it."""
    parser = argparse.ArgumentParser(prog="bench.gates", description=__doc__)
    parser.add_argument("--comparisons", type=int, default=1000, help="of equal models")
    parser.add_argument("--per-gain", type=int, default=1000, help="comparisons of each gain")
    parser.add_argument("--years", type=int, default=1, help="of each kind")
    parser.add_argument(
        "--per-cell", type=int, default=1000, help="comparisons of equal models where evidence is scarce"
    )
    parser.add_argument("--cells-only", action="store_true", help="keep what gates.json has of the flights")
    parser.add_argument("--days-only", action="store_true", help="keep what gates.json has of all but the days")
    parser.add_argument("--quick", action="store_true", help="print small tables (5 min), and write nothing")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args(arguments)
    kept = options.cells_only or options.days_only
    known = json.loads(RESULT_PATH.read_text(encoding="utf-8")) if kept else {}
    with ProcessPoolExecutor(options.processes) as pool:
        if options.quick:
            print_tables(measure_cells(QUICK, pool), measure_days(QUICK, pool))
            return 0
        if not kept:
            known = with_origin(lambda: measure(options.comparisons, options.per_gain, options.years, pool))
            known |= {
                "comparisons": options.comparisons,
                "per_gain": options.per_gain,
                "years": options.years,
                "rows": len(population().labels),
                "decay": DECAY,
            }
        if not options.days_only:
            known["cells"] = with_origin(lambda: measure_cells(options.per_cell, pool))
        known["days"] = with_origin(lambda: measure_days(options.per_cell, pool))
    RESULT_PATH.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    write_plots(known, IMAGES_PATH)
    print_tables(known["cells"], known["days"])
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
