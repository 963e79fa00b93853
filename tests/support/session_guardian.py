"""Ends what a test session leaves behind, however it died. Stand-alone: run as a script, standard library only.

Comes in (standard input): nothing, until its end, which is the session's. Whatever the session started, and whatever
that started, has the session's mark in its environment: servers, demonstrations, trainings. They are asked to end, then
killed. A local cloud's own guardian, which ends what it started for others, is left to its work for some time.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import uuid
from pathlib import Path

MARK = "PYTEST_SESSION_MARKS"
GRACE_S = 15.0
LOOK_S = 0.1
LAST_TO_GO = b"processes/guardian.py"


def watch_session() -> int:
    """Mark this process's environment, and start the guardian; give the descriptor that is open until the end."""
    mark = uuid.uuid4().hex
    os.environ[MARK] = ":".join(filter(None, (os.environ.get(MARK), mark)))  # a session within a session has both
    read_end, write_end = os.pipe()  # neither goes on to a program that is started later
    command = [sys.executable, "-I", "-S", str(Path(__file__).resolve()), mark]
    os.posix_spawn(sys.executable, command, os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, read_end, 0)], setsid=True)
    os.close(read_end)
    return write_end


def marked(mark: str) -> dict[int, bytes]:
    """Return the command lines of the processes that have a mark, by pid, but for this one."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        pid = int(folder.name)
        with contextlib.suppress(OSError):  # it ended while we looked, or is another user's
            if pid != os.getpid() and mark.encode() in (folder / "environ").read_bytes():
                found[pid] = (folder / "cmdline").read_bytes()
    return found


def end_all(mark: str) -> None:
    """Ask all to end, those that others depend on last; kill what is left after the grace."""
    asked: set[int] = set()
    until = time.monotonic() + GRACE_S
    while left := marked(mark):
        late = time.monotonic() > until
        for pid, command in left.items():
            if LAST_TO_GO in command and not late:
                continue
            if late or pid not in asked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                asked.add(pid)
        time.sleep(LOOK_S)


if __name__ == "__main__":
    sys.stdin.buffer.read()
    end_all(sys.argv[1])
