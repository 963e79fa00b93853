"""A story is a child process that holds everything it started; whichever of the two dies, nothing is left.

The child holds the other end of a pipe and ends everything in order when it closes, also after a SIGKILL here. This
process inherits whatever a killed child leaves, and kills it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

from localcloud.supervision.processes import adopt_orphans, end_with_parent, kill_all_descendants


def supervise(module: str, arguments: Sequence[str], name: str) -> int:
    """Run a module as a child that calls `end_with_starter`; return its exit code.

    Args:
        module: Run as `python -m`.
        arguments: Its own.
        name: What the message of a killed child begins with.
    """
    adopt_orphans()
    if "MAKELEVEL" in os.environ:  # a recipe of make: who kills make means the story
        end_with_parent(signal.SIGTERM)
    read_end, write_end = os.pipe()
    # A session of its own: Ctrl-C reaches it from here alone, and killing this process group does not reach it.
    command = [sys.executable, "-m", module, *arguments]
    story = subprocess.Popen(command, stdin=read_end, start_new_session=True)
    os.close(read_end)

    def hand_on(*_: object) -> None:
        story.send_signal(signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, hand_on)
    code = story.wait()
    os.close(write_end)
    kill_all_descendants()
    if code < 0:
        print(f"{name}: killed by {signal.Signals(-code).name}; its servers are ended", file=sys.stderr)
    return code if code >= 0 else 128 - code


def end_with_starter() -> None:
    """Take every end, that of the starter too, for a Ctrl-C: KeyboardInterrupt in the main thread."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)  # also where a shell started this in the background, with it ignored
    threading.Thread(target=_wait_for_starter, daemon=True).start()


def _wait_for_starter() -> None:
    """Wait for the end of standard input, which is the end of the starter, however it came."""
    while os.read(0, 64):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
