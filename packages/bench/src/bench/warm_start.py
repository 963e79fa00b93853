"""`make bench-warm-start`: ten nights of flights, each trained anew and from the weights of the night before.

In: nothing but this machine. Out: a table, and `build/bench/warm_start.json`. A night has the 60 days before it, of
which the newest 7 are tested, as `include/models/flight_delays.yaml` has them; `wide_deep` is trained by the recipe,
with the trainer's own code. The first night is trained anew; from then on `warm` begins with the weights of the night
before, in this night's units, and `anew` with those of the seed. Steps are optimizer steps: to the epoch that is kept,
and to the end, which early stopping decides.
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.checkout import REPOSITORY_PATH
from bench.flights import LABEL, flights_by_day
from bench.input import machine
from bench.models_ours import Examples, Trained
from bench.models_scores import measure
from bench.models_sets import SETS
from bench.tables import MEMORY_PATH

_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "warm_start.json"
_FIRST_NIGHT = datetime.date(2013, 11, 11)
_WINDOW_DAYS, _TEST_DAYS, _VALIDATION_PERCENT = 60, 7, 10
_SET = SETS["flights"]

Line = Mapping[str, Any]
"""A training: night, way, steps, best_steps, seconds, loss, score."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train all nights, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.warm_start", description=__doc__)
    parser.add_argument("--nights", type=int, default=10, help="one after the other (default: %(default)s)")
    parser.add_argument("--epochs", type=int, help="at most; by default by the recipe")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-warm-start-", dir=MEMORY_PATH) as folder:
        lines = list(train_nights(Path(folder), options.nights, options.epochs))
    print(render(lines))
    result = {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "trainings": lines,
    }
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps(result, indent=2) + "\n")
    print(f"bench-warm-start: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def train_nights(folder_path: Path, nights: int, epochs: int | None = None) -> Iterator[Line]:
    """Yield what each training came to."""
    table, day = flights_by_day()
    days = np.array(day.to_numpy(), "datetime64[D]")
    before: Path | None = None
    training: dict[str, Any] = {"epochs": epochs} if epochs else {}
    for number in range(nights):
        night = _FIRST_NIGHT + datetime.timedelta(days=number)
        path = folder_path / f"{night}.parquet"
        pq.write_table(_window(table, days, night), path)
        examples = Examples.write(path, _SET, folder_path / str(night))
        labels = examples.test["label"].to_numpy()
        for way, initial in (("anew", None), ("warm", before)) if before else (("anew", None),):
            done = examples.train_default(1 + number, out=way, initial=initial, **training)
            line = {"night": str(night), "way": way, "rows": len(examples.train), **_course(done)}
            line["loss"], line["score"] = measure(_SET, labels, done.answers)
            print(json.dumps(line), flush=True)
            yield line
        before = examples.folder_path / ("warm" if before else "anew")


def _window(table: pa.Table, days: np.ndarray[Any, Any], night: datetime.date) -> pa.Table:
    """Return a night's examples with their parts."""
    end = np.datetime64(night - datetime.timedelta(days=1))
    chosen = (days >= end - _WINDOW_DAYS) & (days < end)
    place = np.flatnonzero(chosen)
    kept_apart = (place * 2654435761 >> 7) % 100 < _VALIDATION_PERCENT  # by the flight, the same every night
    part = np.where(days[place] >= end - _TEST_DAYS, "test", np.where(kept_apart, "validation", "train"))
    rows = table.take(place).rename_columns(["label" if name == LABEL else name for name in table.column_names])
    return rows.append_column("part", pa.array(part.tolist()))


def _course(done: Trained) -> dict[str, Any]:
    report = done.report
    per_epoch = report.steps / report.epochs_run
    return {
        "steps": report.steps,
        "best_steps": round(report.best_epoch * per_epoch),
        "epochs": report.epochs_run,
        "seconds": round(done.seconds, 1),
        "anew": dict(report.initial.anew) if report.initial else {},
    }


def render(lines: Sequence[Line]) -> str:
    """Return the table of docs/models.md, with the sums of the nights that both ways have."""
    rows = ["| night | steps anew | warm | to the epoch kept, anew | warm | log loss anew | warm | AUC anew | warm |"]
    rows.append("|---|---|---|---|---|---|---|---|---|")
    nights: dict[str, dict[str, Line]] = {}
    for line in lines:
        nights.setdefault(line["night"], {})[line["way"]] = line
    both = {night: ways for night, ways in nights.items() if len(ways) == len(("anew", "warm"))}
    for night, ways in both.items():
        anew, warm = ways["anew"], ways["warm"]
        cells = [f"{side[name]:,}" for name in ("steps", "best_steps") for side in (anew, warm)]
        cells += [f"{side[name]:.4f}" for name in ("loss", "score") for side in (anew, warm)]
        rows.append(f"| {night} | {' | '.join(cells)} |")
    sums = {
        (name, way): sum(ways[way][name] for ways in both.values())
        for name in ("steps", "best_steps", "seconds")
        for way in ("anew", "warm")
    }
    for name in ("steps", "best_steps", "seconds"):
        saved = 1 - sums[name, "warm"] / sums[name, "anew"]
        rows.append(f"{name}: {sums[name, 'anew']:,.0f} anew, {sums[name, 'warm']:,.0f} warm: {saved:.0%} less")
    for name in ("loss", "score"):
        gains = [ways["warm"][name] - ways["anew"][name] for ways in both.values()]
        rows.append(
            f"{name}, warm less anew: mean {statistics.fmean(gains):+.4f}, {min(gains):+.4f} to {max(gains):+.4f}"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    raise SystemExit(main())
