"""One served model: its container, or the process in its place, watched, started again when it dies.

Comes in: a container with routes, and artifacts on storage. Goes out: answers to its requests, as bytes. Containers
share the network of this machine: AIP_HTTP_PORT is a free port, and not the first of the spec's.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import queue
import secrets
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

from localcloud.vertex.processes.commands import serving_command
from localcloud.vertex.processes.logs import ProcessLog
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.processes.replicas import Replica, stop_replicas
from localcloud.vertex.processes.serving_contract import Container
from localcloud.vertex.resources.operations import Progress
from localcloud.vertex.resources.validation import split_gcs_uri
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition, InvalidArgument, NotFound, Unavailable

LOGGER = logging.getLogger(__name__)
_FETCH_S = 60.0  # the artifacts and the process, before it is asked whether it is healthy
PREDICT_TIMEOUT_S = 60.0
JSON = "application/json"
_HEALTH_TIMEOUT_S = 10.0  # the service's own
_POLL_S = 0.01
_NOTICE_S = 3.0  # until the end of a process is noticed, at the latest
_MAX_BACKOFF_S = 15.0
# What a container's status becomes; others of its faults are INTERNAL, of the caller's FAILED_PRECONDITION.
_CODES = {400: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED"}


class ServedModel:
    """One served model's process.

    Args:
        machinery: What processes need.
        container: What is started.
        where: What messages call it.
        log: Takes its lines.
        folder: Its artifacts and its output are kept here.
    """

    def __init__(
        self, *, machinery: Machinery, container: Container, where: str, log: ProcessLog, folder: Path
    ) -> None:
        self.folder = folder
        self._machinery = machinery
        self._container = container
        self._where = where
        self._log = log
        self._connections: queue.SimpleQueue[http.client.HTTPConnection] = queue.SimpleQueue()
        self._replica: Replica | None = None
        self._port: int | None = None
        self._secret = ""
        self._failures = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._keep_up, name=f"serving-{folder.name}", daemon=True)
        self._problem: ApiError | None = None

    def start(self) -> None:
        """Begin to come up."""
        self._thread.start()

    def wait_ready(self, progress: Progress | None = None, end: float | None = None) -> int:
        """Return the port, once the model answers.

        Args:
            progress: Of who waits for its first start: may be cancelled, and is told why it does not come up.
            end: Of the waiting, on the monotonic clock; None: it may take as long as its image says.

        Raises:
            ApiError: It failed, or the time is up.
        """
        end = self._latest() if end is None else end
        while self._port is None:
            if progress is not None:
                progress.check()
                if self._problem is not None:
                    raise self._problem
            if self._stopping.is_set() or time.monotonic() > end:
                raise Unavailable(f"The {self._where} is not healthy (yet). See its log in Cloud Logging.")
            time.sleep(_POLL_S)
        return self._port

    def stop(self) -> None:
        """End the process, for good."""
        self._stopping.set()
        if self._replica is not None:
            stop_replicas([self._replica], 1.0)
        self._thread.join(timeout=5.0)

    def predict(self, body: bytes, content_type: str = JSON, timeout_s: float = PREDICT_TIMEOUT_S) -> bytes:
        """Return the model's answer; a process that just died is waited for.

        Raises:
            ApiError: The container answers with another status than 200, or not in time.
            Unavailable: It does not come back.
        """
        end = self._latest()
        while True:
            port = self.wait_ready(end=end)
            try:
                return self._post(port, body, content_type, timeout_s)
            except TimeoutError as error:
                raise ApiError(
                    f"The {self._where} did not answer within {timeout_s:g} s.", code="DEADLINE_EXCEEDED"
                ) from error
            except (OSError, http.client.HTTPException) as error:
                # A prediction changes nothing, so it may be asked again; but not of a process that lives on and fails.
                if not self._has_moved_from(port):
                    raise Unavailable(f"The {self._where} does not answer: {error}. Try again.") from error

    def _latest(self) -> float:
        """Return until when a start that begins now may take."""
        return time.monotonic() + _FETCH_S + self._container.image.healthy_within_s

    def _has_moved_from(self, port: int) -> bool:
        end = time.monotonic() + _NOTICE_S
        while self._port == port and time.monotonic() < end:
            time.sleep(_POLL_S)
        return self._port != port

    def _post(self, port: int, body: bytes, content_type: str, timeout_s: float) -> bytes:
        connection = self._connect(port)
        connection.timeout = timeout_s
        try:
            if connection.sock is not None:
                connection.sock.settimeout(timeout_s)
            fields = {"Content-Type": content_type, **self._proof()}
            connection.request("POST", self._container.predict_route, body, fields)
            response = connection.getresponse()
            data = response.read()
        except BaseException:  # half an answer may still be in it: it must not go back to the others
            connection.close()
            raise
        self._connections.put(connection)
        if response.status != 200:
            raise self._refusal(response.status, data.decode(errors="replace"))
        return data

    def _refusal(self, status: int, text: str) -> ApiError:
        """Return what the caller is told of a container's status."""
        if status == 400:  # of the instances: the container knows best
            return InvalidArgument(text)
        code = _CODES.get(status, "INTERNAL" if status >= 500 else "FAILED_PRECONDITION")
        route = self._container.predict_route
        return ApiError(f"The {self._where} answered {status} at its predict route {route}: {text[:500]}", code=code)

    def _proof(self) -> dict[str, str]:
        """Return the header field that our own servers know us by: a port is everybody's on this machine."""
        return {"X-Serving-Secret": self._secret}

    def _connect(self, port: int) -> http.client.HTTPConnection:
        with contextlib.suppress(queue.Empty):
            while True:
                kept = self._connections.get_nowait()
                if kept.port == port:
                    return kept
                kept.close()
        return http.client.HTTPConnection("127.0.0.1", port, timeout=PREDICT_TIMEOUT_S)

    def _keep_up(self) -> None:
        while not self._stopping.is_set():
            ended = threading.Event()
            try:
                self._launch(ended)
                self._failures = 0
                ended.wait()
            except ApiError as error:
                self._problem = error
                LOGGER.error("%s: %s", self._where, error.message)
            except (
                Exception
            ) as error:  # the thread's last line: requests get it as their answer, and it may start again
                self._problem = ApiError(f"The {self._where} failed: {type(error).__name__}: {error}.", code="INTERNAL")
                LOGGER.exception("%s failed", self._where)
            self._port = None
            if not self._stopping.is_set():
                self._failures += 1
                self._log.say("prediction", f"The {self._where} ended and is started again.", "WARNING")
                self._stopping.wait(min(_MAX_BACKOFF_S, 0.25 * 2**self._failures) if self._failures > 1 else 0.0)

    def _launch(self, ended: threading.Event) -> None:
        """Start the process and wait until it is healthy; the artifacts arrive while it imports what it needs."""
        self.folder.mkdir(parents=True, exist_ok=True)
        artifacts, port = self.folder / "model", _free_port()
        self._secret = secrets.token_urlsafe(24)
        container = self._container
        command = serving_command(
            spec=container.spec,
            image=container.image,
            variables={
                **self._machinery.environment(container.account),
                **container.variables(port),
                "AIP_PROJECT_NUMBER": self._machinery.project_number,
            },
            own={"LOCALCLOUD_ARTIFACTS": str(artifacts), "LOCALCLOUD_SERVING_SECRET": self._secret},
            folder=self.folder,
        )
        self._replica = replica = Replica(
            name="prediction",
            command=command.arguments,
            env=command.env,
            folder=self.folder / "work",
            log=self._log,
            guardian=self._machinery.guardian,
            on_exit=lambda _replica, _code: ended.set(),
            end=command.end,
        )
        try:
            if container.artifact_uri and not artifacts.exists():
                self._fetch(artifacts)
            self._await_health(port, ended)
            self._port = port
        except BaseException:  # also a cancelled operation: no process may outlive its start
            replica.signal(signal.SIGKILL)
            raise

    def _await_health(self, port: int, ended: threading.Event) -> None:
        """Ask the health route until it answers 200."""
        within_s, route = self._container.image.healthy_within_s, self._container.health_route
        end, seen = time.monotonic() + within_s, "nothing"
        while (status := self._look_at_health(port)) != 200:
            seen = str(status) if status else seen
            if ended.wait(_POLL_S):
                raise FailedPrecondition(f"The {self._where} ended before it was healthy: {_last_line(self.folder)}")
            if self._stopping.is_set() or time.monotonic() > end:
                raise Unavailable(
                    f"The {self._where} did not become healthy within {within_s:g} s: its health route {route} on"
                    f" AIP_HTTP_PORT answered {seen}. Expected 200. See its log in Cloud Logging."
                )

    def _look_at_health(self, port: int) -> int | None:
        """Return the status of the health route; None when there is no answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_HEALTH_TIMEOUT_S)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", self._container.health_route, headers=self._proof())
            return connection.getresponse().status
        return None

    def _fetch(self, model: Path) -> None:
        bucket, path = split_gcs_uri(self._container.artifact_uri)
        partial = model.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        if self._machinery.buckets.download_folder(bucket, path, partial) == 0:
            raise NotFound(
                f"The artifacts of the {self._where} are gone: {self._container.artifact_uri} is empty. Upload the"
                " model again."
            )
        partial.replace(model)


def _free_port() -> int:
    """Return a port that is free now; where another program is faster, the process ends and gets another."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _last_line(folder: Path) -> str:
    errors = folder / "work.stderr.log"
    lines = errors.read_text(errors="replace").strip().splitlines() if errors.exists() else []
    return lines[-1] if lines else "it printed nothing"
