"""A small client of Airflow's public REST API (v2): what the demonstration and the end-to-end tests ask of it.

Comes in: the address and login of an API server. Goes out: plain JSON values of the API, and `AirflowApiError` with the
server's own message when it refuses.

Airflow's own clients would take away paths and keep the rest (login at the simple auth manager, logs, waiting), and
cost more than they save: apache-airflow-client 3.3.2 takes 2.3 s of CPU to import (requests: 0.15 s), and
apache-airflow-ctl 0.1.5 is a command line with over 30 packages (keyring, rich, …).
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

import requests

WAITS_S = (1.0, 3.0, 10.0, 30.0)
"""Between the tries of a call whose audit log was not written in time (HTTP 500): see `airflow_local_settings`.
A hundred runs that begin at once hold a SQLite database for seconds."""

PAGE = 100
"""Entries of a listing that are asked for at once: Airflow's `maximum_page_limit` by default."""


class AirflowApiError(RuntimeError):
    """The API server refused: method, path, status and its message.

    Attributes:
        status: HTTP status code.
    """

    def __init__(self, method: str, path: str, status: int, body: str) -> None:
        super().__init__(f"{method} {path}: HTTP {status}: {body[:2000]}")
        self.status = status


@dataclass(kw_only=True)
class AirflowApi:
    """An authenticated session with one API server.

    Attributes:
        url: Base address, without a trailing slash, e.g. `http://127.0.0.1:8080`.
        username: User of Airflow's simple auth manager.
        password: That user's password.
    """

    url: str
    username: str
    password: str = field(repr=False)
    _session: requests.Session = field(default_factory=requests.Session, repr=False)

    def __post_init__(self) -> None:
        """Keep the process's proxy settings away from a server on loopback."""
        self._session.trust_env = False

    def call(self, method: str, path: str, **kwargs: Any) -> Any:  # noqa: ANN401  # JSON
        """Return the JSON answer of one call below `/api/v2`; logs in when needed.

        What is answered with HTTP 500 is asked for again, up to five times in all, but for a POST: that one may have
        made something (see `_create`).

        Raises:
            AirflowApiError: The server answered with an error status.
            requests.ConnectionError: The server is not there (yet).
        """
        answer = self._ask(method, path, kwargs)
        for wait_s in () if method == "POST" else WAITS_S:
            if answer.status_code != HTTPStatus.INTERNAL_SERVER_ERROR:
                break
            time.sleep(wait_s)
            answer = self._ask(method, path, kwargs)
        if not answer.ok:
            raise AirflowApiError(method, path, answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def _ask(self, method: str, path: str, options: dict[str, Any]) -> requests.Response:
        if "Authorization" not in self._session.headers:
            self._login()
        answer = self._session.request(method, f"{self.url}/api/v2{path}", timeout=60, **options)
        if answer.status_code == HTTPStatus.UNAUTHORIZED:
            self._login()
            answer = self._session.request(method, f"{self.url}/api/v2{path}", timeout=60, **options)
        return answer

    def _login(self) -> None:
        body = {"username": self.username, "password": self.password}
        answer = self._session.post(f"{self.url}/auth/token", json=body, timeout=60)
        if not answer.ok:
            raise AirflowApiError("POST", "/auth/token", answer.status_code, answer.text)
        self._session.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"

    def health(self) -> dict[str, Any]:
        """Return the health document: one entry per component, each with `status`."""
        answer = self._session.get(f"{self.url}/api/v2/monitor/health", timeout=10)
        answer.raise_for_status()
        return dict(answer.json())

    def dag_ids(self) -> list[str]:
        """Return the ids of all DAGs that the DAG processor has stored, sorted."""
        found: list[str] = []
        while True:  # the server gives a hundred at most, whatever it is asked for
            params = {"limit": PAGE, "offset": len(found), "order_by": "dag_id"}
            page = self.call("GET", "/dags", params=params)
            found += [dag["dag_id"] for dag in page["dags"]]
            if not page["dags"] or len(found) >= page["total_entries"]:
                return sorted(set(found))

    def import_errors(self) -> list[str]:
        """Return the stack traces of DAG files that do not import."""
        return [error["stack_trace"] for error in self.call("GET", "/importErrors")["import_errors"]]

    def unpause(self, dag_id: str) -> None:
        """Let the scheduler start runs of the DAG."""
        self.call("PATCH", f"/dags/{dag_id}", json={"is_paused": False}, params={"update_mask": "is_paused"})

    def trigger(self, dag_id: str, logical_date: str | None = None, conf: dict[str, Any] | None = None) -> str:
        """Return the id of a new run.

        Raises:
            AirflowApiError: 400 for a parameter outside its limits, 409 for a logical date that has a run.
        """
        body: dict[str, Any] = {"logical_date": logical_date, "conf": conf or {}}
        if logical_date is None:  # a name, by which a second try finds what the first one made
            body["dag_run_id"] = f"manual__{datetime.now(UTC).isoformat()}_{secrets.token_hex(4)}"

        def find() -> dict[str, Any] | None:
            return next((run for run in self.runs(dag_id) if run["dag_run_id"] == body.get("dag_run_id")), None)

        return str(self._create(f"/dags/{dag_id}/dagRuns", body, find)["dag_run_id"])

    def create_event(self, asset_id: int, extra: Mapping[str, str]) -> dict[str, Any]:
        """Return a new event of an asset; no other event of it may have these extras."""

        def find() -> dict[str, Any] | None:
            params = {"asset_id": asset_id, "limit": 100, "order_by": "-timestamp"}
            events = self.call("GET", "/assets/events", params=params)["asset_events"]
            return next((event for event in events if extra.items() <= event["extra"].items()), None)

        return self._create("/assets/events", {"asset_id": asset_id, "extra": dict(extra)}, find)

    def _create(self, path: str, body: dict[str, Any], find: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
        """Return what a POST makes, or what `find` has of one that was answered with HTTP 500; up to three tries."""
        for wait_s in WAITS_S:
            try:
                return dict(self.call("POST", path, json=body))
            except AirflowApiError as error:
                if error.status != HTTPStatus.INTERNAL_SERVER_ERROR:
                    raise
            time.sleep(wait_s)
            if found := find():
                return found
        return dict(self.call("POST", path, json=body))

    def runs(self, dag_id: str) -> list[dict[str, Any]]:
        """Return the DAG's runs, oldest first."""
        params = {"limit": 100, "order_by": "run_after"}
        return list(self.call("GET", f"/dags/{dag_id}/dagRuns", params=params)["dag_runs"])

    def unfinished(self) -> set[str]:
        """Return the ids of the DAGs that have a run which has not ended, with few calls.

        A run that ends between two of them may hide another one: ask `runs` of what is not among them.
        """
        found: set[str] = set()
        params: dict[str, Any] = {"state": ["queued", "running"], "limit": PAGE, "order_by": "id", "offset": 0}
        while True:
            answer = self.call("GET", "/dags/~/dagRuns", params=params)
            found.update(run["dag_id"] for run in answer["dag_runs"])
            params["offset"] += PAGE
            if params["offset"] >= answer["total_entries"]:
                return found

    def read_run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        """Return one run."""
        return dict(self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}"))

    def clear_run(self, dag_id: str, run_id: str) -> None:
        """Run every task of a finished run again."""
        body = {"dry_run": False, "only_failed": False}
        self.call("POST", f"/dags/{dag_id}/dagRuns/{run_id}/clear", json=body)

    def task_instances(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Return the run's task instances in the order of the DAG as far as start times tell."""
        answer = self.call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", params={"limit": 200})
        return sorted(answer["task_instances"], key=lambda ti: (ti["start_date"] or "9999", ti["task_id"]))

    def xcom(self, dag_id: str, run_id: str, task_id: str, key: str = "return_value") -> Any:  # noqa: ANN401  # JSON
        """Return one XCom value."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/{key}"
        value = self.call("GET", path, params={"deserialize": "false"})["value"]
        return json.loads(value) if isinstance(value, str) and value[:1] in '{["' else value

    def log_lines(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """Return the messages of one try's task log, as far as it is written, without Airflow's folded groups."""
        content = self._log(dag_id, run_id, task_id, try_number)
        return _unfolded(text for line in content for text in _texts(line))

    def error_lines(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """Return the lines of the error that ended one try, without its type; empty if it left none."""
        content = self._log(dag_id, run_id, task_id, try_number)
        errors = [line["error_detail"] for line in content if isinstance(line, dict) and line.get("error_detail")]
        return str(errors[-1][0]["exc_value"]).strip().splitlines() if errors else []

    def _log(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[Any]:
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        return list(self.call("GET", path, headers={"Accept": "application/json"})["content"])

    def backfill(self, dag_id: str, from_date: str, to_date: str, conf: dict[str, Any] | None = None) -> int:
        """Return the id of a new backfill over the DAG's schedule, both ends included."""
        body = {
            "dag_id": dag_id,
            "from_date": from_date,
            "to_date": to_date,
            "max_active_runs": 1,
            "run_backwards": False,
            "dag_run_conf": conf or {},
            "reprocess_behavior": "none",
        }
        return int(self.call("POST", "/backfills", json=body)["id"])


def _texts(line: Any) -> list[str]:  # noqa: ANN401  # a JSON object, or text in older logs
    if not isinstance(line, dict):
        return [str(line)]
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or ()]
    return [str(line["event"]), *errors]


def _unfolded(lines: Iterable[str]) -> list[str]:
    """Leave out what Airflow's own pages fold: from `::group::` to `::endgroup::`."""
    kept, folded = [], False
    for line in lines:
        folded = folded or line.startswith("::group::")
        if not folded:
            kept.append(line)
        folded = folded and not line.startswith("::endgroup::")
    return kept
