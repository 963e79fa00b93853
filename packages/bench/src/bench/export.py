"""`make bench-export`: how fast Arrow becomes TFRecords here, and by the ways people know.

In: nothing but this machine. Out: a table with medians and ratios, and `build/bench/export.json`. Tables lie as Arrow
files in memory (/dev/shm), where the results go too; contenders take turns for several rounds, each in a process and
an environment of its own. Slow ones write fewer rows: rows a second do not depend on how many there are.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.checkout import CHECKOUT_PATH, REPOSITORY_PATH
from bench.export_report import Measured, Reading, render, summarise
from bench.tables import MEMORY_PATH

OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "export.json"
ROWS = {"flights": 3_030_984, "wide": 500_000, "mixed": 100_000, "hashy": 1_000_000}
FLIGHTS_COPIES = 9
_PYTHONS = {name: REPOSITORY_PATH / ".venv" / name / "bin" / "python" for name in ("trainer", "bench-tfx")}
_VERSIONS = {
    "trainer": ("tensorflow-cpu", "protobuf", "numpy", "pyarrow", "isal", "google-crc32c"),
    "bench-tfx": ("tensorflow", "tfx-bsl", "apache-beam", "protobuf", "numpy", "pyarrow"),
}


@dataclass(frozen=True, kw_only=True)
class Contender:
    """Who writes what.

    Attributes:
        writer: As `export_contender` names them.
        data: As `export_tables` names them.
        compression: none or GZIP.
        rows: So many; 0: all.
    """

    writer: str
    data: str
    compression: str = "none"
    rows: int = 0

    @property
    def environment(self) -> str:
        """Whose Python."""
        return "bench-tfx" if self.writer in ("tfx_bsl", "beam") else "trainer"

    @property
    def key(self) -> tuple[str, str, str]:
        """Writer, data, compression."""
        return self.writer, self.data, self.compression


CONTENDERS = (
    Contender(writer="tutorial", data="flights", rows=50_000),
    Contender(writer="tutorial", data="flights", compression="GZIP", rows=50_000),
    Contender(writer="protobuf", data="flights", rows=150_000),
    Contender(writer="tfx_bsl", data="flights", rows=300_000),
    Contender(writer="tfx_bsl", data="flights", compression="GZIP", rows=200_000),
    Contender(writer="beam", data="flights", rows=60_000),
    Contender(writer="floor", data="flights"),
    Contender(writer="ours", data="flights"),
    Contender(writer="ours", data="flights", compression="GZIP"),
    Contender(writer="tutorial", data="wide", rows=10_000),
    Contender(writer="protobuf", data="wide", rows=30_000),
    Contender(writer="tfx_bsl", data="wide", rows=60_000),
    Contender(writer="floor", data="wide"),
    Contender(writer="ours", data="wide"),
    Contender(writer="tutorial", data="hashy", rows=40_000),
    Contender(writer="tfx_bsl", data="hashy", rows=200_000),
    Contender(writer="ours", data="hashy"),
    Contender(writer="tutorial", data="mixed", rows=20_000),
    Contender(writer="tfx_bsl", data="mixed", rows=60_000),
    Contender(writer="floor", data="mixed"),
    Contender(writer="ours", data="mixed"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all rounds, print the tables, write the JSON."""
    options = _parser().parse_args(arguments)
    say(f"files in {MEMORY_PATH or tempfile.gettempdir() + ', a disk: figures of writing will swing'}")
    contenders = [one for one in CONTENDERS if _PYTHONS[one.environment].exists() or one.environment == "trainer"]
    with tempfile.TemporaryDirectory(prefix="bench-export-", dir=MEMORY_PATH) as folder:
        rows = write_tables(Path(folder), options.scale)
        readings = take_turns(Path(folder), contenders, options.rounds, rows)
    measured = Measured(
        measured=dt.datetime.now(dt.UTC).date().isoformat(),
        machine={**_machine(), **{name: _versions(name) for name in _PYTHONS if _PYTHONS[name].exists()}},
        rounds=options.rounds,
        scale=options.scale,
        rows=summarise(readings),
        jobs=_jobs(options) if options.scale >= 1 else {},
    )
    print(render(measured))
    OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    OUT_PATH.write_text(json.dumps(measured.document(), indent=2) + "\n", encoding="utf-8")
    say(f"wrote {OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.export", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender (default: %(default)s)")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="of all rows; below 1 the export job is left out (default: 1)"
    )
    return parser


def say(message: str) -> None:
    """Print a line of progress."""
    print(f"bench-export: {message}", flush=True)


def write_tables(folder: Path, scale: float) -> dict[str, int]:
    """Write all tables, and the finished files that the floor copies; give the rows of each."""
    rows = {name: max(int(count * scale), 1) for name, count in ROWS.items()}
    for name, count in rows.items():
        done = _run_module("trainer", "bench.export_tables", name, str(count), str(folder / f"{name}.arrow"))
        say(f"{name}: {count:,} rows, {done.stdout.strip()} bytes of Arrow each")
        _run_module(
            "trainer",
            "bench.export_ours",
            *(str(folder / f"{name}{end}") for end in (".arrow", ".tfrecord")),
            str(count),
        )
    return rows


def take_turns(
    folder: Path,
    contenders: Sequence[Contender],
    rounds: int,
    rows: dict[str, int],
    run: Callable[..., subprocess.CompletedProcess[str]] | None = None,
) -> list[tuple[Contender, Reading]]:
    """Let each contender write once per round.

    Args:
        contenders: In their order.
        run: Runs a module of this package in one of the environments.
    """
    readings = []
    for number in range(rounds):
        for contender in contenders:
            share = rows[contender.data] / ROWS[contender.data]
            count = max(int(contender.rows * share), 1) if contender.rows else rows[contender.data]
            source, out = folder / f"{contender.data}.arrow", folder / "out"
            done = (run or _run_module)(
                contender.environment,
                "bench.export_contender",
                *(contender.writer, str(source), str(count), contender.compression, str(out)),
            )
            readings.append((contender, Reading(**json.loads(done.stdout.splitlines()[-1]))))
        say(f"round {number + 1} of {rounds}")
    return readings


def _jobs(options: argparse.Namespace) -> dict[str, Any]:
    from bench.export_spans import measure_spans  # needs the local cloud's environment, which tests do not have

    say("the whole export job, through the local cloud")
    with tempfile.TemporaryDirectory(prefix="bench-export-", dir=MEMORY_PATH) as folder:
        return measure_spans(Path(folder), options.rounds, FLIGHTS_COPIES)


def _run_module(environment: str, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(_PYTHONS[environment]), "-m", module, *arguments],
        env={**os.environ, "PYTHONPATH": CHECKOUT_PATH},
        text=True,
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"bench-export: {module} {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
    return done


def _machine() -> dict[str, Any]:
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")
    return {"cpu": model, "cores": os.cpu_count()}


def _versions(environment: str) -> dict[str, str]:
    code = (
        "import json, platform, sys; from importlib.metadata import version;"
        "print(json.dumps({'python': platform.python_version(), **{name: version(name) for name in sys.argv[1:]}}))"
    )
    done = subprocess.run(
        [str(_PYTHONS[environment]), "-c", code, *_VERSIONS[environment]], text=True, capture_output=True, check=True
    )
    versions: dict[str, str] = json.loads(done.stdout)
    return versions


if __name__ == "__main__":
    sys.exit(main())
