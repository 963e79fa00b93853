"""`make bench-environments`: the same training in two environments of the trainer: the way to its first step, a step.

In: nothing but this machine. Out: a table, and `build/bench/environments.json`. The model is the demo's `wide_deep` on
flights, as it stands and with wider layers. The environments take turns within each round, and are compared within it:

    start       from starting the process to the end of the first call, on all cores, as `make bench-train` has it
    step        fed from memory, in a process of its own
"""

from __future__ import annotations

import argparse
import datetime
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.checkout import REPOSITORY_PATH
from bench.input import machine
from bench.tables import MEMORY_PATH
from bench.train_files import BATCH_SIZE, HIDDEN_UNITS, write_request, write_training_files
from bench.train_runs import time_start, time_steps

_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "environments.json"
_ROWS = 1 << 14
_MODELS: dict[str, tuple[Sequence[int], int, int]] = {  # hidden units, batch size, epochs of a turn
    "as it stands": (HIDDEN_UNITS, BATCH_SIZE, 20),
    "wider": ((2048, 1024, 512), 1024, 1),
}
_PARTS = ("total", "interpreter", "imports", "read", "model", "first call")  # of a start
_VERSIONS = "import platform, tensorflow as tf; print(tf.__version__, platform.python_version())"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.environments", description=__doc__)
    parser.add_argument("interpreters", nargs=2, help="of the two environments; ratios are of the first to the second")
    parser.add_argument("--rounds", type=int, default=5, help="of each measurement (default: 5)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="bench-environments-", dir=MEMORY_PATH) as folder:
        run_path = Path(folder, "run")
        write_training_files(run_path, _ROWS)
        taken = measure(run_path, options.interpreters, options.rounds)
    result = {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": machine(),
        "rounds": options.rounds,
        "rows": _ROWS,
        "environments": [_versions(interpreter) for interpreter in options.interpreters],
        "seconds": taken,
        "ratio": {name: _ratio(*both) for name, both in taken.items()},
    }
    print(render(result))
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps(result, indent=2) + "\n")
    print(f"bench-environments: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def measure(folder_path: Path, interpreters: Sequence[str], rounds: int) -> dict[str, list[list[float]]]:
    """Return the seconds by what is measured, then by environment, then by round."""
    taken: dict[str, list[list[float]]] = {}

    def note(name: str, place: int, seconds: float) -> None:
        taken.setdefault(name, [[] for _ in interpreters])[place].append(seconds)

    for number in range(rounds):
        for place, interpreter in enumerate(interpreters):
            parts = time_start(write_request(folder_path, f"start {number} {place}", epochs=1), interpreter)
            for name in _PARTS:
                note(f"start: {name}", place, parts.get(name, 0.0))
            for model, (units, batch_size, epochs) in _MODELS.items():
                path = write_request(folder_path, f"{model} {number} {place}", units, epochs=1, batch_size=batch_size)
                steps = time_steps(path, 1, epochs, interpreter)["seconds_per_step"]
                note(f"step: {model}", place, steps["memory"][0])
        print(f"bench-environments: round {number + 1} of {rounds}", flush=True)
    return taken


def render(result: dict[str, Any]) -> str:
    """Return the table: milliseconds, medians over the rounds, and the median of the rounds' ratios."""
    first, second = (f"TensorFlow {tensorflow}" for tensorflow, _ in result["environments"])
    lines = [f"{'ms':<24}{first:>20}{second:>20}{'ratio':>8}"]
    for name, both in result["seconds"].items():
        mine, other = (statistics.median(some) * 1000 for some in both)
        lines.append(f"{name:<24}{mine:>20,.2f}{other:>20,.2f}{result['ratio'][name] or 0:>8.2f}")
    return "\n".join(lines)


def _ratio(mine: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the median over the rounds of the ratios, or None where one is too short to be timed."""
    ratios = [one / another for one, another in zip(mine, other, strict=True) if another]
    return round(statistics.median(ratios), 3) if ratios else None


def _versions(interpreter: str) -> list[str]:
    done = subprocess.run([interpreter, "-c", _VERSIONS], capture_output=True, text=True, check=True)
    return done.stdout.split()


if __name__ == "__main__":
    sys.exit(main())
