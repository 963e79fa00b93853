"""`make bench-local-clouds`: start, memory and first answers of the local cloud beside emulators of one service.

In: nothing but this machine. Out: a table, and `build/bench/local_clouds.json`. All take turns within each round, each
in processes of its own that start anew. The local cloud starts all its services; the others have one. Start is the
time until the server answers; memory is the proportional share (PSS) of the server's processes then; first is what a
client takes from nothing to its first bucket or dataset; the rest are medians of 100 calls, one after another.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import http.client
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.checkout import PACKAGES_PATH, REPOSITORY_PATH
from localcloud.testing import start

_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "local_clouds.json"
_START_S = 120
_CALLS = ("upload", "download", "query")


@dataclass(frozen=True, kw_only=True)
class Served:
    """A server that answers.

    Attributes:
        seconds: Until it did.
        memory: Bytes of its processes.
        address: For its client; "" where the environment leads there.
        environ: For its client.
    """

    seconds: float
    memory: int
    address: str
    environ: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Contender:
    """A server, and what it is asked.

    Attributes:
        kinds: As `local_clouds_contender` names them.
        serve: Starts it, from the folder of the emulators' programs.
    """

    name: str
    kinds: tuple[str, ...]
    serve: Callable[[Path], contextlib.AbstractContextManager[Served]]


@contextlib.contextmanager
def serve_local_cloud(programs: Path) -> Iterator[Served]:
    """Start the local cloud with all its services."""
    del programs
    started = time.perf_counter()
    with start() as cloud:
        seconds = time.perf_counter() - started
        environ = {key: value for key, value in {**os.environ, **cloud.environ}.items() if value}
        yield Served(seconds=seconds, memory=memory_of(_children(os.getpid())), address="", environ=environ)


def emulator(path: str, *command: str) -> Callable[[Path], contextlib.AbstractContextManager[Served]]:
    """Return what starts an emulator of one service.

    Args:
        path: Is asked until it answers.
        command: The program and its arguments; `{port}` stands for the port, `{other}` for another free one.
    """

    @contextlib.contextmanager
    def serve(programs: Path) -> Iterator[Served]:
        port, other = free_ports(2)
        program, *arguments = [part.format(port=port, other=other) for part in command]
        with tempfile.TemporaryDirectory(prefix="bench-local-clouds-") as folder:
            started = time.perf_counter()
            process = subprocess.Popen(
                [programs / program, *arguments], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
            try:
                await_answer(port, path, process)
                seconds = time.perf_counter() - started
                memory = memory_of([process.pid, *_children(process.pid)])
                address = f"http://127.0.0.1:{port}"
                yield Served(seconds=seconds, memory=memory, address=address, environ=dict(os.environ))
            finally:
                process.terminate()
                process.wait()

    return serve


CONTENDERS = (
    Contender(name="local cloud, all services", kinds=("storage", "bigquery"), serve=serve_local_cloud),
    Contender(
        name="bqemulator",
        kinds=("bigquery",),
        serve=emulator(
            "/bigquery/v2/projects/bench/datasets",
            *("bqemulator", "start", "--rest-port", "{port}", "--grpc-port", "{other}"),
        ),
    ),
    Contender(
        name="gcp-storage-emulator",
        kinds=("storage",),
        serve=emulator(
            "/storage/v1/b?project=bench",
            *("gcp-storage-emulator", "start", "--host", "127.0.0.1", "--port", "{port}", "--in-memory", "--quiet"),
        ),
    ),
    Contender(
        name="moto, S3", kinds=("s3",), serve=emulator("/", "moto_server", "--host", "127.0.0.1", "--port", "{port}")
    ),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure all, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.local_clouds", description=__doc__)
    parser.add_argument("programs", type=Path, help="the emulators' environment, its folder `bin`")
    parser.add_argument("--rounds", type=int, default=5, help="of each measurement (default: %(default)s)")
    options = parser.parse_args(arguments)
    taken = [[measure(each, options.programs) for each in CONTENDERS] for _ in range(options.rounds)]
    rows = [summarise(each.name, measured) for each, measured in zip(CONTENDERS, zip(*taken, strict=True), strict=True)]
    print(render(rows))
    made = {
        "measured": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "versions": versions(options.programs),
    }
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps({**made, "rounds": options.rounds, "rows": rows, "all": taken}, indent=2) + "\n")
    print(f"bench-local-clouds: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def measure(contender: Contender, programs: Path) -> dict[str, float]:
    """Return what a contender's server takes: seconds, and bytes of memory."""
    with contender.serve(programs) as served:
        made: dict[str, float] = {"start": served.seconds, "memory": served.memory}
        for kind in contender.kinds:
            run = subprocess.run(
                [programs / "python", "-m", "bench.local_clouds_contender", kind, served.address],
                env={**served.environ, "PYTHONPATH": _python_path(served.environ)},
                check=True,
                capture_output=True,
                text=True,
            )
            made |= {f"first {kind}" if key == "first" else key: value for key, value in json.loads(run.stdout).items()}
    return made


def summarise(name: str, measured: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Return medians over the rounds."""
    return {"name": name, **{key: statistics.median(each[key] for each in measured) for key in measured[0]}}


def render(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table: seconds, MiB, and milliseconds of calls."""
    head = "start, s | memory, MiB | first bucket, s | first dataset, s | upload, ms | download, ms | `SELECT 1`, ms"
    lines = [f"| | {head} |", "|---" * 8 + "|"]
    for row in rows:
        bucket = row.get("first storage", row.get("first s3"))
        cells = [f"{row['start']:.2f}", f"{row['memory'] / 2**20:.0f}"]
        cells += ["" if each is None else f"{each:.2f}" for each in (bucket, row.get("first bigquery"))]
        cells += ["" if row.get(call) is None else f"{row[call] * 1000:.1f}" for call in _CALLS]
        lines.append(f"| {row['name']} | {' | '.join(cells)} |")
    return "\n".join(lines)


def versions(programs: Path) -> dict[str, str]:
    """Return the releases of what is measured."""
    names = ("bqemulator", "gcp-storage-emulator", "moto", "google-cloud-storage", "google-cloud-bigquery", "boto3")
    code = f"import importlib.metadata as m, json; print(json.dumps({{n: m.version(n) for n in {names!r}}}))"
    found: dict[str, str] = json.loads(subprocess.check_output([programs / "python", "-c", code], text=True))
    return found


def await_answer(port: int, path: str, process: subprocess.Popen[bytes]) -> None:
    """Return when a server answers a request.

    Raises:
        RuntimeError: It ended, or does not answer.
    """
    end = time.monotonic() + _START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode} before it answered.")
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            connection.request("GET", path)
            if connection.getresponse().status < http.HTTPStatus.INTERNAL_SERVER_ERROR:
                return
        time.sleep(0.01)  # between two questions
    raise RuntimeError(f"{process.args!r} does not answer after {_START_S} s.")


def free_ports(number: int) -> list[int]:
    """Return ports that nobody listens on."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]


def memory_of(processes: Sequence[int]) -> int:
    """Return the bytes that processes have to themselves, and their shares of what they have in common."""
    total = 0
    for process in processes:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def _children(process: int) -> list[int]:
    """Return a process's descendants."""
    found: list[int] = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for child in map(int, task.read_text().split()):
                found += [child, *_children(child)]
    return found


def _python_path(environ: Mapping[str, str]) -> str:
    return os.pathsep.join(filter(None, [environ.get("PYTHONPATH", ""), PACKAGES_PATH]))


if __name__ == "__main__":
    sys.exit(main())
