"""A whole Airflow on this machine: API server, scheduler, DAG processor and triggerer with one folder of DAGs.

Comes in: a home folder, a port and the environment of the local cloud. Goes out: running processes, a login, and an
`AirflowApi`. SQLite and the LocalExecutor: for one person on one machine, as Airflow's own `standalone`, but without
its log servers, which listen on every address.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGTERM

import requests

from localcloud.errors import LocalCloudError
from localcloud.supervision.processes import spawn, stop_all, tail
from retraining_laptop.airflow_api import AirflowApi

COMPONENTS = {
    "api-server": ["api-server"],
    "scheduler": ["scheduler", "--skip-serve-logs"],
    "dag-processor": ["dag-processor"],
    "triggerer": ["triggerer", "--skip-serve-logs"],
}
USERNAME = "admin"
SETTINGS_NAME = "settings.json"
LOCAL_SETTINGS_PATH = Path(__file__).with_name("airflow_local_settings.py")


@dataclass(kw_only=True)
class Airflow:
    """One Airflow: its home folder, its address, and its processes while they run.

    Attributes:
        home_path: `AIRFLOW_HOME`: database, logs, secrets; made if missing.
        port: Port of the API server and UI, on loopback.
        environment: Whole environment of its processes, the local cloud's variables included.
        dags_path: Folder of DAG files.
        plugins_path: Folder of plugins; None: those of installed packages alone.
        environment_path: Python's environment that it is installed in.
        variables: Further settings of its processes, and of a person's shell beside them.
    """

    home_path: Path
    port: int
    environment: Mapping[str, str]
    dags_path: Path
    plugins_path: Path | None
    environment_path: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict, repr=False)

    @property
    def url(self) -> str:
        """Address of the UI."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self) -> str:
        """Password of the user `admin`, made at random once per home folder."""
        path = self.home_path / "passwords.json"
        if not path.exists():
            self._write_private(path, json.dumps({USERNAME: secrets.token_urlsafe(12)}))
        return str(json.loads(path.read_text())[USERNAME])

    def api(self) -> AirflowApi:
        """Return a client of this Airflow's REST API."""
        return AirflowApi(url=self.url, username=USERNAME, password=self.password)

    def write_settings(self) -> None:
        """Make the home folder, with what its processes read from there."""
        (self.home_path / "config").mkdir(parents=True, exist_ok=True)
        shutil.copy(LOCAL_SETTINGS_PATH, self.home_path / "config")

    def start_migration(self) -> subprocess.Popen[bytes] | None:
        """Start making the metadata database; None when this home folder has one of this Airflow's version."""
        self.write_settings()
        if self._migrated_path.exists() and self._migrated_path.read_text() == self._installed_version():
            return None
        return spawn([self._program, "db", "migrate"], log_path=self._log_path("migrate"), env=self.whole_environment())

    def finish_migration(self, migration: subprocess.Popen[bytes] | None) -> None:
        """Wait until the database is made.

        Raises:
            LocalCloudError: `airflow db migrate` failed.
        """
        if migration is None:
            return
        if migration.wait() != 0:
            raise self._error("migrate", "`airflow db migrate` failed")
        self._migrated_path.write_text(self._installed_version())

    def start(self) -> None:
        """Start all components; returns at once. The settings are left in the home folder, for `demo.shell`."""
        (self.home_path / SETTINGS_NAME).write_text(json.dumps(self._settings()))
        for name in COMPONENTS:
            self.start_component(name)

    def start_component(self, name: str) -> None:
        """Start a component, one that ended again."""
        self._processes[name] = spawn(
            [self._program, *COMPONENTS[name]],
            log_path=self._log_path(name),
            env=self.whole_environment(),
            # SIGTERM lets a component end its own workers when the demonstration is killed.
            death_signal=SIGTERM,
        )

    def kill_component(self, name: str) -> None:
        """End a component as the kernel does that has no memory left: it alone, and at once."""
        self._processes[name].kill()
        self._processes[name].wait()

    def wait_answering(self, *, timeout_s: float = 180, between: Callable[[], None] = lambda: None) -> None:
        """Wait until the API server answers: from then on a person can log in.

        Args:
            timeout_s: Seconds until this gives up.
            between: Called between two looks (to watch other processes).

        Raises:
            LocalCloudError: A component ended, or time ran out.
        """
        self._wait_for((), timeout_s, between)

    def wait_ready(self, *, timeout_s: float = 180, between: Callable[[], None] = lambda: None) -> None:
        """Wait until the scheduler and the DAG processor beat, too; as `wait_answering` otherwise."""
        self._wait_for(("scheduler", "dag_processor"), timeout_s, between)

    def _wait_for(self, parts: Iterable[str], timeout_s: float, between: Callable[[], None]) -> None:
        api, deadline = self.api(), time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            self.check_alive()
            between()
            with contextlib.suppress(requests.RequestException):
                health = api.health()
                if all(health.get(part, {}).get("status") == "healthy" for part in parts):
                    return
            time.sleep(0.3)
        raise self._error("api-server", f"Airflow is not ready after {timeout_s:.0f} s")

    def check_alive(self) -> None:
        """Notice a component that ended by itself.

        Raises:
            LocalCloudError: One did; its last log lines are in the message.
        """
        for name, process in self._processes.items():
            if process.poll() is not None:
                raise self._error(name, f"airflow {name} ended with exit code {process.returncode}")

    def stop(self) -> None:
        """End all components and their workers."""
        stop_all(self._processes.values(), grace_s=10)
        self._processes.clear()

    def whole_environment(self) -> dict[str, str]:
        """Return the whole environment of this Airflow's processes."""
        return {
            **self.environment,
            **self._settings(),
            "AIRFLOW__API__SECRET_KEY": self._secret("secret_key"),
            "AIRFLOW__API_AUTH__JWT_SECRET": self._secret("jwt_secret"),
            "PATH": f"{self._program.parent}:{self.environment.get('PATH', '')}",
            "PYTHONUNBUFFERED": "1",
        }

    def _settings(self) -> dict[str, str]:
        """Return what makes a process one of this Airflow's; no secrets, a person's shell gets these too."""
        return {
            "AIRFLOW_HOME": str(self.home_path),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__HOST": "127.0.0.1",
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__CORE__DAGS_FOLDER": str(self.dags_path),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(self.plugins_path or self.home_path / "plugins"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home_path / "passwords.json"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USERNAME}:admin",
            "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
            # Seconds that one process waits for another's write; the default, 5, is too few for a busy machine.
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home_path / 'airflow.db'}?timeout=60",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
            # A task whose process died with an earlier Airflow of this home is tried again after so long.
            "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "60",
            **self.variables,
        }

    @property
    def _migrated_path(self) -> Path:
        return self.home_path / "migrated"

    @property
    def _program(self) -> Path:
        return self.environment_path / "bin" / "airflow"

    def _log_path(self, name: str) -> Path:
        path = self.home_path / "process-logs" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def _installed_version(self) -> str:
        folders = sorted(self.environment_path.glob("lib/python*/site-packages/apache_airflow_core-*.dist-info"))
        return " ".join(folder.name for folder in folders)

    def _secret(self, name: str) -> str:
        path = self.home_path / name
        if not path.exists():
            self._write_private(path, secrets.token_urlsafe(48))
        return path.read_text()

    @staticmethod
    def _write_private(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text)

    def _error(self, name: str, found: str) -> LocalCloudError:
        return LocalCloudError(
            f"airflow {name}",
            found=f"{found}; the end of its log:\n{tail(self._log_path(name))}\n",
            expected="it to run until it is stopped",
            way_out=f"Its whole log is {self._log_path(name)}. A fresh start: remove {self.home_path} and try again.",
        )
