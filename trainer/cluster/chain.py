"""Several commands one after the other on one machine, each when its request is there.

    python -m trainer.task chain --stage=export=URI --stage=train=URI --stage=evaluate=URI --wait=900

A stage is a process of its own, `python -m trainer.task export --request URI`: what one leaves in memory, in
allocators and in TensorFlow's state is gone for the next, and its exit code is the job's. The first request is there
when the machine starts. Each further one is waited for, and where nobody asks in time the machine ends with 0:
whoever comes later has the work done elsewhere. A machine that starts anew goes through its stages again, and each
whose result is there ends at once.
"""

from __future__ import annotations

import argparse
import logging
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

from trainer.errors import RequestError, StorageError
from trainer.storage import Storage

LOGGER = logging.getLogger(__name__)
STAGES = ("export", "train", "score", "evaluate")
LOOK_INTERVAL_S = 2.0
ENDED_BY_SIGTERM = 128 + signal.SIGTERM


@dataclass(frozen=True, kw_only=True)
class Stage:
    """A command, and where its request is or will be."""

    command: str
    request_uri: str


def parse_chain(arguments: Sequence[str]) -> tuple[tuple[Stage, ...], float]:
    """Return the stages, and how many seconds each but the first is waited for.

    Raises:
        RequestError: They cannot be read.
    """
    parser = _Parser(prog="python -m trainer.task chain", allow_abbrev=False)
    parser.add_argument("--stage", action="append", default=[], type=_stage)
    parser.add_argument("--wait", type=float, default=900.0)
    options = parser.parse_args(list(arguments))
    if not options.stage or not 0 <= options.wait < float("inf"):
        raise RequestError("chain", f"{len(options.stage)} stages, --wait={options.wait}", "a stage at least, seconds")
    return tuple(options.stage), options.wait


@dataclass
class Chain:
    """Stages on this machine.

    Args:
        stages: In order.
        wait_s: Seconds that each but the first is waited for.
        storage: Where requests are.
        program: What runs a stage, without its own arguments.
        clock: Seconds since some moment.
        sleep: Waits so many seconds.
    """

    stages: Sequence[Stage]
    wait_s: float
    storage: Storage
    program: Sequence[str] = (sys.executable, "-m", "trainer.task")
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    _child: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _is_ending: bool = field(default=False, init=False)

    def run(self) -> int:
        """Run them; return the exit code of the one that failed, 0 when none did."""
        before = signal.signal(signal.SIGTERM, self._end)
        try:
            for number, stage in enumerate(self.stages):
                if number and not self._is_asked(stage):
                    LOGGER.warning(
                        "chain: nobody asked for %s within %g s, so the machine ends", stage.command, self.wait_s
                    )
                    return 0
                code = self._run_stage(stage)
                if code or self._is_ending:
                    return code or ENDED_BY_SIGTERM
        finally:
            signal.signal(signal.SIGTERM, before)
        return 0

    def _is_asked(self, stage: Stage) -> bool:
        until = self.clock() + self.wait_s
        while not self._is_there(stage):
            if self.clock() >= until:
                return False
            self.sleep(LOOK_INTERVAL_S)
        return True

    def _is_there(self, stage: Stage) -> bool:
        try:
            return self.storage.exists(stage.request_uri)
        except StorageError as error:  # nothing is lost meanwhile, and the wait has an end
            LOGGER.warning("chain: %s", error)
            return False

    def _run_stage(self, stage: Stage) -> int:
        LOGGER.info("chain: %s", stage.command)
        self._child = subprocess.Popen([*self.program, stage.command, "--request", stage.request_uri])
        code = self._child.wait()
        self._child = None
        return 128 - code if code < 0 else code  # as a shell says it of a signal

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        """Hand SIGTERM on: the stage saves its state and ends, and its exit code is this one's."""
        self._is_ending = True
        if self._child is None:
            raise SystemExit(ENDED_BY_SIGTERM)
        self._child.send_signal(signal.SIGTERM)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RequestError("command line", message, "--stage=<command>=<request> for each stage, and --wait=<seconds>")


def _stage(text: str) -> Stage:
    command, equals, request_uri = text.partition("=")
    if command not in STAGES or not equals or not request_uri:
        raise argparse.ArgumentTypeError(f"{text!r} is no <command>=<request> of {', '.join(STAGES)}")
    return Stage(command=command, request_uri=request_uri)
