"""`make bench-readers`: a training's ways to its examples, against each other: files, and the run table itself.

In: nothing but this machine; a local cloud is started. Out: a table with medians and ratios, and
`build/bench/readers.json`. The flights lie in a run table and, exported once, in a bucket; each contender reads every
number and text of the same training split in a process of its own, in turns, for several rounds. The local cloud's
servers share the cores, so the process's own CPU time stands beside the rows a second.
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
from bench.cloud import TRAINER_PYTHON, Cloud, make_request, run_trainer, running_cloud, write_result
from localcloud.statements import statement

TABLE = "bench.flights_run"
TFIO_PYTHON = REPOSITORY_PATH / ".venv" / "tfio" / "bin" / "python"
CONTENDERS = {"tfrecord": TRAINER_PYTHON, "storage_read": TRAINER_PYTHON, "tensorflow_io": TFIO_PYTHON}
"""By `training.input` or `training.reader`: the environment that has it."""
_FIGURES = {"rows/s": "rate", "to the first batch, s": "first_s", "CPU s": "cpu_s"}
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "readers.json"
_RUN_TABLE_SQL = Path(__file__).parent / "sql" / "export_run_table.sql"

Reading = Mapping[str, float]  # what a contender prints


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.readers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="readings per contender (default: 5)")
    parser.add_argument("--copies", type=int, default=3, help="of the year's flights (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=_OUT_PATH, help="default: build/bench/readers.json")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-readers-") as folder, running_cloud(Path(folder)) as environment:
        manifest_uri = write_examples(Cloud(environment), environment, Path(folder), options.copies)
        readings = take_turns(environment, manifest_uri, options.rounds)
    rows = summarise(readings)
    print(render(rows))
    write_result("bench-readers", options.out, options.rounds, rows)
    return 0


def write_examples(cloud: Cloud, environment: Mapping[str, str], folder: Path, copies: int, spans: int = 7) -> str:
    """Make the run table and export it; give the address of the manifest."""
    cloud.create_dataset("bench")
    numbers = {"copies": str(copies), "spans": str(spans), "train_shards": "4"}
    cloud.query(statement(_RUN_TABLE_SQL.read_text(), table=TABLE, **numbers))
    request = make_request(cloud, TABLE)
    request_path = folder / "request.json"
    request_path.write_text(json.dumps(request))
    run_trainer(environment, "trainer.task", "export", "--request", str(request_path))
    return str(request["manifest_uri"])


def take_turns(environment: Mapping[str, str], manifest_uri: str, rounds: int) -> dict[str, list[Reading]]:
    """Let every contender read once per round; give what each reading took.

    Raises:
        ValueError: They did not read the same number of rows.
    """
    readings: dict[str, list[Reading]] = {name: [] for name in CONTENDERS}
    for number in range(rounds):
        for name, python in CONTENDERS.items():
            done = run_trainer(environment, "bench.reader_contender", name, manifest_uri, python=python)
            readings[name].append(json.loads(done.stdout.splitlines()[-1]))
        print(f"bench-readers: round {number + 1} of {rounds}", file=sys.stderr, flush=True)
    counted = {name: {reading["rows"] for reading in taken} for name, taken in readings.items()}
    if len(set().union(*counted.values())) != 1:
        raise ValueError(f"the readers do not read the same rows: {counted}")
    return readings


def summarise(readings: Mapping[str, Sequence[Reading]]) -> list[dict[str, Any]]:
    """Return a row per contender: medians, and how many times the rate of tensorflow-io its own is.

    The ratio is the median of the rounds' ratios: what else happens on the machine hits rounds more than turns.
    """
    rates = {name: [reading["rows"] / reading["seconds"] for reading in taken] for name, taken in readings.items()}
    rows = []
    for name, taken in readings.items():
        ratios = [rate / other for rate, other in zip(rates[name], rates["tensorflow_io"], strict=True)]
        rows.append(
            {
                "reader": name,
                "rows": int(taken[0]["rows"]),
                "rate": statistics.median(rates[name]),
                "first_s": statistics.median(reading["first_s"] for reading in taken),
                "cpu_s": statistics.median(reading["cpu_s"] for reading in taken),
                "times": statistics.median(ratios),
            }
        )
    return rows


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table, as `packages/bench/docs/performance.md` has it."""
    lines = [f"| reader | rows | {' | '.join(_FIGURES)} | times tensorflow-io |", f"|{'---|' * (len(_FIGURES) + 3)}"]
    for row in rows:
        lines.append(
            f"| {row['reader']} | {row['rows']:,} | {row['rate']:,.0f} | {row['first_s']:.1f} | {row['cpu_s']:.1f} "
            f"| {row['times']:.1f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
