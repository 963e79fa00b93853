"""What every story has: one at a time in its folder, a system that runs while it is told, and an end for all of it.

Comes in: a system, what happens in it, and what is told then. Goes out: text for a person, an exit code. Standard input
is a pipe that the starter holds, and its end ends the story too.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import requests

from localcloud.errors import LocalCloudError
from retraining_laptop.airflow_api import AirflowApiError
from retraining_laptop.dag_run import Outcome
from retraining_laptop.folder import held
from retraining_laptop.memory import MemoryWatch
from retraining_laptop.supervision import end_with_starter
from retraining_laptop.system import System

INTERRUPTED = 130


def play(name: str, home: Path, tell_it: Callable[[], int]) -> int:
    """Tell a story; return the process's exit code.

    Args:
        name: Of the command, for messages.
        home: Folder that it keeps everything in.
        tell_it: Returns the exit code.
    """
    end_with_starter()
    try:
        with held(home):
            return tell_it()
    except (LocalCloudError, TimeoutError, AirflowApiError, requests.RequestException) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{name}: ended", file=sys.stderr)
        return INTERRUPTED


def tell(
    system: System,
    happen: Callable[[], Outcome],
    conclude: Callable[[Outcome], list[str]],
    look_at: Callable[[], list[str]],
    ends_because: str = "",
) -> int:
    """Start a system, let something happen in it, and say what came of it; return the exit code.

    Args:
        system: Not started yet.
        happen: Returns the run that counts.
        conclude: Returns lines about it.
        look_at: Returns where a person looks while everything stays up.
        ends_because: Why nothing stays up; empty: it does, until Ctrl-C.
    """
    started, memory = time.monotonic(), MemoryWatch()
    try:
        memory.start()
        system.start()
        finished = happen()
        for line in ["", *conclude(finished)]:
            system.say(line)
        system.say(f"total      {time.monotonic() - started:.1f} s, at most {memory.stop() / 1e9:.1f} GB of memory")
        if finished.state != "success":
            return 1
        if ends_because:
            system.say(f"ends now ({ends_because})")
            return 0
        for line in [*look_at(), f"{system.login}; everything stays up until Ctrl-C"]:
            system.say(line)
        while True:
            time.sleep(1)
            system.check_alive()
    finally:
        # A second Ctrl-C while ending must not leave half of it running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        system.stop()


def say(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)
