"""The process that ends what a killed server leaves behind. Stand-alone: run as a script, standard library only.

Comes in (standard input): `+PGID COMMAND` and `-PGID` lines, the command as a JSON list. When the input ends, because
the server is gone however it died, every process group still on the list is killed, and its command is run, if it has
one: it ends what signals do not reach, a container. A parent-death signal would reach only the direct child, and
would fire when the thread that started it ends; this reaches the whole group.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path


class Guardian:
    """The server's side: starts the guardian process and tells it what to watch."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._groups: dict[int, list[str]] = {}

    def watch(self, group: int, end: Sequence[str] = ()) -> None:
        """Kill this process group when the server dies, and run the command that ends what is left of it."""
        with self._lock:
            self._groups[group] = list(end)
            self._tell(_watch_line(group, end))

    def release(self, group: int) -> None:
        """Forget a group that ended by itself."""
        with self._lock:
            self._groups.pop(group, None)
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
            line = "\n".join(_watch_line(*each) for each in self._groups.items())
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it is started again with the next line
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()


def _watch_line(group: int, end: Sequence[str]) -> str:
    return f"+{group} {json.dumps(list(end))}"


def main() -> None:
    """Watch until the input ends, then kill."""
    groups: dict[int, list[str]] = {}
    for line in sys.stdin:
        group, _, end = line[1:].partition(" ")
        if line[0] == "+":
            groups[int(group)] = json.loads(end)
        else:
            groups.pop(int(group), None)
    for number, command in groups.items():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(number, signal.SIGKILL)
        if command:
            subprocess.run(command, capture_output=True, check=False)


if __name__ == "__main__":
    main()
