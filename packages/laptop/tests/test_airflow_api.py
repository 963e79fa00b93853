"""What the client of Airflow's API asks for, before a server that gives no more at once than Airflow's does."""

from __future__ import annotations

import json
from typing import Any

import pytest
import requests

from retraining_laptop.airflow_api import AirflowApi

MOST = 100  # of a listing at once, whatever the limit that is asked for: Airflow's `maximum_page_limit`


class _Server(requests.Session):
    """A session whose server has so many DAGs."""

    def __init__(self, dags: int) -> None:
        super().__init__()
        self.dags = [f"retrain__model_{number:04d}" for number in range(dags)]
        self.headers["Authorization"] = "Bearer someone"

    def request(self, method: Any, url: Any, *_: Any, **options: Any) -> requests.Response:
        """A page of the listing."""
        listings = {
            "http://127.0.0.1:1/api/v2/dags": "dags",
            "http://127.0.0.1:1/api/v2/dags/~/dagRuns": "dag_runs",
        }
        assert method == "GET"
        asked = options["params"]
        if listings[url] == "dag_runs":
            assert asked["state"] == ["queued", "running"]
        begin = asked.get("offset", 0)
        page = self.dags[begin : begin + min(MOST, asked["limit"])]
        answer = requests.Response()
        body = {listings[url]: [{"dag_id": name} for name in page], "total_entries": len(self.dags)}
        answer.status_code, answer._content = 200, json.dumps(body).encode()
        return answer


@pytest.mark.parametrize("dags", [0, 1, 100, 101, 250])
def test_every_dag_is_listed_however_many_there_are(dags: int) -> None:
    """A hundred DAGs are 24 models."""
    server = _Server(dags)
    api = AirflowApi(url="http://127.0.0.1:1", username="admin", password="admin", _session=server)
    assert api.dag_ids() == server.dags


@pytest.mark.parametrize("dags", [0, 1, 100, 101, 250])
def test_every_dag_whose_run_goes_on_is_found(dags: int) -> None:
    """In as few calls as there are pages."""
    server = _Server(dags)
    api = AirflowApi(url="http://127.0.0.1:1", username="admin", password="admin", _session=server)
    assert api.unfinished() == set(server.dags)
