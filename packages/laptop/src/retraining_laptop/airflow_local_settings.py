"""What the demonstration's Airflow adds to its settings. Airflow imports this from the folder `config` of its home.

Its processes wait for each other's writes in SQLite. A savepoint outside a transaction begins one that reads, and
SQLite refuses at once, whatever the timeout, when such a one begins to write after somebody else has
(`airflow backfill create` beside a run: "database is locked"). One that begins to write waits for its turn.
Source: https://www.sqlite.org/lang_transaction.html, section 2.2 (BEGIN IMMEDIATE).

The API server waits for less long. It writes its audit log on the thread that all its answers come from: what another
of its threads has written is stored only after that, so the wait is for nothing and ends with HTTP 500
(`airflow.api_fastapi.logging.decorators`, Airflow 3.1 to 3.3).

Its scheduler imports Google's clients: the processes of tasks are forked from it and need not, seconds for each task.
"""

from __future__ import annotations

import importlib
import sqlite3
import sys

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

__all__: list[str] = []  # Airflow takes over the names that stand here
CLIENTS = (
    "google.cloud.aiplatform_v1",
    "google.cloud.bigquery",
    "google.cloud.storage",
    "airflow.providers.google.common.hooks.base_google",
)

if sys.argv[1:2] == ["scheduler"]:
    for name in CLIENTS:
        importlib.import_module(name)


BUSY_TIMEOUT_MS = 10_000


@event.listens_for(Engine, "connect")
def _wait_less(database: object, record: object) -> None:  # noqa: ARG001 - the event's signature
    if sys.argv[1:2] == ["api-server"] and isinstance(database, sqlite3.Connection):
        database.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")


@event.listens_for(Engine, "savepoint")
def _begin_writing(connection: Connection, name: str) -> None:  # noqa: ARG001 - the event's signature
    database = connection.connection.driver_connection
    if isinstance(database, sqlite3.Connection) and not database.in_transaction:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
