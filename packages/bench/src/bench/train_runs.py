"""Trainings as the service starts them, for `make bench-train`: `python -m trainer.task train`, one process a replica.

In: requests. Out: what each process printed, and when.
"""

from __future__ import annotations

import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_RATE = re.compile(r"epoch (\d+)/\d+ .* (\d+) examples/s$")
_START = re.compile(r"train: first steps ([\d.]+) s after the start \((.*)\)")
_ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "2", "OMP_NUM_THREADS": "1"}
_TIMEOUT_S = 300

Task = Mapping[str, Any]
"""What TF_CONFIG holds."""


def lockstep(workers: int) -> list[Task]:
    """Return the tasks of a cluster on this machine."""
    roles = ["chief", *["worker"] * (workers - 1)]
    cluster: dict[str, list[str]] = {}
    for role in roles:
        cluster.setdefault(role, []).append(f"127.0.0.1:{_free_port()}")
    return [
        {"cluster": cluster, "task": {"type": role, "index": max(0, index - 1)}} for index, role in enumerate(roles)
    ]


def train_at_once(request_paths: Sequence[Path], tasks: Sequence[Task] = ()) -> list[list[str]]:
    """Train with a process for each request, on a core of its own, one thread for its arithmetic; gives their output.

    Raises:
        SystemExit: One of them failed.
    """
    cores = sorted(os.sched_getaffinity(0))
    processes = [
        _start(path, tasks[index] if tasks else None, _ONE_THREAD, ["taskset", "-c", str(cores[index % len(cores)])])
        for index, path in enumerate(request_paths)
    ]
    try:
        return [[_message(line) for line in _end(process).splitlines()] for process in processes]
    finally:
        for process in processes:
            process.kill()


def time_start(request_path: Path, interpreter: str = sys.executable) -> dict[str, float]:
    """Train alone on all cores; gives seconds from starting the process to the first steps: in all, and the parts.

    Raises:
        SystemExit: It failed.
    """
    began = time.monotonic()
    process = _start(request_path, None, {}, [], interpreter)
    try:
        match = next((match for match in map(_START.match, map(_message, process.stdout or ())) if match), None)
        total = time.monotonic() - began
        _end(process)
    finally:
        process.kill()
    if match is None:
        raise SystemExit(f"bench-train: {request_path}: printed nothing of its first steps")
    parts = {name: float(seconds) for name, seconds in (part.rsplit(" ", 1) for part in match[2].split(", "))}
    return {"total": total, "interpreter": total - float(match[1]), **parts}


def rate_of(lines: Sequence[str]) -> float:
    """Return the median examples/s of the epochs after the first, in which functions are compiled."""
    matches = [match for match in map(_RATE.match, lines) if match]
    return statistics.median(float(match[2]) for match in matches if int(match[1]) > 1)


def time_steps(request_path: Path, rounds: int, epochs: int, interpreter: str = sys.executable) -> dict[str, Any]:
    """Return what `train_step` prints: the seconds per step of each feed, in turns of so many epochs.

    Raises:
        SystemExit: It failed.
    """
    command = [interpreter, "-m", "bench.train_step", str(request_path), str(rounds), str(epochs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"bench-train: train_step: {done.stderr.strip().splitlines()[-1:]}")
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def _start(
    path: Path,
    task: Task | None,
    extra: Mapping[str, str],
    before: Sequence[str],
    interpreter: str = sys.executable,
) -> subprocess.Popen[str]:
    environ = {**os.environ, **extra, **({"TF_CONFIG": json.dumps(task)} if task else {})}
    command = [*before, interpreter, "-m", "trainer.task", "train", f"--request={path}"]
    return subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _end(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=_TIMEOUT_S)
    if process.returncode:
        raise SystemExit(f"bench-train: a training failed: {err.strip().splitlines()[-1:]}")
    return out


def _message(line: str) -> str:
    """Return the message of a line of a job's log; what a library prints is its own."""
    return str(json.loads(line)["message"]) if line.startswith("{") else line


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
