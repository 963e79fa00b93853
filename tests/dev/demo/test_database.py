"""Processes of the demonstration's Airflow wait for each other's writes, as they do in a real database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import requests

from retraining_laptop.airflow import Airflow
from retraining_laptop.airflow_api import AirflowApi, AirflowApiError
from tests.support.ports import free_port

# As `airflow backfill create` does it: a savepoint, a look, a write.
SAVEPOINTS = """
import sqlalchemy
from airflow.utils.session import create_session
for _ in range(30):
    with create_session() as session:
        with session.begin_nested():
            session.execute(sqlalchemy.text("SELECT count(*) FROM nights")).all()
            session.execute(sqlalchemy.text("INSERT INTO nights VALUES (2)"))
"""


BUSY_TIMEOUT = """
import sqlalchemy
from airflow.utils.session import create_session
with create_session() as session:
    print(session.execute(sqlalchemy.text("PRAGMA busy_timeout")).scalar())
"""


def write_until(path: Path, stop: threading.Event) -> None:
    """Write as often as a busy scheduler, and oftener."""
    database = sqlite3.connect(path, timeout=60)
    while not stop.is_set():
        database.execute("INSERT INTO nights VALUES (1)")
        database.commit()
        stop.wait(0.001)
    database.close()


def test_a_savepoint_beside_a_writer_waits(tmp_path: Path) -> None:
    """Thirty looks and writes beside a process that writes all the time: none meets "database is locked"."""
    airflow = Airflow(
        home_path=tmp_path,
        port=free_port(),
        environment=os.environ,
        dags_path=tmp_path,
        plugins_path=None,
        environment_path=Path(sys.prefix),
    )
    database_path = tmp_path / "airflow.db"
    with sqlite3.connect(database_path) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE nights(number)")
    database.close()
    airflow.write_settings()
    stop = threading.Event()
    writer = threading.Thread(target=write_until, args=(database_path, stop))
    writer.start()
    try:
        subprocess.run([sys.executable, "-c", SAVEPOINTS], env=airflow.whole_environment(), check=True, timeout=120)
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(("process", "milliseconds"), [("api-server", 10_000), ("scheduler", 60_000)])
def test_the_api_server_waits_for_less_long(tmp_path: Path, process: str, milliseconds: int) -> None:
    """Its audit log waits on the thread without which nobody's write is stored: for ever would be for nothing."""
    airflow = Airflow(
        home_path=tmp_path,
        port=free_port(),
        environment=os.environ,
        dags_path=tmp_path,
        plugins_path=None,
        environment_path=Path(sys.prefix),
    )
    airflow.write_settings()
    asked = [sys.executable, "-c", BUSY_TIMEOUT, process]
    done = subprocess.run(
        asked, env=airflow.whole_environment(), check=True, timeout=120, capture_output=True, text=True
    )
    assert int(done.stdout.splitlines()[-1]) == milliseconds


@pytest.mark.parametrize("made", [False, True])
def test_a_run_is_asked_for_once_more_and_made_once(monkeypatch, made: bool) -> None:
    """HTTP 500 because the audit log was not written comes before the run is made; another may come after."""
    api = AirflowApi(url="http://127.0.0.1:1", username="admin", password="admin")
    runs: list[str] = []
    tries: list[str] = []

    def call(method: str, path: str, **given: Any) -> dict[str, Any]:
        if method == "GET":
            return {"dag_runs": [{"dag_run_id": name} for name in runs]}
        tries.append(given["json"]["dag_run_id"])
        if made or len(tries) == 2:
            runs.append(tries[-1])
        if len(tries) == 1:
            raise AirflowApiError(method, path, 500, "")
        return {"dag_run_id": tries[-1]}

    monkeypatch.setattr(api, "call", call)
    monkeypatch.setattr("retraining_laptop.airflow_api.time.sleep", lambda _: None)
    assert [api.trigger("rollback")] == runs
    assert len(tries) == (1 if made else 2)


def test_a_refused_run_is_told_at_once(monkeypatch) -> None:
    api = AirflowApi(url="http://127.0.0.1:1", username="admin", password="admin")
    asked: list[str] = []

    def call(method: str, path: str, **_: object) -> None:
        asked.append(method)
        raise AirflowApiError(method, path, 409, "")

    monkeypatch.setattr(api, "call", call)
    with pytest.raises(AirflowApiError):
        api.trigger("retrain__late", logical_date="2013-11-20T03:00:00Z")
    assert asked == ["POST"]


class _Recorded(requests.Session):
    """A session whose server answers with the statuses given, in turn."""

    def __init__(self, statuses: list[int]) -> None:
        super().__init__()
        self.statuses = statuses
        self.headers["Authorization"] = "Bearer someone"

    def request(self, *_: object, **__: object) -> requests.Response:
        """The next answer."""
        answer = requests.Response()
        answer.status_code, answer._content = self.statuses.pop(0), b'{"state": "failed"}'
        return answer


@pytest.mark.parametrize(
    ("method", "statuses", "left"),
    [
        ("PATCH", [500, 500, 200], 0),
        ("GET", [500, 200], 0),
        ("PATCH", [200, 200], 1),
        ("PATCH", [500, 409, 200], 1),
        ("PATCH", [500, 500, 500, 500, 200], 0),
        ("PATCH", [500, 500, 500, 500, 500, 200], 1),
        ("POST", [500, 200], 1),
    ],
)
def test_a_call_is_asked_for_again_where_that_makes_nothing(
    monkeypatch, method: str, statuses: list[int], left: int
) -> None:
    """HTTP 500 because the audit log was not written: a second PATCH says the same, a second POST makes a second."""
    monkeypatch.setattr("retraining_laptop.airflow_api.time.sleep", lambda _: None)
    last = statuses[-1 - left]
    api = AirflowApi(url="http://127.0.0.1:1", username="admin", password="admin", _session=_Recorded(statuses))
    if last == 200:
        assert api.call(method, "/dags/retrain__x/dagRuns/y") == {"state": "failed"}
    else:
        with pytest.raises(AirflowApiError) as refused:
            api.call(method, "/dags/retrain__x/dagRuns/y")
        assert refused.value.status == last
    assert len(statuses) == left
