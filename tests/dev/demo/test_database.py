"""Processes of the demonstration's Airflow wait for each other's writes, as they do in a real database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

from demo.airflow import Airflow
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
