"""A test session that is killed takes all that it started with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.local_cloud import LOCALCLOUD_PYTHON, REPOSITORY_PATH

PATIENCE_S = 120
SECONDS_TO_END = 25  # the guardian asks, and kills after fifteen


def left(text: str) -> dict[int, bytes]:
    """The processes that have a text in their command, their environment or their folder, but for this one's own."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            told = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            told += str((folder / "cwd").readlink()).encode()
        except OSError:  # it ended while we looked
            continue
        if int(folder.name) != os.getpid() and text.encode() in told:
            found[int(folder.name)] = (folder / "cmdline").read_bytes()
    return found


def wait_for(what: str, done: Callable[[], bool], patience_s: float = PATIENCE_S) -> None:
    """Look until it is so."""
    until = time.monotonic() + patience_s
    while not done():
        assert time.monotonic() < until, what
        time.sleep(0.1)


FAMILY = """
import subprocess, sys, time
from tests.support.session_guardian import MARK, watch_session
import os
held = watch_session()
waits = "import time; time.sleep(600)"
child = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{waits}']); {waits}"
subprocess.Popen([sys.executable, "-c", child], start_new_session=True)
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", deaf], start_new_session=True)
print(os.environ[MARK], flush=True)
time.sleep(600)
"""


def test_what_a_killed_session_started_ends_with_it() -> None:
    """In sessions of their own, children of children, and those that do not end when they are asked."""
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY_PATH)}
    session = subprocess.Popen([sys.executable, "-c", FAMILY], env=environ, text=True, stdout=subprocess.PIPE)
    assert session.stdout is not None
    mark = session.stdout.readline().strip().rpartition(":")[2]
    wait_for("all to be there", lambda: len(left(mark)) >= 4)  # the guardian is the fourth
    session.kill()
    session.communicate()
    wait_for("nothing to be left", lambda: not left(mark))


@pytest.mark.long
def test_a_killed_session_takes_its_local_cloud_and_its_jobs_with_it(tmp_path: Path) -> None:
    """Servers, a custom job's running replicas, and their children: deaf to SIGTERM, in sessions of their own."""
    if not LOCALCLOUD_PYTHON.exists():
        pytest.skip("the local cloud's environment is missing: run `make setup`")
    told_path, held = tmp_path / "told.json", REPOSITORY_PATH / "tests" / "support" / "held_session.py"
    environ = {**os.environ, "HELD_SESSION_TELLS": str(told_path)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(held)]
    session = subprocess.Popen(command, env=environ, cwd=REPOSITORY_PATH, start_new_session=True)
    try:
        wait_for("a job to run", lambda: told_path.exists() or session.poll() is not None)
        told = json.loads(told_path.read_text())
        wait_for("replicas and their children", lambda: len(left("held-replica")) == 4)
    finally:
        session.kill()
        session.wait()
    mark = told["marks"].rpartition(":")[2]
    texts = (mark, told["state_path"], "held-replica")
    wait_for("nothing to be left", lambda: not any(map(left, texts)), SECONDS_TO_END)
