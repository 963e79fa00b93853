"""The demonstration ends cleanly: at any second, and beside a running one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from demo.checkout import PACKAGES_PATH
from demo.system import LOCALCLOUD_PYTHON, LaptopSystem
from tests.dev.demo.demonstrations import family_of, processes_of, read_until, survivors
from tests.support.ports import free_port

ROOT = Path(__file__).resolve().parents[3]


def start_demo(
    home: Path, port: int | None = None, *, as_of: str | None = None, end: bool = False
) -> subprocess.Popen[str]:
    """Start `python -m demo` in a session of its own, as a shell does for `make`."""
    command = [str(LOCALCLOUD_PYTHON), "-m", "demo", "--home", str(home), "--port", str(port or free_port())]
    command += [*(["--as-of", as_of] if as_of else []), *(["--end"] if end else [])]
    return subprocess.Popen(
        command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )


def environment() -> dict[str, str]:
    """A newcomer's: without the local cloud of the other tests, and without a `make` around it."""
    left_out = ("LOCALCLOUD_STATE", "MAKELEVEL")
    return {**{k: v for k, v in os.environ.items() if k not in left_out}, "PYTHONPATH": PACKAGES_PATH}


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


def wait_for_none(home: Path, family: dict[int, str]) -> list[object]:
    """Return the processes of the folder and of the family that are left after the time that ending may take."""
    deadline = time.monotonic() + 40
    while (left := [*processes_of(home), *survivors(family)]) and time.monotonic() < deadline:
        time.sleep(0.2)
    return left


def story_pid(demo: subprocess.Popen[str]) -> int:
    """Return the process that started the servers: the child of the one that a person started."""
    return int(Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()[0])


@pytest.mark.parametrize(
    ("marker", "inner"),
    [
        # Killed from outside, `make` as well: test_killed_make_takes_the_demonstration_with_it.
        pytest.param("local cloud ready", False, id="airflow starting", marks=pytest.mark.long),
        pytest.param("local cloud ready", True, id="its child"),
    ],
)
def test_kill_leaves_no_process(tmp_path: Path, marker: str, *, inner: bool) -> None:
    """Whichever of the two processes of a demonstration is killed takes everything with it."""
    demo = start_demo(tmp_path)
    lines = read_until(demo, marker)
    family = family_of(demo)
    assert len(family) > 5, lines
    os.kill(story_pid(demo) if inner else demo.pid, signal.SIGKILL)
    demo.communicate(timeout=60)
    assert wait_for_none(tmp_path, family) == []


def test_killed_make_takes_the_demonstration_with_it(tmp_path: Path) -> None:
    """SIGKILL of `make`, which knows nothing of what it started, ends it as well."""
    makefile = tmp_path / "Makefile"
    makefile.write_text(
        f"demo:\n\t@PYTHONPATH={PACKAGES_PATH} exec {LOCALCLOUD_PYTHON} -m demo"
        f" --home {tmp_path / 'home'} --port {free_port()}\n"
    )
    command = ["make", "--no-print-directory", "-f", str(makefile), "demo"]
    make = subprocess.Popen(command, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    read_until(make, "local cloud ready")
    family = family_of(make)
    make.kill()
    make.communicate(timeout=60)
    assert wait_for_none(tmp_path / "home", family) == []


@pytest.mark.long
@pytest.mark.timeout(600)
def test_killed_in_its_night_goes_on_and_is_not_run_twice(tmp_path: Path) -> None:
    """Killed while the model trains: nothing is left, the next one ends the night, the one after runs nothing."""
    first = start_demo(tmp_path)
    read_until(first, "train        running")
    family = family_of(first)
    first.kill()
    first.communicate(timeout=60)
    assert wait_for_none(tmp_path, family) == []
    second, _ = start_demo(tmp_path, end=True).communicate(timeout=400)
    assert "has an unfinished run" in second
    assert "serves all requests as champion" in second
    third, _ = start_demo(tmp_path, end=True).communicate(timeout=200)
    assert "nothing runs again" in third
    assert " running" not in third
    assert "late with probability" in third


@pytest.mark.long
def test_a_night_that_fails_says_why(tmp_path: Path) -> None:
    """A night without data: the task, its message with the way out, exit code 1, nothing left."""
    demo = start_demo(tmp_path, as_of="2015-01-01T03:00:00Z")
    output, _ = demo.communicate(timeout=300)
    assert demo.returncode == 1
    assert "Traceback" not in output
    assert "failed     snapshot: " in output
    assert "no example between 2014-11-01 and 2014-12-31" in output
    assert "Look at the source tables, at as_of and at data.window_days." in output
    assert wait_for_none(tmp_path, {}) == []


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
        assert f"{tmp_path}: a demonstration is already running here (pid {first.pid})" in output
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


def test_a_system_ends_what_it_started_and_no_other(tmp_path: Path) -> None:
    """Of two in one process; the first one's servers go on."""
    sleep = ["sleep", "600"]
    with subprocess.Popen(sleep) as first:
        system = LaptopSystem(state_path=tmp_path / "state", airflow_home_path=tmp_path / "airflow", port=free_port())
        with subprocess.Popen(sleep) as second:
            system.stop()
            assert second.wait(timeout=10) == -signal.SIGKILL
        assert first.poll() is None
        first.kill()
