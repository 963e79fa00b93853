"""`make bench-train`: what several workers gain, what the reader costs a step, what comes before the first step.

In: nothing but this machine. Out: a table, and `build/bench/train.json`. Trainings are the real program, `python -m
trainer.task train`, each worker on one core with one thread for its arithmetic:

    one worker            alone: the other core is idle; twice its rate is the ideal
    two that do not talk  two such trainings at once: what is lost to shared memory and caches
    two workers           one training in lockstep: what is lost beyond that is the exchange of gradients, and waiting

The step fed by the reader is held against one fed from memory in one process (`train_step`).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.input import machine
from bench.tables import REPOSITORY_PATH
from bench.train_files import write_request, write_run

READER_LIMIT = 0.05
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "train.json"
_ROWS, _VALIDATION_ROWS = 300_000, 20_000
_EPOCHS = 4
_HIDDEN_UNITS = (512, 256)
_BATCH_SIZE = 512
_HEAVY_UNITS, _HEAVY_BATCH = (1024, 512, 256), 1024
_STEPS = 160
_RATE = re.compile(r"epoch (\d+)/\d+ .* (\d+) examples/s$")
_START = re.compile(r"train: first steps ([\d.]+) s after the start \((.*)\)")
Task = Mapping[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.train", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of each measurement (default: 3)")
    options = parser.parse_args(arguments)
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - memory, so that the disk is not measured
    with tempfile.TemporaryDirectory(prefix="bench-train-", dir=memory) as folder:
        write_run(Path(folder), _ROWS, _VALIDATION_ROWS)
        result = {
            "machine": machine(),
            "rounds": options.rounds,
            "scaling": measure_scaling(Path(folder), options.rounds),
            "reader": measure_reader(Path(folder), options.rounds),
        }
    print(render(result))
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps(result, indent=2) + "\n")
    print(f"bench-train: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def measure_scaling(folder_path: Path, rounds: int) -> dict[str, Any]:
    """Give examples/s of one worker, two that do not talk, two in lockstep; and the parts of one's start."""
    rates: dict[str, list[float]] = {"one": [], "two_apart": [], "two_workers": []}
    starts: list[dict[str, float]] = []
    for number in range(rounds):
        alone = _run_all(folder_path, f"one-{number}", [None])
        rates["one"].append(_rate(alone[0]))
        starts.append(_start_parts(alone[0]))
        apart = _run_all(folder_path, f"apart-{number}", [None, None])
        rates["two_apart"].append(sum(_rate(lines) for lines in apart))
        tasks = _tasks(2)
        rates["two_workers"].append(_rate(_run_all(folder_path, f"two-{number}", tasks)[0]))
        print(f"bench-train: round {number + 1} of {rounds}", flush=True)
    one, apart_rate, two = (statistics.median(rates[name]) for name in ("one", "two_apart", "two_workers"))
    return {
        "batch_size_per_worker": _BATCH_SIZE,
        "hidden_units": list(_HIDDEN_UNITS),
        "examples_per_s": rates,
        "of_ideal": round(two / (2 * one), 3),
        "of_two_apart": round(two / apart_rate, 3),
        "exchange_share": round(max(0.0, 1 - two / apart_rate), 3),
        "start": {
            name: round(statistics.median(parts.get(name, 0.0) for parts in starts), 2)
            for name in dict.fromkeys(name for parts in starts for name in parts)
        },
    }


def measure_reader(folder_path: Path, rounds: int) -> dict[str, Any]:
    """Give the seconds of a step fed by the reader and of one fed from memory."""
    training = {"epochs": 1, "batch_size": _HEAVY_BATCH}
    request_path = write_request(folder_path, "reader", training, hidden_units=_HEAVY_UNITS)
    command = [sys.executable, "-m", "bench.train_step", str(request_path), str(rounds + 2), str(_STEPS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench-train: train_step: {done.stderr.strip().splitlines()[-1:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    reader, memory = (statistics.median(found["seconds_per_step"][feed]) for feed in ("reader", "memory"))
    return {**found, "hidden_units": list(_HEAVY_UNITS), "slower": round(reader / memory - 1, 4), "limit": READER_LIMIT}


def render(result: Mapping[str, Any]) -> str:
    """Give the table."""
    scaling, reader = result["scaling"], result["reader"]
    medians = {name: statistics.median(rates) for name, rates in scaling["examples_per_s"].items()}
    words = {"one": "one worker", "two_apart": "two trainings at once", "two_workers": "two workers in lockstep"}
    lines = [f"{'':<26}{'examples/s':>12}{'of ideal':>10}"]
    lines += [
        f"{words[name]:<26}{rate:>12,.0f}{rate / medians['one'] / (1 if name == 'one' else 2):>10.0%}"
        for name, rate in medians.items()
    ]
    lines.append(f"exchange of gradients and waiting: {scaling['exchange_share']:.1%} of a step of two workers")
    steps = {feed: statistics.median(taken) * 1000 for feed, taken in reader["seconds_per_step"].items()}
    lines.append(
        f"a step of {reader['batch_size']} rows, {reader['parameters']:,} parameters: {steps['reader']:.1f} ms fed by "
        f"the reader, {steps['memory']:.1f} ms from memory: {reader['slower']:+.1%} (limit {READER_LIMIT:.0%})"
    )
    start = dict(scaling["start"])
    total = start.pop("total")
    lines.append(f"first step after {total} s: " + ", ".join(f"{name} {took}" for name, took in start.items()))
    return "\n".join(lines)


def _tasks(workers: int) -> list[Task]:
    """Give TF_CONFIG for each worker."""
    roles = ["chief", *["worker"] * (workers - 1)]
    cluster: dict[str, list[str]] = {}
    for role in roles:
        cluster.setdefault(role, []).append(f"127.0.0.1:{_free_port()}")
    return [
        {"cluster": cluster, "task": {"type": role, "index": max(0, index - 1)}} for index, role in enumerate(roles)
    ]


def _run_all(folder_path: Path, name: str, tasks: Sequence[Task | None]) -> list[list[str]]:
    """Train with each task in a process of its own, each on a core of its own; gives what they said.

    Tasks without a cluster are trainings of their own.
    """
    training = {"epochs": _EPOCHS, "batch_size": _BATCH_SIZE}
    cores = sorted(os.sched_getaffinity(0))
    processes = []
    shared = write_request(folder_path, name, training, hidden_units=_HIDDEN_UNITS) if all(tasks) else None
    for index, task in enumerate(tasks):
        path = shared or write_request(folder_path, f"{name}-{index}", training, hidden_units=_HIDDEN_UNITS)
        threads = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2", "OMP_NUM_THREADS": "1"}
        environ = {**os.environ, **threads, **({"TF_CONFIG": json.dumps(task)} if task else {})}
        command = ["taskset", "-c", str(cores[index % len(cores)])]
        command += [sys.executable, "-m", "trainer.task", "train", f"--request={path}"]
        processes.append(
            subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        )
    said = []
    for process in processes:
        out, err = process.communicate(timeout=600)
        if process.returncode:
            raise SystemExit(f"bench-train: {name}: {err.strip().splitlines()[-1:]}")
        said.append(out.splitlines())
    return said


def _rate(lines: Sequence[str]) -> float:
    """Give the median examples/s of the epochs after the first, in which functions are compiled."""
    found = [match for match in map(_RATE.match, lines) if match]
    return statistics.median(float(match[2]) for match in found if int(match[1]) > 1)


def _start_parts(lines: Sequence[str]) -> dict[str, float]:
    match = next(match for match in map(_START.match, lines) if match)
    parts = (part.rsplit(" ", 1) for part in match[2].split(", "))
    return {"total": float(match[1]), **{name: float(seconds) for name, seconds in parts}}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
