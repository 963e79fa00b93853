"""One replica of a job as a process group of this machine.

Comes in: what to run, with which environment. Goes out: a running process whose lines go to the log, and its exit code.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

from localcloud.vertex.processes.guardian import Guardian
from localcloud.vertex.processes.logs import ProcessLog
from localcloud.vertex.wire.errors import FailedPrecondition

_DRAIN_S = 2.0
_END_TIMEOUT_S = 30.0


class Replica:
    """A running replica.

    Args:
        name: `workerpool0-0`.
        env: Its whole environment.
        folder: Its working directory, made when missing; its output is kept beside it.
        guardian: Ends it when the server dies.
        end: Command that ends what SIGKILL to the process group leaves behind: a container.
        on_exit: Called once with the replica and its exit code (negative: the signal that ended it).

    Raises:
        FailedPrecondition: The program cannot be started.
    """

    def __init__(
        self,
        *,
        name: str,
        command: list[str],
        env: Mapping[str, str],
        folder: Path,
        log: ProcessLog,
        guardian: Guardian,
        on_exit: Callable[[Replica, int], None],
        end: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.preempted = False
        self.settled = False  # ended, and its last line is in the log
        folder.mkdir(parents=True, exist_ok=True)
        self._guardian = guardian
        self._on_exit = on_exit
        self._end = end
        self._ended = threading.Event()  # Popen.poll() is blind while another thread waits
        self._process = _spawn(name, command, env, folder)
        self.group = self._process.pid
        guardian.watch(self.group, end)
        self._readers = [
            log.follow(_pipe(self._process.stdout), name, "INFO", folder.with_name(f"{folder.name}.stdout.log")),
            log.follow(_pipe(self._process.stderr), name, "ERROR", folder.with_name(f"{folder.name}.stderr.log")),
        ]
        threading.Thread(target=self._wait, name=f"wait-{name}", daemon=True).start()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the whole process group, if any of it is left; podman passes SIGTERM on to its container."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.group, number)
        if number == signal.SIGKILL and self._end:
            subprocess.run(self._end, capture_output=True, timeout=_END_TIMEOUT_S, check=False)

    @property
    def running(self) -> bool:
        """Whether its main process lives."""
        return not self._ended.is_set()

    def _wait(self) -> None:
        code = self._process.wait()
        self._ended.set()
        self.signal(signal.SIGKILL)  # what it left in its group would keep the pipes open
        end = time.monotonic() + _DRAIN_S
        for reader in self._readers:
            reader.join(max(0.0, end - time.monotonic()))
        self._guardian.release(self.group)
        self.settled = True
        self._on_exit(self, code)


def stop_replicas(replicas: Iterable[Replica], grace_s: float) -> None:
    """End replicas together: SIGTERM to their groups, SIGKILL to what is left after the grace."""
    alive = [replica for replica in replicas if replica.running]
    for replica in alive:
        replica.signal(signal.SIGTERM)
    end = time.monotonic() + grace_s
    while any(replica.running for replica in alive) and time.monotonic() < end:
        time.sleep(0.01)
    for replica in alive:
        replica.signal(signal.SIGKILL)


def expand_variables(text: str, env: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the variable's value, `$$(NAME)` stays `$(NAME)`, as in Kubernetes and on Vertex AI."""

    def value(match: re.Match[str]) -> str:
        return match[0][1:] if match[0].startswith("$$") else env.get(match[1], match[0])

    return re.sub(r"\$?\$\((\w+)\)", value, text)


def _spawn(name: str, command: list[str], env: Mapping[str, str], folder: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise FailedPrecondition(
            f"The replica {name} could not start {command[0]!r}: {error.strerror}. Expected a program on"
            f" the image's PATH."
        ) from error


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise TypeError("the process was started without pipes")
    return stream
