"""docker-compose.yaml under podman-compose, whose services are started when what they depend on is so far.

Comes in: an `Engine` with the images. Goes out: the running services, or their logs when one fails. podman-compose
leaves conditions on health to podman 4.6 and to systemd's timers; here they are asked for, so that older podman and
machines without systemd do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from containers.engine import Engine, EngineError, run_program
from containers.images import PROJECT
from demo.checkout import REPOSITORY_PATH

COMPOSE_FILE_PATH = REPOSITORY_PATH / "docker-compose.yaml"
PROGRAM_PATH = REPOSITORY_PATH / ".venv" / "containers" / "bin" / "podman-compose"
_POLL_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Compose:
    """The services of docker-compose.yaml.

    Attributes:
        engine: Runs them.
        env_path: File with the variables that docker-compose.yaml asks for.
        project: Names containers, volumes and the network.
    """

    engine: Engine
    env_path: Path
    project: str = PROJECT

    def up(self, timeout_s: float) -> None:
        """Start every service in the order of `depends_on` and wait until those with a health check are healthy.

        Raises:
            EngineError: A service ended with an error, or is late; the message ends with its log.
        """
        services: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE_FILE_PATH.read_text())["services"]
        deadline = time.monotonic() + timeout_s
        waiting = dict(services)
        while waiting:
            ready = [name for name, service in waiting.items() if self._may_start(service)]
            if ready:
                self._call("up", "--detach", "--no-build", "--no-deps", *ready)
            waiting = {name: service for name, service in waiting.items() if name not in ready}
            self._wait(deadline, list(waiting))
        for name in (name for name, service in services.items() if "healthcheck" in service):
            while not self._is_healthy(name):
                self._wait(deadline, [name])

    def down(self, *, volumes: bool = False) -> None:
        """End and remove the containers and the network, and with `volumes` the volumes."""
        self._call("down", *(["--volumes"] if volumes else []))

    def execute(self, service: str, *arguments: str) -> str:
        """Run a command in a service's container and return what it prints."""
        return self.engine.podman("exec", self._container(service), *arguments, timeout_s=120)

    def _may_start(self, service: dict[str, Any]) -> bool:
        asked = {"service_healthy": self._is_healthy, "service_completed_successfully": self._is_done}
        return all(asked[need["condition"]](name) for name, need in service.get("depends_on", {}).items())

    def _is_healthy(self, service: str) -> bool:
        return self.engine.succeeds("healthcheck", "run", self._container(service))

    def _is_done(self, service: str) -> bool:
        try:
            state = self.engine.podman(
                "inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", self._container(service)
            )
        except EngineError:  # not made yet
            return False
        status, code = state.split()
        if status == "exited" and code != "0":
            raise EngineError(f"{service} ended with status {code}:\n{self.logs(service)}")
        return status == "exited"

    def logs(self, service: str) -> str:
        """Return the last lines of a service."""
        arguments = ["sh", "-c", 'podman logs --tail 60 "$1" 2>&1', "sh", self._container(service)]
        return run_program(arguments, self.engine.environment(), 60)

    def _wait(self, deadline: float, late: list[str]) -> None:
        if time.monotonic() > deadline:
            raise EngineError(f"{late[0]} is late; its log ends:\n{self.logs(late[0])}")
        time.sleep(_POLL_S)

    def _container(self, service: str) -> str:
        return f"{self.project}_{service}_1"

    def _call(self, *arguments: str) -> None:
        options = ["--project-name", self.project, "--file", COMPOSE_FILE_PATH, "--env-file", self.env_path]
        run_program([str(PROGRAM_PATH), *map(str, options), *arguments], self.engine.environment(), 300)
