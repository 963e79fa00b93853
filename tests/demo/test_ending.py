"""The demonstration ends cleanly: at any second, and beside a running one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from demo.airflow import free_port
from demo.system import LOCALCLOUD_PYTHON

ROOT = Path(__file__).resolve().parents[2]


def start_demo(home: Path, port: int | None = None) -> subprocess.Popen[str]:
    """Start `python -m demo` in a session of its own, as a shell does for `make`."""
    command = [str(LOCALCLOUD_PYTHON), "-m", "demo", "--home", str(home), "--port", str(port or free_port())]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "include")}
    environment.pop("LOCALCLOUD_STATE", None)
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def processes_of(home: Path) -> list[str]:
    """Return the command lines of living processes whose command or environment names the folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes()
            if folder.name != str(os.getpid()) and str(home).encode() in command + (folder / "environ").read_bytes():
                found.append(command.replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it ended while we looked, or is another user's
    return found


@pytest.mark.parametrize(
    "after_s",
    [
        pytest.param(0.4, id="at once", marks=pytest.mark.long),
        pytest.param(3, id="cloud starting", marks=pytest.mark.long),
        pytest.param(9, id="airflow starting"),
    ],
)
def test_ctrl_c_leaves_no_process(after_s: float, tmp_path: Path) -> None:
    """Ctrl-C in the middle of starting ends everything that was started."""
    demo = start_demo(tmp_path)
    time.sleep(after_s)  # not for something to pass: the moment of the interrupt is what is tested
    os.killpg(demo.pid, signal.SIGINT)
    output, _ = demo.communicate(timeout=60)
    assert demo.returncode not in (0, None), output
    assert processes_of(tmp_path) == []


def test_kill_leaves_no_process(tmp_path: Path) -> None:
    """Even a killed demonstration takes everything with it."""
    demo = start_demo(tmp_path)
    time.sleep(6)  # the moment of the kill is what is tested
    demo.kill()
    demo.communicate(timeout=60)
    deadline = time.monotonic() + 30
    while (left := processes_of(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []


def test_second_demo_says_so(tmp_path: Path) -> None:
    """A second one beside a running one names the first and ends."""
    first = start_demo(tmp_path)
    try:
        lock = tmp_path / "demo.lock"
        deadline = time.monotonic() + 20
        while not (lock.exists() and lock.read_text().strip()):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        output, _ = start_demo(tmp_path).communicate(timeout=30)
        assert f"already running in this checkout (pid {first.pid})" in output
    finally:
        first.send_signal(signal.SIGINT)
        first.communicate(timeout=60)


def test_port_in_use_is_said_before_anything_is_started(tmp_path: Path) -> None:
    """The message names the port and the way out; no server was started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        output, _ = start_demo(tmp_path, port).communicate(timeout=30)
    assert f"port {port} on 127.0.0.1 is in use" in output
    assert f"make demo PORT={port + 1}" in output
    assert not (tmp_path / "localcloud").exists()
