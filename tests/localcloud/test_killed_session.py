"""A test session that is killed takes all that it started with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.support.local_cloud import REPOSITORY_PATH

PATIENCE_S = 120


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


def wait_for(what: str, done: Callable[[], bool]) -> None:
    """Look until it is so."""
    until = time.monotonic() + PATIENCE_S
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
