"""A local cloud for as long as a test, or a program, needs one.

    from localcloud.testing import start

    with start() as cloud:
        os.environ.update(cloud.environ)
        ...  # Google's clients, unmodified

Comes in: nothing that must be there. Goes out: a running local cloud in memory, with projects of its own for tests, and
none when the `with` ends. `localcloud.testing.plugin` has it as fixtures of pytest.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.environment.variables import client_environment, merged_environment
from localcloud.errors import LocalCloudError
from localcloud.state import State
from localcloud.supervision.processes import tail

SPARE_PROJECTS = 1000
STOP_TIMEOUT_S = 30


@dataclass(kw_only=True)
class RunningCloud:
    """A local cloud that runs.

    Attributes:
        state_path: Its state directory.
        spare_projects: Ids of projects that nobody has used yet.
        python: The interpreter that it runs in.
    """

    state_path: Path
    python: Path
    spare_projects: list[str] = field(default_factory=list)

    @property
    def environ(self) -> dict[str, str]:
        """The variables that lead Google's clients here; an empty value means: unset.

        What this process has on its PYTHONPATH stays on it.
        """
        return {**client_environment(self.state_path), "PYTHONPATH": merged_environment(self.state_path)["PYTHONPATH"]}

    @property
    def project(self) -> str:
        """The project that clients work in when they name none."""
        return State(self.state_path).read_settings().project

    @property
    def region(self) -> str:
        """Where everything is that names no place."""
        return State(self.state_path).read_settings().region

    @property
    def bucket(self) -> str:
        """A bucket that is there."""
        return State(self.state_path).read_settings().bucket

    def take_project(self) -> str:
        """Return the id of a project that has nothing in it and is given to nobody else.

        Raises:
            LocalCloudError: All are taken.
        """
        if not self.spare_projects:
            raise LocalCloudError(
                "take_project",
                found="all projects are taken",
                expected="one that is spare",
                way_out="Start with more: start(spare_projects=…)",
            )
        return self.spare_projects.pop(0)

    def reset(self) -> None:
        """Remove all that clients made; address, keys and projects stay. Takes as long as a start."""
        self._run("reset")

    def seed(self, folder: Path) -> list[str]:
        """Load a folder's tables and objects, as `localcloud seed`; return a line for each."""
        return self._run("seed", str(folder)).splitlines()

    def _run(self, command: str, *words: str) -> str:
        """Run a command of the local cloud; return what it printed.

        Raises:
            LocalCloudError: It refused.
        """
        line = [str(self.python), "-m", "localcloud", command, "--state", str(self.state_path), *words]
        done = subprocess.run(line, text=True, capture_output=True, check=False)
        if done.returncode:
            raise LocalCloudError(
                f"localcloud {command}",
                found=done.stderr.strip().removeprefix("localcloud: "),
                expected="it to be done",
                way_out="Correct that and try again",
            )
        return done.stdout


@contextlib.contextmanager
def start(
    *,
    config: Path | None = None,
    spare_projects: int = SPARE_PROJECTS,
    python: Path | None = None,
    arguments: Sequence[str] = (),
) -> Iterator[RunningCloud]:
    """Start a local cloud with a state directory of its own, in memory; it ends with the `with`, or this process.

    Args:
        config: File of its bucket, variables and images (`localcloud up --config`).
        spare_projects: How many projects there are for `take_project`.
        python: The interpreter of the environment that it is installed in, where that is another one than this.
        arguments: More of `localcloud up`.

    Raises:
        LocalCloudError: It did not start; the end of its log is in the message.
    """
    python = python or Path(sys.executable)
    spare = [f"test-project-{number:04}" for number in range(1, spare_projects + 1)]
    command = [str(python), "-m", "localcloud.testing.attended", "up", "--temporary", *arguments]
    command += [word for project in spare for word in ("--project", project)]
    command += ["--config", str(config)] if config else []
    with tempfile.NamedTemporaryFile(suffix=".log") as log:
        # Its standard input closes with this process, however it ends; then it ends, and removes its directory.
        up = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            state_path = _state_when_ready(up, Path(log.name))
            yield RunningCloud(state_path=state_path, python=python, spare_projects=spare)
        finally:
            up.terminate()
            try:
                up.communicate(timeout=STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                up.kill()
                up.communicate()


def _state_when_ready(up: subprocess.Popen[bytes], log_path: Path) -> Path:
    """Return the state directory that it names in its first line, once it says that it is ready."""
    while not any(line.startswith("ready") for line in log_path.read_text().splitlines()):
        if up.poll() is not None:
            raise LocalCloudError(
                "start",
                found=f"the local cloud ended; the end of its log:\n{tail(log_path)}\n",
                expected="it to be ready",
                way_out="Correct that and try again",
            )
        time.sleep(0.05)
    first = log_path.read_text().splitlines()[0]
    return Path(shlex.split(first)[1].partition("=")[2])
