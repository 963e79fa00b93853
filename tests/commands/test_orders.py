"""A run is ordered of an Airflow that answers as its REST API does."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from retraining.__main__ import main
from retraining.commands.shell import Shell


@pytest.fixture
def ask(include, capsys):
    """What a command prints."""

    def ask(*words, code=0):
        assert main(words, Shell(find_include=lambda: include)) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    return ask


class Airflow(BaseHTTPRequestHandler):
    """The three calls of Airflow's API server that an order makes."""

    asked: list = []
    paused = False

    def answer(self, body, code=200):
        """Send JSON."""
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_GET(self):
        """Return the DAG."""
        self.answer({"is_paused": self.paused})

    def do_POST(self):
        """Return a token, or a new run."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/auth/token":
            right = body == {"username": "admin", "password": "right"}
            self.answer({"access_token": "t0"} if right else {"detail": "Invalid credentials"}, 201 if right else 401)
        else:
            self.asked.append((self.path, self.headers["Authorization"], body))
            self.answer({"dag_run_id": "manual__1"})

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def airflow(monkeypatch):
    """An API server on loopback, in the environment with its login."""
    monkeypatch.setattr(Airflow, "asked", [])
    server = HTTPServer(("127.0.0.1", 0), Airflow)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    for name, value in (
        ("AIRFLOW__API__BASE_URL", f"http://127.0.0.1:{server.server_port}/"),
        ("AIRFLOW_USERNAME", "admin"),
        ("AIRFLOW_PASSWORD", "right"),
        ("NO_PROXY", "127.0.0.1"),
    ):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AIRFLOW_TOKEN", raising=False)
    yield Airflow
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_run_is_ordered_with_its_params(ask, airflow):
    out = ask("run", "late", "--param", "as_of=2013-11-20T03:00:00Z", "--param", "force=true")
    assert out == "retrain__late: run manual__1 ordered\n"
    conf = {"as_of": "2013-11-20T03:00:00Z", "force": True}
    body = {"logical_date": None, "conf": conf}
    assert airflow.asked == [("/api/v2/dags/retrain__late/dagRuns", "Bearer t0", body)]


def test_a_token_needs_no_login_and_a_paused_dag_is_said(ask, airflow, monkeypatch):
    monkeypatch.setenv("AIRFLOW_TOKEN", "mine")
    monkeypatch.delenv("AIRFLOW_USERNAME")
    monkeypatch.setattr(Airflow, "paused", True)
    assert "retrain__late is paused" in ask("run", "late")
    assert airflow.asked[0][1] == "Bearer mine"


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("AIRFLOW_PASSWORD", "wrong", 'HTTP 401: {"detail": "Invalid credentials"}'),
        ("AIRFLOW_PASSWORD", "", "AIRFLOW_PASSWORD: not set. Expected a login of Airflow"),
        ("AIRFLOW__API__BASE_URL", "", "AIRFLOW__API__BASE_URL: not set"),
        ("AIRFLOW__API__BASE_URL", "http://127.0.0.1:1", "no answer"),
    ],
)
def test_an_airflow_that_refuses_is_said(ask, airflow, monkeypatch, variable, value, message):
    monkeypatch.setenv(variable, value)
    assert message in ask("run", "late", code=1)
    assert airflow.asked == []


def test_a_param_without_a_value_is_refused(ask, airflow):
    assert "--param: 'force'. Expected name=value" in ask("run", "late", "--param", "force", code=1)
    assert airflow.asked == []
