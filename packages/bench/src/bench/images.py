"""`make bench-images`: images that are objects, fetched many at a time against one by one.

In: nothing but this machine; a local cloud is started. Out: a table with medians and ratios, and
`build/bench/images.json`. Each contender fetches and resizes the same photos as the export does, in a process of its
own, in turns, for several rounds: as fast as the local cloud answers, which is on the same cores, and once more with a
wait before each answer, as a bucket across a network has it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.checkout import REPOSITORY_PATH
from bench.cloud import run_trainer, running_cloud, write_result
from localcloud import faults
from localcloud.state import State

AT_ONCE = (1, 32)
"""One by one, and what the export does."""
DELAYS_S = (0.0, 0.03, 0.1)
_FOLDER = "bench/photos"
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "images.json"

Turn = tuple[float, int]  # seconds before each answer, fetches at once
Reading = Mapping[str, float]  # what a contender prints


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.images", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="fetches of all photos per contender (default: 5)")
    parser.add_argument("--photos", type=int, default=200, help="JPEG files of 640 x 480 (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=_OUT_PATH, help="default: build/bench/images.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-images-") as folder, running_cloud(Path(folder)) as environment:
        store = faults.FaultStore(State(Path(folder) / "state").faults_path)
        readings = take_turns(environment, store, options.photos, options.rounds)
    rows = summarise(readings)
    print(render(rows))
    write_result("bench-images", options.out, options.rounds, rows)
    return 0


def take_turns(
    environment: Mapping[str, str], store: faults.FaultStore, photos: int, rounds: int
) -> dict[Turn, list[Reading]]:
    """Write the photos, and let every contender fetch them once per round."""
    uri = f"gs://{environment['RETRAINING_BUCKET']}/{_FOLDER}"
    run_trainer(environment, "bench.image_contender", uri, str(photos))
    readings: dict[Turn, list[Reading]] = {(delay, fetches): [] for delay in DELAYS_S for fetches in AT_ONCE}
    for number in range(rounds):
        for (delay, fetches), taken in readings.items():
            store.delete()
            if delay:
                action = {"kind": "delay", "seconds": delay}
                store.add(faults.check({"target": f"storage.objects.get {uri}/*", "count": 0, "action": action}))
            done = run_trainer(environment, "bench.image_contender", uri, str(photos), str(fetches))
            taken.append(json.loads(done.stdout.splitlines()[-1]))
        print(f"bench-images: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    return readings


def summarise(readings: Mapping[Turn, Sequence[Reading]]) -> list[dict[str, Any]]:
    """Return a row per contender: medians, and how many times the rate of one by one its own is, round by round."""
    rates = {turn: [reading["rows"] / reading["seconds"] for reading in taken] for turn, taken in readings.items()}
    return [
        {
            "delay_ms": round(1000 * delay),
            "at_once": fetches,
            "rate": statistics.median(rates[delay, fetches]),
            "cpu_s": statistics.median(reading["cpu_s"] for reading in taken),
            "times": statistics.median(
                rate / alone for rate, alone in zip(rates[delay, fetches], rates[delay, AT_ONCE[0]], strict=True)
            ),
        }
        for (delay, fetches), taken in readings.items()
    ]


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, as `packages/bench/docs/performance.md` has it."""
    lines = ["| wait before each answer | at once | rows/s | CPU s | times one by one |", "|---|---|---|---|---|"]
    for row in rows:
        wait = f"{row['delay_ms']} ms" if row["delay_ms"] else "none"
        lines.append(f"| {wait} | {row['at_once']} | {row['rate']:,.0f} | {row['cpu_s']:.1f} | {row['times']:.1f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
