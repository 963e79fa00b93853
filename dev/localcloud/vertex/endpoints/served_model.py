"""One served model: a TensorFlow process, watched, started again when it dies.

Comes in: artifacts on storage and the image that serves them. Goes out: answers to its container's requests.
"""

from __future__ import annotations

import contextlib
import http.client
import logging
import queue
import shutil
import signal
import threading
import time
from pathlib import Path

from localcloud.vertex.processes.commands import serving_environment
from localcloud.vertex.processes.images import Image
from localcloud.vertex.processes.logs import ProcessLog
from localcloud.vertex.processes.machinery import Machinery
from localcloud.vertex.processes.replicas import Replica, stop_replicas
from localcloud.vertex.resources.operations import Progress
from localcloud.vertex.resources.validation import split_gcs_uri
from localcloud.vertex.wire.errors import ApiError, FailedPrecondition, InvalidArgument, NotFound, Unavailable

LOGGER = logging.getLogger(__name__)
READY_TIMEOUT_S = 120.0
PREDICT_TIMEOUT_S = 60.0
_POLL_S = 0.01
_NOTICE_S = 3.0  # until the end of a process is noticed, at the latest
_MAX_BACKOFF_S = 15.0


class ServedModel:
    """One served model's process.

    Args:
        machinery: What processes need.
        image: What stands for its container.
        artifact_uri: Its folder on storage.
        where: What messages call it.
        log: Takes its lines.
        folder: Its artifacts and its output are kept here.
    """

    def __init__(
        self, *, machinery: Machinery, image: Image, artifact_uri: str, where: str, log: ProcessLog, folder: Path
    ) -> None:
        self.folder = folder
        self._machinery = machinery
        self._image = image
        self._artifact_uri = artifact_uri
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

    def wait_ready(self, timeout_s: float, progress: Progress | None = None) -> int:
        """Return the port, once the model answers.

        Raises:
            ApiError: It failed, or the time is up.
        """
        end = time.monotonic() + timeout_s
        while self._port is None:
            if progress is not None:
                progress.check()
                if self._problem is not None:
                    raise self._problem
            if self._stopping.is_set() or time.monotonic() > end:
                raise Unavailable(
                    f"The {self._where} did not become healthy within {timeout_s:g} s. See its log in Cloud Logging."
                )
            time.sleep(_POLL_S)
        return self._port

    def stop(self) -> None:
        """End the process, for good."""
        self._stopping.set()
        if self._replica is not None:
            stop_replicas([self._replica], 1.0)
        self._thread.join(timeout=5.0)

    def predict(self, body: bytes) -> bytes:
        """Return the model's answer; a process that just died is waited for.

        Raises:
            InvalidArgument: The model refuses the request.
            Unavailable: It does not come back.
        """
        end = time.monotonic() + READY_TIMEOUT_S
        while True:
            port = self.wait_ready(end - time.monotonic())
            try:
                return self._post(port, body)
            except (OSError, http.client.HTTPException) as error:
                # A prediction changes nothing, so it may be asked again; but not of a process that lives on and fails.
                if not self._has_moved_from(port):
                    raise Unavailable(f"The {self._where} does not answer: {error}. Try again.") from error

    def _has_moved_from(self, port: int) -> bool:
        end = time.monotonic() + _NOTICE_S
        while self._port == port and time.monotonic() < end:
            time.sleep(_POLL_S)
        return self._port != port

    def _post(self, port: int, body: bytes) -> bytes:
        connection = self._connect(port)
        try:
            connection.request("POST", "/predict", body, {"Content-Type": "application/json", **self._proof()})
            response = connection.getresponse()
            data = response.read()
        except BaseException:  # half an answer may still be in it: it must not go back to the others
            connection.close()
            raise
        self._connections.put(connection)
        if response.status != 200:
            raise InvalidArgument(data.decode())
        return data

    def _proof(self) -> dict[str, str]:
        """Return the header field that the process knows us by: its port is everybody's on this machine."""
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
        """Start the process and wait until it answers; the artifacts arrive while it imports TensorFlow."""
        self.folder.mkdir(parents=True, exist_ok=True)
        port_file, model = self.folder / "port", self.folder / "model"
        port_file.unlink(missing_ok=True)
        script = Path(__file__).with_name("serving_process.py")
        self._replica = replica = Replica(
            name="prediction",
            command=[str(self._image.python), str(script), "--model", str(model), "--port-file", str(port_file)],
            env=serving_environment(self._image, self.folder),
            folder=self.folder / "work",
            log=self._log,
            guardian=self._machinery.guardian,
            on_exit=lambda _replica, _code: ended.set(),
        )
        try:
            if not model.exists():
                self._fetch(model)
            end = time.monotonic() + READY_TIMEOUT_S
            while not port_file.exists():
                if ended.wait(_POLL_S):
                    raise FailedPrecondition(
                        f"The {self._where} ended before it was healthy: {_last_line(self.folder)}"
                    )
                if self._stopping.is_set() or time.monotonic() > end:
                    raise Unavailable(f"The {self._where} did not become healthy in time.")
            port, self._secret = port_file.read_text().split()
            self._port = self._checked_port(int(port))
        except BaseException:  # also a cancelled operation: no process may outlive its start
            replica.signal(signal.SIGKILL)
            raise

    def _fetch(self, model: Path) -> None:
        bucket, path = split_gcs_uri(self._artifact_uri)
        partial = model.with_suffix(".part")
        shutil.rmtree(partial, ignore_errors=True)
        if self._machinery.buckets.download_folder(bucket, path, partial) == 0:
            raise NotFound(
                f"The artifacts of the {self._where} are gone: {self._artifact_uri} is empty. Upload the model again."
            )
        partial.replace(model)

    def _checked_port(self, port: int) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        with contextlib.closing(connection):
            connection.request("GET", "/health", headers=self._proof())
            if connection.getresponse().status != 200:
                raise Unavailable(f"The {self._where} is not healthy.")
        return port


def _last_line(folder: Path) -> str:
    errors = folder / "work.stderr.log"
    lines = errors.read_text(errors="replace").strip().splitlines() if errors.exists() else []
    return lines[-1] if lines else "it printed nothing"
