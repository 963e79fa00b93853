"""What happens to a process from outside: its machine is taken away, or that of another replica.

SIGTERM comes some seconds before a machine goes. While steps are taken it only raises a flag here: the training saves
its state after the call that runs and ends with exit code 143, which the service treats as a lost machine. Where
another replica goes away, TensorFlow's cluster cannot be mended from inside ("Restart your program to reset"): the
process replaces itself by a fresh one, which waits for the others and goes on from the checkpoint.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from trainer.contract.documents import TrainRequest
from trainer.contract.results import is_done
from trainer.errors import PeerLost, TrainerError
from trainer.storage import Storage

LOGGER = logging.getLogger(__name__)
_ATTEMPTS = "TRAINER_STARTED_AGAIN"
_MOST_ATTEMPTS = 20
_FURTHEST = "TRAINER_FURTHEST_STEP"
_STUCK = "TRAINER_STUCK"  # how often a fresh process did not get past that step
_MOST_STUCK = 2
_POLL_S = 2.0


@dataclass
class Interruption:
    """A flag that SIGTERM raises."""

    asked: bool = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Take SIGTERM as a request inside the block; outside it ends the process, as always."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = signal.signal(signal.SIGTERM, self._note_request)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _note_request(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True


def start_again(environ: Mapping[str, str], error: PeerLost) -> int:
    """Replace this process by a fresh one with the same command line.

    What was done before is handed on in the environment.

    Returns:
        An exit code, if it did that too often, or if twice it did not help against what may be the program's error.
    """
    attempts = int(environ.get(_ATTEMPTS, "0")) + 1
    furthest, stuck = int(environ.get(_FURTHEST, "-1")), int(environ.get(_STUCK, "0"))
    if error.step is not None:
        furthest, stuck = (error.step, 0) if error.step > furthest else (furthest, stuck + 1)
    handed_on = {_ATTEMPTS: str(attempts), _FURTHEST: str(furthest), _STUCK: str(stuck)}
    refusal = _refusal(attempts, furthest, stuck)
    severity = logging.ERROR if refusal else logging.WARNING
    LOGGER.log(severity, "%s: %s %s", type(error).__name__, error, refusal or "Starting again.")
    if not refusal:
        os.execve(sys.executable, sys.orig_argv, {**environ, **handed_on})  # noqa: S606 - this program itself
    return error.exit_code


def _refusal(attempts: int, furthest: int, stuck: int) -> str:
    if attempts > _MOST_ATTEMPTS:
        return f"Not started again: that was done {_MOST_ATTEMPTS} times. Look at the other replicas' logs."
    if stuck >= _MOST_STUCK:
        return (
            f"Not started again: {_MOST_STUCK} restarts did not get past step {furthest}, so it may be an error of the "
            "program and no lost replica. Try the training on one machine, or look at the other replicas' logs."
        )
    return ""


def end_with_the_job(storage: Storage, request: TrainRequest, before: Callable[[], None]) -> None:
    """End this process, from a thread beside it, as soon as the job's report is there.

    For replicas that are not the chief: they may be waiting inside TensorFlow for one that has finished.

    Args:
        storage: Where the report will be.
        before: Called once, right before the end.
    """

    def end_after_report() -> None:
        wait_for_report(storage, request)
        before()
        os._exit(0)

    threading.Thread(target=end_after_report, name="end-with-the-job", daemon=True).start()


def wait_for_report(storage: Storage, request: TrainRequest, sleep: Callable[[float], None] = time.sleep) -> None:
    """Return when the report is there; storage that does not answer is asked again."""
    while True:
        try:
            if is_done(request, storage):
                return
        except TrainerError as error:
            LOGGER.warning("train: %s", error)
        sleep(_POLL_S)
