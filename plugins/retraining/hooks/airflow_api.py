"""Airflow's public REST API (v2), for what a person types: one run, ordered.

In: the API server's address and a login, from the environment. Out: the new run, or Airflow's own refusal.
"""

from __future__ import annotations

from collections.abc import Mapping

from retraining.core.documents.document import read_object
from retraining.core.errors import SettingsError
from retraining.core.untyped import ApiJson
from retraining.hooks.session import call_once

URL, USERNAME, PASSWORD, TOKEN = "AIRFLOW__API__BASE_URL", "AIRFLOW_USERNAME", "AIRFLOW_PASSWORD", "AIRFLOW_TOKEN"
CONFLICT = 409


class AirflowApi:
    """A session with one API server.

    Args:
        environ: `AIRFLOW__API__BASE_URL`, and `AIRFLOW_TOKEN` (on Composer `gcloud auth print-access-token`), or
            `AIRFLOW_USERNAME` with `AIRFLOW_PASSWORD`.

    Raises:
        SettingsError: One is missing.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        import requests

        from retraining.hooks.transports import limit_requests

        self._url = environ.get(URL, "").rstrip("/")
        if not self._url:
            raise SettingsError(
                URL, "not set", "the address of Airflow's API server", "For example http://127.0.0.1:8080"
            )
        self._session = limit_requests(requests.Session())
        token = environ.get(TOKEN) or self._log_in(environ)
        self._session.headers["Authorization"] = f"Bearer {token}"

    def trigger(self, dag_id: str, conf: ApiJson, run_id: str | None = None) -> tuple[str, bool]:
        """Order a run of a DAG; return its id, and whether the DAG is paused, so that the run waits.

        Args:
            dag_id: Which.
            conf: Its Params.
            run_id: Of the run, which there may be once; None: Airflow gives it one.

        Raises:
            SettingsError: Airflow refuses; the message is its own.
        """
        dag = self._call("GET", f"/api/v2/dags/{dag_id}")
        named: ApiJson = {} if run_id is None else {"dag_run_id": run_id}
        run = self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf, **named})
        return str(run["dag_run_id"]), bool(dag["is_paused"])

    def _log_in(self, environ: Mapping[str, str]) -> str:
        missing = [name for name in (USERNAME, PASSWORD) if not environ.get(name)]
        if missing:
            way_out = f"Set them, or {TOKEN}; make demo prints the demonstration's login"
            raise SettingsError(" and ".join(missing), "not set", "a login of Airflow", way_out)
        login = {"username": environ[USERNAME], "password": environ[PASSWORD]}
        return str(self._call("POST", "/auth/token", login)["access_token"])

    def _call(self, method: str, path: str, body: ApiJson | None = None) -> ApiJson:
        import requests

        where = f"{method} {self._url}{path}"
        try:
            answer = call_once(lambda: self._session.request(method, f"{self._url}{path}", json=body))
        except (requests.RequestException, TimeoutError) as error:
            raise SettingsError(
                where, f"no answer ({error})", "an API server", f"Start Airflow, or correct {URL}"
            ) from error
        if not answer.ok:
            way_out = f"Look at the DAG, the Params and the login ({TOKEN}, {USERNAME})"
            if answer.status_code == CONFLICT:
                way_out = "That run was ordered before: look at it in Airflow, and clear its tasks to have it go on"
            raise SettingsError(where, f"HTTP {answer.status_code}: {answer.text[:500]}", "a success", way_out)
        return read_object(answer.content, where, f"Look whether {URL} is Airflow's own")
