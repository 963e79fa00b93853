"""The one process that runs functions in JavaScript, started when the first is called.

In: what a function is made of, and rows of its arguments. Out: what it returned for each. A process that takes too long
or too much memory ends, and the next call starts another.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

SECONDS = 5.0
"""How long a function may take for `ROWS` rows."""
ROWS = 256
FUNCTION_BYTES = 256 << 20
PROCESS_BYTES = 1 << 30
_MODULE = "localcloud.bigquery.patches.javascript.worker"
_GRACE_SECONDS = 5.0


class LimitReachedError(Exception):
    """A function took too long, or too much memory: the message is "time" or "memory"."""


class FailedError(Exception):
    """A function threw something.

    Attributes:
        text: What it says.
        place: Where in its body: line and column, from 1; None where that is not known.
    """

    def __init__(self, text: str, place: tuple[int, int] | None) -> None:
        super().__init__(text)
        self.text, self.place = text, place


class Process:
    """Calls functions, one at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._defined: set[str] = set()
        self._lock = threading.Lock()

    def call(self, definition: dict[str, Any], rows: Sequence[Sequence[Any]]) -> list[Any]:
        """Return what a function gives for rows of arguments.

        Args:
            definition: Its `name`, and what the process makes it of.
            rows: Of plain values.

        Raises:
            FailedError: It threw something.
            LimitReachedError: It took too much.
        """
        values: list[Any] = []
        with self._lock:
            self._running()
            if definition["name"] not in self._defined:
                self._ask({"do": "define", **definition}, seconds=_GRACE_SECONDS + SECONDS)
                self._defined.add(definition["name"])
            for first in range(0, len(rows), ROWS):
                request = {"do": "call", "name": definition["name"], "rows": rows[first : first + ROWS]}
                values += self._ask(request, seconds=SECONDS)["values"]
        return values

    def forget(self, name: str) -> None:
        """Drop a function and what it keeps."""
        with self._lock:
            if name in self._defined:
                self._defined.discard(name)
                self._ask({"do": "drop", "name": name}, seconds=SECONDS)

    def _ask(self, request: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        """Return what the process answers; where a limit is reached it ends."""
        process = self._running()
        line = self._line(process, json.dumps(request).encode() + b"\n", seconds + _GRACE_SECONDS)
        answer: dict[str, Any] = json.loads(line) if line else {"limit": "memory"}
        if reached := answer.get("limit"):
            self._end(process)
            raise LimitReachedError(reached)
        if error := answer.get("error"):
            place = (error["line"], error["column"]) if "line" in error else None
            raise FailedError(error["text"], place)
        return answer

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._defined.clear()
            limits = {"seconds": SECONDS, "function_bytes": FUNCTION_BYTES, "process_bytes": PROCESS_BYTES}
            self._process = subprocess.Popen(
                [sys.executable, "-m", _MODULE, json.dumps(limits)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # V8 says there that memory ran out
                env={"TZ": "UTC", "LANG": "C.UTF-8", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        return self._process

    def _line(self, process: subprocess.Popen[bytes], request: bytes, seconds: float) -> bytes:
        """Return the line that the process answers; b"" where it ended."""
        if process.stdin is None or process.stdout is None:
            return b""
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except BrokenPipeError:
            return b""
        ready, _, _ = select.select([process.stdout], [], [], seconds)
        if not ready:
            self._end(process)
            raise LimitReachedError("time")
        return process.stdout.readline()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.kill()
        with process:  # its pipes, too
            process.wait()
        self._process = None
        self._defined.clear()
