"""What a shell's tests start from: the small model's files, and this machine's cloud, which is the local one."""

from __future__ import annotations

import json
import threading
import uuid
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from retraining.hooks.cloud import OwnCloud
from tests.support.small_model import SPEC_YAML, SQL


@pytest.fixture
def include(tmp_path: Path) -> Path:
    """The small model's files."""
    (tmp_path / "models").mkdir()
    (tmp_path / "sql" / "late").mkdir(parents=True)
    (tmp_path / "models" / "late.yaml").write_text(SPEC_YAML, encoding="utf-8")
    (tmp_path / "sql" / "late" / "examples.sql").write_text(SQL, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="session")
def own_cloud(local_cloud):
    """All services, as this machine's own credentials may use them; the dataset of the settings is there."""
    from google.cloud import bigquery

    bigquery.Client(project=local_cloud.project).create_dataset(local_cloud.dataset, exists_ok=True)
    return OwnCloud()


@pytest.fixture
def unique() -> str:
    """A name of this test's own."""
    return f"t{uuid.uuid4().hex[:12]}"


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
