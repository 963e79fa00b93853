"""`make bench-scoring`: rows a second of a batch prediction on one core, against the endpoint and the bare model.

In: nothing but this machine; a local cloud is started, a model of the flights is trained. Out: a table with medians and
ratios, and `build/bench/scoring.json`. Everything is held to one core, the local cloud's servers and the model's own
process too, so rows a second are rows a second and core. Contenders take turns, for several rounds; each one's answers
must be those of the bare model.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.checkout import REPOSITORY_PATH
from bench.cloud import run_trainer, running_cloud, write_result
from localcloud.supervision.processes import descendants

CEILING = "SavedModel"
"""Whose rate the others are held against: the model called with as many rows at once."""
TOLERANCE = 1e-5
ONE_BY_ONE = 500
"""Rows that are asked for one by one: more of them take long and say the same."""
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "scoring.json"

Reading = Mapping[str, Any]  # rows, seconds, and scores by key


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.scoring", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="readings per contender (default: 5)")
    parser.add_argument("--rows", type=int, default=20_000, help="rows that are scored (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=_OUT_PATH, help="default: build/bench/scoring.json")
    options = parser.parse_args(arguments)
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # of all processes that this one starts, too
    with tempfile.TemporaryDirectory(prefix="bench-scoring-") as folder:
        run_trainer(os.environ, "bench.scoring_contender", "make", folder, str(options.rows))
        with running_cloud(Path(folder)) as environment:
            os.environ.update(environment)
            readings = take_turns(contenders(Path(folder)), options.rounds)
    rows = summarise(readings)
    print(render(rows))
    write_result("bench-scoring", options.out, options.rounds, rows)
    return 0


def contenders(folder_path: Path) -> dict[str, Callable[[], Reading]]:
    """Return the ways to the answers by name, all of the same model."""
    from bench.scoring_service import BATCH_SIZE, Service  # Google's clients read the environment that was just set

    service = Service(folder_path)

    def call(size: int) -> Reading:
        done = run_trainer(os.environ, "bench.scoring_contender", "direct", str(folder_path), str(size))
        reading: Reading = json.loads(done.stdout.splitlines()[-1])
        return reading

    return {
        "score, table to table": service.score_table,
        "score, JSON lines to JSON lines": service.score_lines,
        f"endpoint, {BATCH_SIZE} rows a request": lambda: service.ask_endpoint(BATCH_SIZE),
        "endpoint, one row a request": lambda: service.ask_endpoint(1, ONE_BY_ONE),
        f"{CEILING}, {BATCH_SIZE} rows a call": lambda: call(BATCH_SIZE),
    }


def take_turns(ways: Mapping[str, Callable[[], Reading]], rounds: int) -> dict[str, list[Reading]]:
    """Let every contender answer once per round.

    Raises:
        ValueError: One does not answer as the bare model does.
    """
    readings: dict[str, list[Reading]] = {name: [] for name in ways}
    for number in range(rounds):
        for name, way in ways.items():
            before = used_cpu_s()
            reading = way()
            readings[name].append({"cpu_s": used_cpu_s() - before, **reading})
        print(f"bench-scoring: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    expected = next(taken[0]["scores"] for name, taken in readings.items() if name.startswith(CEILING))
    for name, taken in readings.items():
        for reading in taken:
            require_same(name, reading, expected)
    return readings


def used_cpu_s() -> float:
    """Return the CPU seconds of this process and of all that it started, the local cloud and ended ones too."""
    ticks = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        with contextlib.suppress(OSError):  # it has just ended
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # its own, and those of its children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")


def require_same(name: str, reading: Reading, expected: Mapping[str, float]) -> None:
    """Refuse answers of a contender that are fewer, or others, than the bare model's.

    Raises:
        ValueError: They are.
    """
    scores = reading["scores"]
    far = max((abs(score - expected[key]) for key, score in scores.items()), default=0.0)
    if len(scores) != reading["rows"] or far > TOLERANCE:
        raise ValueError(
            f"{name}: {len(scores)} answers for {reading['rows']} rows, {far:g} away from the bare model's"
        )


def summarise(readings: Mapping[str, Sequence[Reading]]) -> list[dict[str, Any]]:
    """Return a row per contender: medians, and its rate as a share of the bare model's.

    The share is the median of the rounds' shares: what else happens on the machine hits rounds more than turns.
    """
    rates = {name: [reading["rows"] / reading["seconds"] for reading in taken] for name, taken in readings.items()}
    ceiling = next(taken for name, taken in rates.items() if name.startswith(CEILING))
    return [
        {
            "way": name,
            "rows": taken[0]["rows"],
            "rate": statistics.median(rates[name]),
            "share": statistics.median(rate / most for rate, most in zip(rates[name], ceiling, strict=True)),
            "whole_s": statistics.median(reading.get("whole_s", reading["seconds"]) for reading in taken),
            "per_cpu_s": statistics.median(reading["rows"] / reading["cpu_s"] for reading in taken),
        }
        for name, taken in readings.items()
    ]


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, as `packages/bench/docs/performance.md` has it."""
    lines = ["| way | rows | rows/s | of the bare model | rows per CPU s | whole, s |", f"|{'---|' * 6}"]
    for row in rows:
        lines.append(
            f"| {row['way']} | {row['rows']:,} | {row['rate']:,.0f} | {row['share']:.3f} | {row['per_cpu_s']:,.0f} "
            f"| {row['whole_s']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
