"""Processes of the demonstration's Airflow wait for each other's writes, as they do in a real database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from demo.airflow import Airflow
from demo.airflow_api import AirflowApi, AirflowApiError
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
    airflow = Airflow(home_path=tmp_path, port=free_port(), environment=os.environ)
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
        subprocess.run([sys.executable, "-c", SAVEPOINTS], env=airflow.variables(), check=True, timeout=120)
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(("process", "milliseconds"), [("api-server", 10_000), ("scheduler", 60_000)])
def test_the_api_server_waits_for_less_long(tmp_path: Path, process: str, milliseconds: int) -> None:
    """Its audit log waits on the thread without which nobody's write is stored: for ever would be for nothing."""
    airflow = Airflow(home_path=tmp_path, port=free_port(), environment=os.environ)
    airflow.write_settings()
    asked = [sys.executable, "-c", BUSY_TIMEOUT, process]
    done = subprocess.run(asked, env=airflow.variables(), check=True, timeout=120, capture_output=True, text=True)
    assert int(done.stdout.splitlines()[-1]) == milliseconds


@pytest.mark.parametrize("status", [500, 409])
def test_a_run_is_asked_for_again_where_its_audit_log_was_not_written(monkeypatch, status: int) -> None:
    """HTTP 500 comes before anything is made; a refusal is told at once."""
    api, asked = AirflowApi(url="http://127.0.0.1:1", username="admin", password="admin"), []

    def call(method: str, path: str, **_: object) -> dict[str, str]:
        asked.append((method, path))
        if len(asked) == 1:
            raise AirflowApiError(method, path, status, "")
        return {"dag_run_id": "manual__1"}

    monkeypatch.setattr(api, "call", call)
    monkeypatch.setattr("demo.airflow_api.time.sleep", lambda _: None)
    if status == 500:
        assert api.trigger("retrain__late") == "manual__1"
        assert asked == [("POST", "/dags/retrain__late/dagRuns")] * 2
    else:
        with pytest.raises(AirflowApiError):
            api.trigger("retrain__late")
