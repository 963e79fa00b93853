"""The whole system on one machine: the local cloud, seeded, and an Airflow that talks to it.

Comes in: folders, a port, the programs. Goes out: a running system whose every process ends with `stop`, or with this
process.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from localcloud.environment.variables import client_environment, merged_environment
from localcloud.errors import LocalCloudError
from localcloud.supervision.processes import (
    adopt_orphans,
    descendants,
    is_port_free,
    kill_descendants,
    spawn,
    stop,
    tail,
)
from retraining_laptop.airflow import USERNAME, Airflow

CLOUD_STOP_GRACE_S = 15.0


@dataclass(kw_only=True)
class System:
    """A local cloud and an Airflow.

    Attributes:
        state_path: State directory of the local cloud.
        airflow_home_path: Home folder of Airflow.
        port: Port of the Airflow UI.
        dags_path: Airflow's folder of DAG files.
        plugins_path: Airflow's folder of plugins; None: those of installed packages alone.
        environment_path: Python's environment that Airflow is installed in.
        cloud_python: The interpreter of the environment that the local cloud is installed in.
        cloud_config_path: File of the local cloud's bucket, variables and images.
        cloud_options: Further options of `localcloud up`.
        import_path: PYTHONPATH of the local cloud and of `seed`; empty where their packages are installed.
        seed: Arguments of `cloud_python` that load the data; none: nothing is loaded.
        variables: Environment of Airflow's processes beside the local cloud's.
        start_words: What a person writes before the number of another port.
        say: Takes one line of progress at a time.
    """

    state_path: Path
    airflow_home_path: Path
    port: int
    dags_path: Path
    plugins_path: Path | None
    environment_path: Path
    cloud_python: Path
    cloud_config_path: Path
    cloud_options: Sequence[str] = ()
    import_path: str = ""
    seed: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    start_words: str = "make demo PORT="
    say: Callable[[str], None] = print
    _cloud: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _airflow: Airflow | None = field(default=None, repr=False)
    _others: frozenset[int] = field(default_factory=lambda: frozenset(descendants(os.getpid())), repr=False)
    """Pids of what this process had started before, another system for example."""

    @property
    def airflow(self) -> Airflow:
        """The Airflow of this system; it has an API once `start` is over."""
        if self._airflow is None:
            raise RuntimeError("System.start() was not called")
        return self._airflow

    @property
    def login(self) -> str:
        """What a person needs to open the UI, on one line."""
        return f"Airflow    {self.airflow.url}   user {USERNAME}, password {self.airflow.password}"

    def start(self) -> None:
        """Start everything and load the data; returns when a DAG run can be triggered.

        Raises:
            LocalCloudError: A port is in use, or a server ended; its last log lines are in the message.
        """
        adopt_orphans()
        self._require_port()
        started = time.monotonic()
        self._start_cloud()
        # The database needs no cloud; making it takes as long as the cloud takes to start.
        self._airflow = self._new_airflow(dict(os.environ))
        migration = self._airflow.start_migration()
        self._wait_for_cloud()
        self.say(f"local cloud ready after {time.monotonic() - started:.1f} s")
        self._airflow.finish_migration(migration)
        self._airflow = self._new_airflow(merged_environment(self.state_path))
        os.environ.update(client_environment(self.state_path))
        self._airflow.start()
        seeding = self._start_seeding()
        self._airflow.wait_answering(between=self.check_alive)
        self.say(self.login)
        self._finish_seeding(seeding)
        self.say(f"data loaded after {time.monotonic() - started:.1f} s")
        self._airflow.wait_ready(between=self.check_alive)
        self.say(f"Airflow ready after {time.monotonic() - started:.1f} s")

    def check_alive(self) -> None:
        """Notice a server that ended by itself.

        Raises:
            LocalCloudError: One did.
        """
        if self._cloud is not None and self._cloud.poll() is not None:
            raise self._cloud_error(f"it ended with exit code {self._cloud.returncode}")
        if self._airflow is not None:
            self._airflow.check_alive()

    def stop(self) -> None:
        """End every process that this one started, and theirs."""
        if self._airflow is not None:
            self._airflow.stop()
        if self._cloud is not None:
            stop(self._cloud, grace_s=CLOUD_STOP_GRACE_S)
        kill_descendants(os.getpid(), spare=self._others)

    def _require_port(self) -> None:
        if not is_port_free(self.port):
            raise LocalCloudError(
                "Airflow's UI",
                found=f"port {self.port} on 127.0.0.1 is in use",
                expected="a free port",
                way_out=f"Name another: {self.start_words}{self.port + 1}, or end what listens there"
                f" (`ss -ltnp 'sport = :{self.port}'` names it).",
            )

    def _new_airflow(self, environment: dict[str, str]) -> Airflow:
        return Airflow(
            home_path=self.airflow_home_path,
            port=self.port,
            environment=environment,
            variables=self.variables,
            dags_path=self.dags_path,
            plugins_path=self.plugins_path,
            environment_path=self.environment_path,
        )

    def _start_cloud(self) -> None:
        self._cloud_log_path.parent.mkdir(parents=True, exist_ok=True)
        self._cloud_log_path.unlink(missing_ok=True)
        self._cloud = spawn(
            [
                self.cloud_python,
                "-m",
                "localcloud",
                "up",
                "--state",
                self.state_path,
                "--config",
                self.cloud_config_path,
                *self.cloud_options,
            ],
            log_path=self._cloud_log_path,
            env={**os.environ, "PYTHONPATH": self.import_path, "PYTHONUNBUFFERED": "1"},
        )

    def _wait_for_cloud(self, timeout_s: float = 120) -> None:
        deadline = time.monotonic() + timeout_s
        while not any(line.startswith("ready") for line in tail(self._cloud_log_path).splitlines()):
            self.check_alive()
            if time.monotonic() > deadline:
                raise self._cloud_error(f"it is not ready after {timeout_s:.0f} s")
            time.sleep(0.1)

    def _start_seeding(self) -> subprocess.Popen[bytes] | None:
        if not self.seed:
            return None
        self._seed_log_path.unlink(missing_ok=True)
        env = {**os.environ, "PYTHONPATH": self.import_path}
        return spawn([self.cloud_python, *self.seed], log_path=self._seed_log_path, env=env)

    def _finish_seeding(self, seeding: subprocess.Popen[bytes] | None) -> None:
        if seeding is not None and seeding.wait() != 0:
            raise self._cloud_error(f"the data could not be loaded: {tail(self._seed_log_path).strip()}")

    @property
    def _cloud_log_path(self) -> Path:
        return self.airflow_home_path.parent / "localcloud-up.log"

    @property
    def _seed_log_path(self) -> Path:
        return self.airflow_home_path.parent / "localcloud-seed.log"

    def _cloud_error(self, found: str) -> LocalCloudError:
        return LocalCloudError(
            "local cloud",
            found=f"{found}; the end of its log:\n{tail(self._cloud_log_path)}\n",
            expected="it to run until it is stopped",
            way_out=f"Its whole log is {self._cloud_log_path}; a fresh start: remove {self.state_path} and try again.",
        )
