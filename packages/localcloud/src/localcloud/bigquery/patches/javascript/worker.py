"""The process that runs functions in JavaScript: `python -m localcloud.bigquery.patches.javascript.worker LIMITS`.

In: a line of JSON for each request on standard input. Out: a line of JSON for each on standard output. It is a process
of its own because V8 ends the process in which memory runs out. Scripts reach no files and no network: V8 has neither.
"""

from __future__ import annotations

import json
import resource
import sys
from pathlib import Path
from typing import Any

from localcloud.untyped import Untyped

_RUNNER = Path(__file__).with_name("runner.js")


def main() -> None:
    """Answer requests until standard input ends."""
    limits = json.loads(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (limits["process_bytes"], limits["process_bytes"]))
    environments = Environments(limits["seconds"], limits["function_bytes"])
    for line in sys.stdin:
        sys.stdout.write(json.dumps(environments.answer(json.loads(line))) + "\n")
        sys.stdout.flush()


class Environments:
    """One environment of V8 for each function."""

    def __init__(self, seconds: float, memory_bytes: int) -> None:
        self._seconds, self._memory_bytes = seconds, memory_bytes
        self._of: dict[str, Untyped] = {}
        self._runner = _RUNNER.read_text(encoding="utf-8")

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request: `values`, an `error`, or which limit was reached."""
        from py_mini_racer import (  # type: ignore[import-not-found]  # only in the local cloud environment
            JSEvalException,
            JSOOMException,
            JSTimeoutException,
        )

        try:
            return self._do(request)
        except JSTimeoutException:
            return {"limit": "time"}
        except JSOOMException:
            return {"limit": "memory"}
        except JSEvalException as error:  # of a library, or of its text
            lines = [line for line in str(error).splitlines() if line]
            return {"error": {"text": lines[0].partition(": ")[2] if lines else "an error without a text"}}

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        name = request["name"]
        if request["do"] == "drop":
            if environment := self._of.pop(name, None):
                environment.close()
            return {}
        if request["do"] == "define":
            self._of[name] = self._define(request)
            error = json.loads(self._eval(name, "define", *request["function"]))
            return {"error": error} if error else {}
        answer = self._eval(name, "call", json.dumps(request["rows"])) or self._eval(name, "collect")
        return dict(json.loads(answer))

    def _define(self, request: dict[str, Any]) -> Untyped:
        from py_mini_racer import MiniRacer

        environment = MiniRacer()
        environment.set_hard_memory_limit(self._memory_bytes)
        environment.eval(self._runner)
        for library in request["libraries"]:
            environment.eval(library + "\n;0", timeout_sec=self._seconds)
        return environment

    def _eval(self, name: str, what: str, *arguments: str) -> str:
        given = ",".join(map(json.dumps, arguments))
        return str(self._of[name].eval(f"__localcloud.{what}({given})", timeout_sec=self._seconds))


if __name__ == "__main__":
    main()
