"""`make bench-train`: what the reader costs a step, what comes before the first step, what several workers gain.

In: nothing but this machine. Out: tables, and `build/bench/train.json`. The model is the demo's `wide_deep` on flights,
as it stands, and with wider layers where a step must be long enough to be worth spreading. Examples are shards as the
exporter writes them (GZIP), in memory. All trainings but those of `train_step` are the real program.

    reader     a step fed from files, from the reader's cache, from memory (`train_step`)
    start      from starting the process to the end of the first call, on all cores
    scaling    each worker on one core with one thread for its arithmetic:
               one worker alone; two trainings that do not talk (what is lost to shared memory and caches);
               two workers in lockstep (what is lost beyond that is the exchange of gradients, and waiting)
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.checkout import REPOSITORY_PATH
from bench.input import machine
from bench.tables import MEMORY_PATH
from bench.train_files import BATCH_SIZE, HIDDEN_UNITS, write_request, write_training_files
from bench.train_runs import lockstep, rate_of, time_start, time_steps, train_at_once

READER_LIMIT = 0.05
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "train.json"
_READER_ROWS = 1 << 16  # an epoch of whole batches
_ROWS = 2 * _READER_ROWS
_EPOCHS = {"as it stands": 10, "heavy": 1}  # of a turn
_HEAVY_UNITS, _HEAVY_BATCH = (2048, 1024, 512), 1024
_SPREAD_UNITS, _SPREAD_EPOCHS = (512, 256), 4

Result = Mapping[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.train", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each measurement (default: 5)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-train-", dir=MEMORY_PATH) as folder:
        reader_path, run_path = Path(folder, "reader"), Path(folder, "run")
        result = {
            "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": machine(),
            "rounds": options.rounds,
            "rows": {
                "reader": write_training_files(reader_path, _READER_ROWS),
                "others": write_training_files(run_path, _ROWS),
            },
            "reader": measure_reader(reader_path, options.rounds),
            "start": measure_start(run_path, options.rounds),
            "scaling": measure_scaling(run_path, options.rounds),
        }
    print(render(result))
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps(result, indent=2) + "\n")
    print(f"bench-train: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def measure_reader(folder_path: Path, rounds: int) -> list[dict[str, Any]]:
    """Return the seconds of a step by feed, of the model as it stands and of a heavy one."""
    sizes = {"as it stands": (HIDDEN_UNITS, BATCH_SIZE), "heavy": (_HEAVY_UNITS, _HEAVY_BATCH)}
    rows = []
    for name, (units, batch_size) in sizes.items():
        path = write_request(folder_path, f"reader {name}", units, epochs=1, batch_size=batch_size)
        measured = time_steps(path, rounds, _EPOCHS[name])
        slower = {feed: _slower(measured["seconds_per_step"], feed) for feed in ("files", "cache")}
        rows.append({"model": name, "hidden_units": list(units), **measured, "slower": slower, "limit": READER_LIMIT})
        print(f"bench-train: steps of the model {name}", flush=True)
    return rows


def measure_start(folder_path: Path, rounds: int) -> dict[str, float]:
    """Return the seconds from starting the process to the first steps, and the parts."""
    taken = []
    for number in range(rounds):
        taken.append(time_start(write_request(folder_path, f"start {number}", epochs=1)))
        print(f"bench-train: start {number + 1} of {rounds}", flush=True)
    names = dict.fromkeys(name for parts in taken for name in parts)
    return {name: round(statistics.median(parts.get(name, 0.0) for parts in taken), 2) for name in names}


def measure_scaling(folder_path: Path, rounds: int) -> dict[str, Any]:
    """Return examples/s of one worker, of two that do not talk, of two in lockstep."""
    rates: dict[str, list[float]] = {"one": [], "two_apart": [], "two_workers": []}

    def request(name: str) -> Path:
        return write_request(folder_path, name, _SPREAD_UNITS, epochs=_SPREAD_EPOCHS)

    for number in range(rounds):
        rates["one"] += map(rate_of, train_at_once([request(f"one {number}")]))
        apart = train_at_once([request(f"apart {number} {index}") for index in range(2)])
        rates["two_apart"].append(sum(map(rate_of, apart)))
        rates["two_workers"].append(rate_of(train_at_once([request(f"two {number}")] * 2, lockstep(2))[0]))
        print(f"bench-train: scaling {number + 1} of {rounds}", flush=True)
    one, apart_rate, two = (statistics.median(rates[name]) for name in ("one", "two_apart", "two_workers"))
    return {
        "batch_size_per_worker": BATCH_SIZE,
        "hidden_units": list(_SPREAD_UNITS),
        "examples_per_s": rates,
        "ideal": round(2 * one),
        "of_ideal": round(two / (2 * one), 3),
        "of_two_apart": round(two / apart_rate, 3),
        "exchange_share": round(max(0.0, 1 - two / apart_rate), 3),
    }


def render(result: Result) -> str:
    """Return the tables."""
    lines = [f"{'a step (ms)':<44}{'memory':>9}{'cache':>9}{'':>7}{'files':>9}{'':>7}{'reader alone':>14}"]
    for row in result["reader"]:
        taken = {feed: statistics.median(some) * 1000 for feed, some in row["seconds_per_step"].items()}
        what = f"{row['model']}: {row['parameters']:,} parameters, {row['batch_size']} rows"
        slower = row["slower"]
        lines.append(
            f"{what:<44}{taken['memory']:>9.2f}{taken['cache']:>9.2f}{slower['cache']:>+7.1%}{taken['files']:>9.2f}"
            f"{slower['files']:>+7.1%}{taken['alone']:>14.2f}"
        )
    start = dict(result["start"])
    lines.append(f"first steps {start.pop('total')} s after the process was started: {_listed(start)}")
    scaling = result["scaling"]
    titles = {"one": "one worker", "two_apart": "two trainings at once", "two_workers": "two workers in lockstep"}
    lines.append(f"{'':<26}{'examples/s':>12}{'of ideal':>10}")
    for name, rates in scaling["examples_per_s"].items():
        rate = statistics.median(rates)
        ideal = scaling["ideal"] / (2 if name == "one" else 1)
        lines.append(f"{titles[name]:<26}{rate:>12,.0f}{rate / ideal:>10.0%}")
    lines.append(f"exchange of gradients and waiting: {scaling['exchange_share']:.1%} of a step of two workers")
    return "\n".join(lines)


def _slower(taken: Mapping[str, Sequence[float]], feed: str) -> float:
    """Return the median over the rounds of how much longer a step took than from memory in the same round.

    Turns of a round follow each other; what else happens on the machine hits rounds more than turns.
    """
    ratios = [mine / memory for mine, memory in zip(taken[feed], taken["memory"], strict=True)]
    return round(statistics.median(ratios) - 1, 4)


def _listed(parts: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {seconds}" for name, seconds in parts.items())


if __name__ == "__main__":
    sys.exit(main())
