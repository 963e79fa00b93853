"""MLflow's tracking server, by its REST API 2.0: a run of a model is one run there.

In: an Airflow connection and `TrackedRun` values. Out: runs. It is asked through `requests`, without MLflow's own
package, which would bring databricks-sdk, opentelemetry and more into Composer's environment, for seven calls.

A run is looked for by its tag before it is made. Whoever made one looks again, and of several all but the oldest go, so
that two tasks at once leave one. What doubles until then: a run that a task made and was killed before it looked again,
until the next task that tracks it.
"""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from retraining.core.documents.document import read_object
from retraining.core.errors import ContractError, TrackingError
from retraining.core.report.tracking import mlflow as forms
from retraining.core.report.tracking.mlflow import DIGEST_TAG, RUN_KEY_TAG, STATUSES, StoredRun
from retraining.core.report.tracking.tracked_run import Status, TrackedRun
from retraining.core.untyped import ApiJson
from retraining.hooks.clock import Clock
from retraining.hooks.session import call

if TYPE_CHECKING:
    import requests
    from airflow.sdk import Connection

LOGGER = logging.getLogger(__name__)
PATIENCE_S = 15.0
"""Of one call, with its retries."""
MAX_BYTES = 50_000_000
"""Of one answer: a page of runs, each with all its parameters."""
CONNECT_S = 10.0
PAGE = 100
"""Runs of one answer: each has all its parameters."""
MOST_PAGES = 20
CONNECTION_TYPES = ("http", "https")
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
PASSING = (429, 500, 502, 503, 504)
GONE = "RESOURCE_DOES_NOT_EXIST"
THERE = "RESOURCE_ALREADY_EXISTS"


class _PassingError(ConnectionError):
    """The server did not answer as it should, and may a moment later; its text may be shown."""


class _RefusedError(Exception):
    """The server refused a request. `code` is MLflow's word for it."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"HTTP {status} {code}".rstrip())
        self.status, self.code = status, code


class Mlflow:
    """One tracking server.

    Args:
        connection_id: Airflow's.
        environment: Label of this environment: its models' experiments are `<environment>/<model>`.
    """

    def __init__(self, connection_id: str, environment: str) -> None:
        self._environment = environment
        self._where = f"MLflow, connection {connection_id}"
        connection = _connection(connection_id, self._where)
        self._address = server_address(connection, self._where)
        self._login, self._secret = (connection.login or "").strip(), (connection.password or "").strip()
        self._clock = Clock()

    def track(self, run: TrackedRun) -> str:
        """Bring a run to what it is, unless the server was told all of it; return its id.

        Raises:
            TrackingError: The server refused it.
            ConnectionError: It gave no answer in time.
        """
        try:
            try:
                return self._track(run)
            except _RefusedError:  # another task may have taken this one away, for its own is older
                return self._track(run)
        except _RefusedError as error:
            raise self._refused(error) from None

    def digests(self, model: str) -> dict[str, str]:
        """Return what the server was last told of each run of a model, by run key.

        Raises:
            TrackingError: It refused.
            ConnectionError: It gave no answer in time.
        """
        try:
            experiment_id = self._find_experiment(model)
            runs = list(self._search(experiment_id, "")) if experiment_id else []
        except _RefusedError as error:
            raise self._refused(error) from None
        found: dict[str, str] = {}
        for run in sorted(runs, key=lambda each: (each.started_ms, each.run_id), reverse=True):  # the oldest counts
            if key := run.tags.get(RUN_KEY_TAG):
                is_whole = run.status != STATUSES[Status.RUNNING]
                found[key] = run.tags.get(DIGEST_TAG, "") if is_whole else ""
        return found

    def _track(self, run: TrackedRun) -> str:
        experiment_id = self._find_experiment(run.model) or self._create_experiment(run.model)
        stored = self._find_run(experiment_id, run) or self._create_run(experiment_id, run)
        if stored.shows(run):
            return stored.run_id
        if kept := forms.kept_parameters(run, stored):
            LOGGER.warning("%s: run %s keeps what it has as %s", self._where, run.run_key, ", ".join(kept))
        for batch in forms.batches(run, stored):
            self._post("runs/log-batch", batch)
        ended = {} if run.status == Status.RUNNING else {"end_time": forms.milliseconds(self._now())}
        self._post("runs/update", {"run_id": stored.run_id, "status": STATUSES[run.status], **ended})
        mark = [{"key": DIGEST_TAG, "value": run.digest}]  # last: whoever was killed before tells it again
        self._post("runs/log-batch", {"run_id": stored.run_id, "metrics": [], "params": [], "tags": mark})
        return stored.run_id

    def _find_experiment(self, model: str) -> str | None:
        name = forms.experiment_name(self._environment, model)
        try:
            found = self._get("experiments/get-by-name", {"experiment_name": name})["experiment"]
        except _RefusedError as error:
            if error.code == GONE:
                return None
            raise
        if found.get("lifecycle_stage") == "deleted":
            raise TrackingError(
                self._where,
                f"the experiment {name} is deleted",
                "one that takes runs",
                "Restore it, or delete it for good: mlflow gc",
            )
        return str(found["experiment_id"])

    def _create_experiment(self, model: str) -> str:
        try:
            made = self._post("experiments/create", {"name": forms.experiment_name(self._environment, model)})
            return str(made["experiment_id"])
        except _RefusedError as error:
            found = self._find_experiment(model) if error.code == THERE else None
            if found is None:
                raise
            return found

    def _find_run(self, experiment_id: str, run: TrackedRun) -> StoredRun | None:
        """Return the run of a key; of several the oldest, and the others go."""
        found = list(self._search(experiment_id, f"tags.`{RUN_KEY_TAG}` = '{run.run_key}'"))
        if not found:
            return None
        counts = forms.oldest(found)
        for other in found:
            if other.run_id != counts.run_id:
                with contextlib.suppress(_RefusedError):  # another task was faster with that, too
                    self._post("runs/delete", {"run_id": other.run_id})
        return counts

    def _create_run(self, experiment_id: str, run: TrackedRun) -> StoredRun:
        made = self._post("runs/create", forms.new_run(run, experiment_id, self._now()))["run"]
        return self._find_run(experiment_id, run) or _read_run(made)

    def _search(self, experiment_id: str, filter_text: str) -> Iterator[StoredRun]:
        token = ""
        for _ in range(MOST_PAGES):
            body = {
                "experiment_ids": [experiment_id],
                "filter": filter_text,
                "run_view_type": "ACTIVE_ONLY",
                "max_results": PAGE,
                "order_by": ["attributes.start_time DESC"],
                **({"page_token": token} if token else {}),
            }
            answer = self._post("runs/search", body)
            yield from map(_read_run, answer.get("runs", []))
            token = str(answer.get("next_page_token") or "")
            if not token:
                return

    def _get(self, what: str, query: Mapping[str, str]) -> ApiJson:
        return self._call("GET", what, params=query)

    def _post(self, what: str, body: ApiJson) -> ApiJson:
        return self._call("POST", what, json=body)

    def _call(self, method: str, what: str, **content: object) -> ApiJson:
        def send() -> ApiJson:
            try:
                answer = self._client.request(
                    method,
                    f"{self._address}/api/2.0/mlflow/{what}",
                    timeout=CONNECT_S,
                    allow_redirects=False,
                    auth=self._authorize,
                    **content,  # type: ignore[arg-type]  # params or json
                )
                return self._read(answer, what)
            except OSError as error:  # those of requests too, whose texts have the address in them
                if isinstance(error, _PassingError):
                    raise
                raise _PassingError(f"{self._where}: {type(error).__name__}") from None

        return call(send, timeout_s=PATIENCE_S, max_bytes=MAX_BYTES)

    def _read(self, answer: requests.Response, what: str) -> ApiJson:
        if answer.status_code in PASSING:
            raise _PassingError(f"{self._where}: HTTP {answer.status_code}")
        if answer.status_code in (401, 403):
            raise TrackingError(
                self._where,
                f"HTTP {answer.status_code}",
                "an account that may write experiments",
                "Correct the connection's login and password, or the token in its password",
            )
        try:
            body = read_object(answer.content, self._where)
        except ContractError:  # its text quotes the answer
            body = None
        if answer.status_code == 200 and body is not None:
            return body
        code = body.get("error_code") if body else None
        if code is None:
            raise TrackingError(
                self._where,
                f"HTTP {answer.status_code} without MLflow's answer to {what}",
                "the address of a tracking server",
                "Correct the connection's host: what stands before /api/2.0/mlflow",
            )
        raise _RefusedError(answer.status_code, code if re.fullmatch("[A-Z_]{1,60}", str(code)) else "")

    def _refused(self, error: _RefusedError) -> TrackingError:
        return TrackingError(self._where, str(error), "that the server takes it", "Look at the server's log")

    def _now(self) -> datetime:
        return self._clock.now().astimezone(UTC)

    def _authorize(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Say who asks; without it requests would look into the account's netrc."""
        from requests.auth import HTTPBasicAuth

        if self._login:
            HTTPBasicAuth(self._login, self._secret)(request)
        elif self._secret:
            request.headers["Authorization"] = f"Bearer {self._secret}"
        return request

    @cached_property
    def _client(self) -> requests.Session:
        import requests

        from retraining.hooks.transports import limit_requests

        return limit_requests(requests.Session())


def server_address(connection: Connection, where: str) -> str:
    """Return the address that a connection stands for, without a slash at its end.

    Args:
        connection: Airflow's: `host` with or without a scheme, `schema` (https by default), `port`.
        where: The connection, as a message names it.

    Raises:
        TrackingError: It has no host, a login in its host, or a secret for plain HTTP to another machine.
    """
    host = (connection.host or "").strip().rstrip("/")
    address = host if "://" in host else f"{connection.schema or 'https'}://{host}"
    parts = urlsplit(address)
    if not host or parts.scheme not in ("http", "https") or not parts.hostname:
        raise TrackingError(where, "no host", "the tracking server's", "Set the connection's host")
    if "@" in parts.netloc:
        raise TrackingError(
            where, "a login in the host", "it in login and password", "Move it to the connection's login and password"
        )
    if parts.scheme == "http" and connection.password and parts.hostname not in LOCAL_HOSTS:
        raise TrackingError(where, "a password for plain HTTP", "https", "Set the connection's schema to https")
    netloc = f"{parts.netloc}:{connection.port}" if connection.port and parts.port is None else parts.netloc
    return f"{parts.scheme}://{netloc}{parts.path.rstrip('/')}"


def _connection(connection_id: str, where: str) -> Connection:
    """Return a connection of HTTP: what one of another type holds is a secret of something else.

    Raises:
        TrackingError: It is missing, or of another type.
    """
    from airflow.sdk.bases.hook import BaseHook

    from retraining.hooks.airflow_exceptions import AirflowException

    expected, way_out = "a connection of type http", "Make it, or set RETRAINING_MLFLOW_CONNECTION to the one there is"
    try:
        connection: Connection = BaseHook.get_connection(connection_id)
    except (AirflowException, OSError, RuntimeError, ValueError, LookupError) as error:
        raise TrackingError(where, type(error).__name__, expected, way_out) from None
    if (connection.conn_type or "").lower() not in CONNECTION_TYPES:
        raise TrackingError(where, "it is of another type; nothing was sent to it", expected, way_out)
    return connection


def _read_run(answer: ApiJson) -> StoredRun:
    info, data = answer["info"], answer.get("data", {})
    return StoredRun(
        run_id=str(info["run_id"]),
        started_ms=int(info.get("start_time") or 0),
        status=str(info.get("status", "")),
        parameters={each["key"]: each["value"] for each in data.get("params", [])},
        metrics={each["key"]: (float(each["value"]), int(each["timestamp"])) for each in data.get("metrics", [])},
        tags={each["key"]: each["value"] for each in data.get("tags", [])},
    )
