"""A trainer as the contract knows it: an image, its commands, and what it leaves in a folder."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from localcloud.vertex.processes.images import Images

REPOSITORY = Path(__file__).resolve().parents[3]
TABLE = Images(REPOSITORY / "dev" / "demo" / "localcloud.json")
SHIPPED = tuple(f"here/retraining/{name}:1" for name in ("trainer", "sklearn-trainer", "xgboost-trainer"))


@dataclass(frozen=True, kw_only=True)
class Job:
    """A command of an image, running.

    Attributes:
        process: The command, or podman's that waits for it.
        container: Its name; "": it is a process of this machine.
    """

    process: subprocess.Popen[str]
    container: str = ""

    def end(self, number: signal.Signals) -> int:
        """Send a signal, to a container by podman, and return the exit code."""
        if self.container:
            end = time.monotonic() + 60
            while not self._can_be_sent(number) and self.process.poll() is None and time.monotonic() < end:
                time.sleep(0.1)
            _podman("kill", f"--signal={number.name}", self.container)
        else:
            self.process.send_signal(number)
        self.process.communicate(timeout=60)
        return self.process.returncode

    def _can_be_sent(self, number: signal.Signals) -> bool:
        """Return whether the container's first process sees the signal: the kernel drops what it does not catch."""
        pid = _podman("inspect", "--format={{.State.Pid}}", self.container).strip() or "0"
        if pid == "0" or number == signal.SIGKILL:
            return pid != "0"
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        return bool((int(status["SigCgt"], 16) | int(status["SigBlk"], 16)) >> (number - 1) & 1)


def _podman(*arguments: str) -> str:
    """Run podman and return what it prints; of a container that is not there: nothing."""
    return subprocess.run(["podman", *arguments], capture_output=True, text=True, check=False).stdout


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """Starts an image's commands: as processes where the local cloud's table has it, else as podman's containers.

    Attributes:
        image: Its address.
        folder: Holds all that a job reads and writes; a container has it at the same path.
        containers: That were started.
    """

    image: str
    folder: Path
    containers: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The image's, without registry and tag."""
        return self.image.rpartition("/")[2].partition(":")[0]

    @property
    def is_ours(self) -> bool:
        """Whether it is this project's own."""
        return self.name == "trainer"

    def start(self, command: str, request: Path | None = None) -> Job:
        """Start a job, or what needs no request."""
        arguments = [command, *([f"--request={request}"] if request else [])]
        place = request.parent if request else self.folder
        known, name = TABLE.find_image(self.image, "training"), ""
        env: dict[str, str] | None = None
        if known is not None:
            program = [str(known.python), "-m", "trainer.task"]
            env = {"PYTHONPATH": os.pathsep.join(map(str, known.import_roots)), "HOME": str(place)}
            env |= {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONUNBUFFERED": "1"}
        else:
            name = f"check-trainer-{secrets.token_hex(4)}"
            self.containers.append(name)
            program = ["podman", "run", "--rm", f"--name={name}", "--network=none", "--security-opt=label=disable"]
            # The folder is this user's: of podman's containers their root, also without root's rights here.
            program += ["--user=0", f"--volume={self.folder}:{self.folder}", "--entrypoint=python", self.image]
            program += ["-m", "trainer.task"]
        process = subprocess.Popen([*program, *arguments], env=env, stdout=-1, stderr=-1, text=True, cwd=place)
        return Job(process=process, container=name)

    def run(self, command: str, request: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a job to its end."""
        process = self.start(command, request).process
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def images() -> list[Any]:
    """The image that was asked for, or those that are shipped; but for one of them with the long tests."""
    if asked := os.environ.get("TRAINER_IMAGE"):
        return [asked]
    long = pytest.mark.long
    return [pytest.param(SHIPPED[0], marks=long), SHIPPED[1], pytest.param(SHIPPED[2], marks=long)]


@pytest.fixture(scope="session", params=images(), ids=lambda image: image.rpartition("/")[2].partition(":")[0])
def trainer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainer]:
    """Each trainer; none of its containers is left."""
    image: Any = request.param
    known = TABLE.find_image(image, "training")
    if known is None and shutil.which("podman") is None:
        pytest.fail(f"{image}: not in dev/demo/localcloud.json, and there is no podman. Add an entry, or install it")
    if known is not None and not known.python.exists():
        pytest.fail(f"{image}: no {known.python}. make frameworks-env makes those of the examples")
    trainer = Trainer(image=image, folder=tmp_path_factory.getbasetemp())
    yield trainer
    if trainer.containers:
        _podman("rm", "--force", "--ignore", *trainer.containers)
