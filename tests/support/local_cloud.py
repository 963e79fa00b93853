"""What every test may ask for: `local_cloud`, a whole Google Cloud on loopback, started once per test session.

    def test_something(local_cloud):
        client = google.cloud.storage.Client()          # unmodified: the fixture has set os.environ
        client.bucket(local_cloud.bucket)

The fixture starts `python -m localcloud up` on a fresh state directory, in the local cloud's own virtual environment,
and lays the client variables over this process's environment before the first client is made (gRPC reads its roots once
per process). Set LOCALCLOUD_STATE_FOR_TESTS to keep the state directory and its server logs.
"""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import requests

from demo.checkout import CLOUD_CONFIG_PATH, PACKAGES_PATH

# A shell starts what it runs in the background with SIGINT ignored, and children inherit that; tests send it to them.
signal.signal(signal.SIGINT, signal.default_int_handler)

REPOSITORY_PATH = Path(__file__).resolve().parents[2]
LOCALCLOUD_PYTHON = REPOSITORY_PATH / ".venv" / "localcloud" / "bin" / "python"
READY_TIMEOUT_S = 120


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalCloudCommands:
    """`python -m localcloud …` for tests of the command itself; what is started ends with the test."""

    started: list[subprocess.Popen[str]] = dataclasses.field(default_factory=list)

    python: Path = LOCALCLOUD_PYTHON

    def environ(self) -> dict[str, str]:
        """Return the environment for `python -m localcloud` itself."""
        return localcloud_environ()

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return run_localcloud(*arguments, check=check)

    def start(self, state_path: Path, *arguments: str) -> subprocess.Popen[str]:
        """Start `up` without waiting for it."""
        self.started.append(start_localcloud(state_path, *arguments))
        return self.started[-1]

    def start_ready(self, state_path: Path, *arguments: str) -> subprocess.Popen[str]:
        """Start `up` and wait until it is ready."""
        process = self.start(state_path, *arguments)
        wait_until_ready(process)
        return process


@dataclasses.dataclass(frozen=True, kw_only=True)
class LocalCloud:
    """A running local cloud: where it is and what its clients need."""

    env: Mapping[str, str]
    state_path: Path
    project: str
    region: str
    bucket: str
    dataset: str

    @property
    def headers(self) -> dict[str, str]:
        """Header fields that say who calls, for requests without a client of Google's."""
        return {"Authorization": f"Bearer {self.env['GOOGLE_AUTH_TOKEN_FOR_TESTING']}"}

    @property
    def http(self) -> requests.Session:
        """A session that says who calls."""
        session = requests.Session()
        session.headers.update(self.headers)
        return session

    def run(self, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run `python -m localcloud …` on this cloud's state directory."""
        return run_localcloud(*arguments, "--state", str(self.state_path), check=check)

    def seed(self) -> str:
        """Load the demonstration's tables; give what `python -m demo.seed` said."""
        command = [str(LOCALCLOUD_PYTHON), "-m", "demo.seed", "--state", str(self.state_path)]
        environ = localcloud_environ()
        return subprocess.run(command, env=environ, text=True, capture_output=True, check=True, timeout=120).stdout


def localcloud_environ() -> dict[str, str]:
    """Return the environment for `python -m localcloud` itself."""
    return {**os.environ, "PYTHONPATH": PACKAGES_PATH}


def run_localcloud(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run `python -m localcloud …` to its end."""
    command = [str(LOCALCLOUD_PYTHON), "-m", "localcloud", *arguments]
    return subprocess.run(command, env=localcloud_environ(), text=True, capture_output=True, check=check, timeout=120)


def start_localcloud(state_path: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start `up` in a session of its own; its lines can be read from `stdout`."""
    command = [str(LOCALCLOUD_PYTHON), "-m", "localcloud", "up", "--state", str(state_path), *arguments]
    return subprocess.Popen(
        command,
        env=localcloud_environ(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def wait_until_ready(process: subprocess.Popen[str]) -> list[str]:
    """Read the lines of `up` until it says `ready`; fail with all of them when it ends before."""
    lines: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if line.startswith("ready"):
            return lines
    pytest.fail("the local cloud did not start:\n" + "\n".join(lines))


def read_environment(state_path: Path) -> dict[str, str]:
    """Ask `env --json` for the client variables."""
    import json

    values: dict[str, str] = json.loads(run_localcloud("env", "--json", "--state", str(state_path)).stdout)
    return values


@pytest.fixture
def localcloud_commands() -> Iterator[LocalCloudCommands]:
    """`python -m localcloud`, for clouds of the test's own."""
    if not LOCALCLOUD_PYTHON.exists():
        pytest.skip("the local cloud's environment is missing: run `make setup`")
    commands = LocalCloudCommands()
    yield commands
    for process in commands.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture(scope="session")
def local_cloud() -> Iterator[LocalCloud]:
    """A running local cloud; os.environ points this process's Google clients at it until the session ends."""
    if not LOCALCLOUD_PYTHON.exists():
        pytest.skip("the local cloud's environment is missing: run `make setup`")
    with tempfile.TemporaryDirectory(prefix="localcloud-") as temporary:
        state_path = Path(os.environ.get("LOCALCLOUD_STATE_FOR_TESTS") or Path(temporary, "state"))
        process = start_localcloud(state_path, "--config", str(CLOUD_CONFIG_PATH))
        try:
            wait_until_ready(process)
            env = read_environment(state_path)
            with pytest.MonkeyPatch.context() as patch:
                for name, value in env.items():
                    patch.setenv(name, value) if value else patch.delenv(name, raising=False)
                yield LocalCloud(
                    env=env,
                    state_path=state_path,
                    project=env["RETRAINING_PROJECT"],
                    region=env["RETRAINING_REGION"],
                    bucket=env["RETRAINING_BUCKET"],
                    dataset=env["RETRAINING_DATASET"],
                )
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()


AddFault = Callable[..., dict[str, Any]]


@pytest.fixture
def add_fault(local_cloud: LocalCloud) -> Iterator[AddFault]:
    """Put faults in force for one test: `add_fault("storage.objects.insert gs://*/spans/*", "error", count=2)`.

    Keys of the action (code, message, seconds, after, …) are given by name; what is left is taken back at the end.
    """
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/faults"

    def add(
        target: str, kind: str, *, count: int = 1, skip: int = 0, filter: str = "", **action: Any
    ) -> dict[str, Any]:
        body = {"target": target, "count": count, "skip": skip, "filter": filter, "action": {"kind": kind, **action}}
        answer = requests.post(url, json=body, headers=local_cloud.headers, timeout=60)
        assert answer.status_code == 200, answer.text
        fault: dict[str, Any] = answer.json()
        return fault

    yield add
    requests.delete(url, headers=local_cloud.headers, timeout=60)
