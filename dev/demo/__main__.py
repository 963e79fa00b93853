"""`python -m demo`: runs the demonstration as a child, and leaves no process behind whichever of the two dies.

The child (`demo.story`) holds the other end of a pipe and ends everything in order when it closes, also after a SIGKILL
here. This process inherits whatever a killed child leaves, and kills it. Comes in: options of `make demo`. Goes out:
the child's exit code.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from types import FrameType

from localcloud.supervision.processes import adopt_orphans, end_with_parent, kill_all_descendants


def main() -> int:
    """Run the demonstration; return its exit code."""
    adopt_orphans()
    if "MAKELEVEL" in os.environ:  # a recipe of make: who kills make means the demonstration
        end_with_parent(signal.SIGTERM)
    read_end, write_end = os.pipe()
    # A session of its own: Ctrl-C reaches it from here alone, and killing this process group does not reach it.
    command = [sys.executable, "-m", "demo.story", *sys.argv[1:]]
    story = subprocess.Popen(command, stdin=read_end, start_new_session=True)
    os.close(read_end)

    def hand_on(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # the signal module's protocol
        story.send_signal(signal.SIGINT)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, hand_on)
    code = story.wait()
    os.close(write_end)
    kill_all_descendants()
    if code < 0:
        print(f"demo: killed by {signal.Signals(-code).name}; its servers are ended", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
