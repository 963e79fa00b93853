"""`make bench-input`: how fast a training's input is, against TensorFlow's tutorial and helper.

In: nothing but this machine. Out: a table with medians and ratios, and `build/bench/input.json`. Files are written
once to memory (/dev/shm), contenders take turns for several rounds, each reading in a process of its own. Ratios are to
three others on the same rows: TensorFlow's own helper, the tutorial's order mended and left to AUTOTUNE, and the
tutorial as it stands, which gains most from a free core and therefore says least.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.checkout import REPOSITORY_PATH
from bench.input_files import write_files
from bench.tables import MEMORY_PATH


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Who reads what.

    Attributes:
        reader: As `input_contender` names them.
        files: Name of a set of files.
        rows: To stop after so many, where a whole reading would take minutes; 0: to the end.
        target: What has to be reached, as a multiple of the tutorial on the same rows.
    """

    reader: str
    files: str
    rows: int = 0
    target: int | None = None

    @property
    def name(self) -> str:
        """Of both."""
        return f"{self.reader} {self.files}"


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(reader="tutorial", files="flights", rows=100_000),
        Contender(reader="tutorial", files="flights GZIP", rows=100_000),
        Contender(reader="tutorial", files="wide", rows=50_000),
        Contender(reader="helper", files="flights", rows=500_000),
        Contender(reader="helper", files="flights GZIP", rows=500_000),
        Contender(reader="helper", files="wide", rows=50_000),
        Contender(reader="autotune", files="flights"),
        Contender(reader="autotune", files="flights GZIP"),
        Contender(reader="autotune", files="wide"),
        Contender(reader="ours", files="flights", target=18),
        Contender(reader="ours", files="flights GZIP", target=15),
        Contender(reader="ours", files="flights CSV"),
        Contender(reader="ours", files="wide", target=10),
        Contender(reader="ours", files="wide vector", target=40),
        Contender(reader="ours", files="flights pre-batched", target=80),
    )
}
OTHERS = ("helper", "autotune", "tutorial")
LONGEST_STALL_S = 0.1
Reading = Mapping[str, Any]  # what a contender prints
_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "input.json"
_LAYOUTS = ("vector", "pre-batched", "CSV")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.input", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="readings per contender (default: 5)")
    parser.add_argument("--flights-rows", type=int, default=3_030_984, help="default: the year nine times")
    parser.add_argument("--wide-rows", type=int, default=500_000, help="default: %(default)s")
    options = parser.parse_args(arguments)
    before = machine()
    with tempfile.TemporaryDirectory(prefix="bench-input-", dir=MEMORY_PATH) as folder:
        write_files(Path(folder), options.flights_rows, options.wide_rows)
        readings = take_turns(Path(folder), options.rounds)
    rows = summarise(readings)
    print(render(rows))
    print(f"bench-input: {before['cores']} cores, {before['busy']} of them busy with something else at the start")
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps({"machine": before, "rounds": options.rounds, "rows": rows}, indent=2) + "\n")
    print(f"bench-input: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def take_turns(folder_path: Path, rounds: int) -> dict[str, list[Reading]]:
    """Let every contender read once per round; give what each reading took."""
    readings: dict[str, list[Reading]] = {name: [] for name in CONTENDERS}
    for number in range(rounds):
        for name in CONTENDERS:
            command = [sys.executable, "-m", "bench.input_contender", name, str(folder_path)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"bench-input: {name}: {done.stderr.strip().splitlines()[-1:]}")
            readings[name].append(json.loads(done.stdout.splitlines()[-1]))
        print(f"bench-input: round {number + 1} of {rounds}", flush=True)
    return readings


def summarise(readings: Mapping[str, Sequence[Reading]]) -> list[dict[str, Any]]:
    """Return a row per contender: medians, the longest stall, and the ratios to the others on the same rows."""
    rates = {
        name: statistics.median(reading["rows"] / reading["seconds"] for reading in taken)
        for name, taken in readings.items()
    }
    rows = []
    for name, taken in readings.items():
        contender = CONTENDERS[name]
        data, *rest = contender.files.split()
        compressed = "GZIP" in rest
        same = f"{data}{' GZIP' if compressed else ''}"
        rows.append(
            {
                "contender": contender.reader,
                "data": data,
                "compression": "GZIP" if compressed else "none",
                "layout": next((layout for layout in _LAYOUTS if layout in rest), "columns"),
                "rows_per_s": round(rates[name]),
                **{f"ratio_to_{other}": round(rates[name] / rates[f"{other} {same}"], 1) for other in OTHERS},
                "target": contender.target,
                "stall_s": _longest(reading["stall_s"] for reading in taken),
            }
        )
    return rows


def _longest(stalls: Iterable[float | None]) -> float | None:
    measured = [stall for stall in stalls if stall is not None]
    return round(max(measured), 3) if measured else None


def _shown(stall: float | None) -> str:
    return "" if stall is None else f"{stall:.3f}"


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table."""
    heads = ("contender", "data", "compression", "layout", "rows/s", *(f"x {other}" for other in OTHERS))
    lines = ["{:<10} {:<8} {:<11} {:<11} {:>10} {:>10} {:>10} {:>10} {:>6} {:>8}".format(*heads, "target", "stall s")]
    for row in rows:
        what = "{contender:<10} {data:<8} {compression:<11} {layout:<11} {rows_per_s:>10,}".format(**row)
        ratios = " ".join(f"{row[f'ratio_to_{other}']:>10.1f}" for other in OTHERS)
        lines.append(f"{what} {ratios} {row['target'] or '':>6} {_shown(row['stall_s']):>8}")
    ours = [row for row in rows if row["contender"] == "ours"]
    aimed = [row for row in ours if row["target"]]
    reached = [row for row in aimed if row["ratio_to_tutorial"] >= row["target"]]
    stalled = [row for row in ours if (row["stall_s"] or 0) > LONGEST_STALL_S]
    lines.append(
        f"bench-input: {len(reached)} of {len(aimed)} targets reached; "
        f"{len(stalled)} stalls of more than {LONGEST_STALL_S} s"
    )
    return "\n".join(lines)


def machine() -> dict[str, Any]:
    """Say where this was measured."""
    from importlib.metadata import version

    text = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = next((line.split(":")[1].strip() for line in text.splitlines() if line.startswith("model name")), "")
    return {
        "cpu": model or platform.processor(),
        "cores": os.cpu_count(),
        "busy": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "tensorflow": version("tensorflow-cpu"),
        "pyarrow": version("pyarrow"),
    }


if __name__ == "__main__":
    sys.exit(main())
