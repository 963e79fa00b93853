"""The process that ends what a killed server leaves behind. Stand-alone: run as a script, standard library only.

Comes in (standard input): `+PGID` and `-PGID` lines. When the input ends, because the server is gone however it died,
every process group still on the list is killed. A parent-death signal would reach only the direct child, and would fire
when the thread that started it ends; this reaches the whole group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path


class Guardian:
    """The server's side: starts the guardian process and tells it what to watch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._groups: set[int] = set()

    def watch(self, group: int) -> None:
        """Kill this process group when the server dies."""
        with self._lock:
            self._groups.add(group)
            self._tell(f"+{group}")

    def release(self, group: int) -> None:
        """The group ended by itself."""
        with self._lock:
            self._groups.discard(group)
            self._tell(f"-{group}")

    def close(self) -> None:
        """End the guardian, and with it what is still watched."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()

    def _tell(self, line: str) -> None:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-I", "-S", str(Path(__file__).resolve())]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True, start_new_session=True)
            line = "\n".join(f"+{group}" for group in self._groups)
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it is started again with the next line
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()


def main() -> None:
    """Watch until the input ends, then kill."""
    groups: set[int] = set()
    for line in sys.stdin:
        group = int(line[1:])
        (groups.add if line[0] == "+" else groups.discard)(group)
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
