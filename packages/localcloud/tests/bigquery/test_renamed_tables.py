"""A table that is renamed is the same table: its rows, what is known of it, who may see which rows."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset `renamed`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("renamed", exists_ok=True)
    return made


def rows_of(client: bigquery.Client, sql: str) -> list[tuple[Any, ...]]:
    """Return a statement's rows."""
    return [tuple(row.values()) for row in client.query_and_wait(sql, retry=None, job_retry=None)]


def test_it_keeps_what_is_known_of_it(client):
    rows_of(
        client,
        "CREATE TABLE renamed.before (d DATE, name STRING(5) NOT NULL OPTIONS (description = 'Its name.'))"
        " PARTITION BY d OPTIONS (description = 'Rows.', labels = [('team', 'growth')],"
        " expiration_timestamp = TIMESTAMP '2999-01-01')",
    )
    rows_of(client, "INSERT renamed.before VALUES (DATE '2026-01-01', 'a')")
    old = client.get_table("renamed.before")
    rows_of(client, "ALTER TABLE renamed.before RENAME TO after")
    new = client.get_table("renamed.after")
    for field in ("schema", "description", "labels", "expires", "time_partitioning", "created", "num_rows"):
        assert getattr(new, field) == getattr(old, field), field
    assert new.expires == datetime.datetime(2999, 1, 1, tzinfo=datetime.UTC)
    assert rows_of(client, "SELECT name FROM renamed.after") == [("a",)]
    assert {each.table_id for each in client.list_tables("renamed")} & {"before", "after"} == {"after"}
    for gone in (lambda: client.get_table("renamed.before"), lambda: rows_of(client, "SELECT 1 FROM renamed.before")):
        with pytest.raises(exceptions.NotFound):
            gone()
    with pytest.raises(exceptions.BadRequest, match="longer"):
        rows_of(client, "INSERT renamed.after VALUES (DATE '2026-01-01', 'too long')")


def test_its_old_name_is_free(client):
    rows_of(client, "CREATE TABLE renamed.free AS SELECT 1 AS a")
    rows_of(client, "ALTER TABLE renamed.free RENAME TO taken")
    rows_of(client, "CREATE TABLE renamed.free AS SELECT 'x' AS b")
    assert rows_of(client, "SELECT * FROM renamed.free, renamed.taken") == [("x", 1)]
    assert client.get_table("renamed.free").schema[0].name == "b"
    with pytest.raises(exceptions.Conflict, match="Already Exists: Table taken"):
        rows_of(client, "ALTER TABLE renamed.free RENAME TO taken")
    assert rows_of(client, "SELECT * FROM renamed.free, renamed.taken") == [("x", 1)]


def test_in_a_script_what_follows_sees_it(client):
    script = """CREATE TABLE renamed.first AS SELECT 1 AS a;
        ALTER TABLE renamed.first RENAME TO second;
        INSERT renamed.second VALUES (2);
        ALTER TABLE renamed.second ADD COLUMN b STRING;
        SELECT COUNT(*), COUNT(b) FROM renamed.second"""
    assert rows_of(client, script) == [(2, 0)]
    assert [field.name for field in client.get_table("renamed.second").schema] == ["a", "b"]


def test_who_may_see_no_row_sees_none_by_another_name(client):
    rows_of(client, "CREATE TABLE renamed.guarded AS SELECT 1 AS a")
    rows_of(
        client,
        "CREATE ROW ACCESS POLICY nobody ON renamed.guarded GRANT TO ('user:nobody@example.com') FILTER USING (TRUE)",
    )
    assert rows_of(client, "SELECT * FROM renamed.guarded") == []
    rows_of(client, "ALTER TABLE renamed.guarded ADD COLUMN b STRING")
    rows_of(client, "ALTER TABLE renamed.guarded RENAME TO still_guarded")
    assert rows_of(client, "SELECT * FROM renamed.still_guarded") == []
    rows_of(client, "CREATE TABLE renamed.guarded AS SELECT 2 AS a")
    assert rows_of(client, "SELECT * FROM renamed.guarded") == [(2,)]


def test_nothing_is_answered_of_the_time_before(client):
    """What the table had under its old name is refused: it would be what it has now."""
    rows_of(client, "CREATE TABLE renamed.past AS SELECT 1 AS a")
    time.sleep(1.1)
    before = rows_of(client, "SELECT CURRENT_TIMESTAMP()")[0][0]
    time.sleep(1.1)
    rows_of(client, "INSERT renamed.past VALUES (2)")
    rows_of(client, "ALTER TABLE renamed.past RENAME TO present")
    sql = f"SELECT COUNT(*) FROM renamed.present FOR SYSTEM_TIME AS OF TIMESTAMP '{before.isoformat()}'"
    with pytest.raises(exceptions.BadRequest, match="Invalid time travel timestamp"):
        rows_of(client, sql)
    assert rows_of(client, "SELECT COUNT(*) FROM renamed.present FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()") == [(2,)]


def test_what_cannot_be_renamed_is_named(client):
    rows_of(client, "ALTER TABLE IF EXISTS renamed.missing RENAME TO other")
    with pytest.raises(exceptions.NotFound):
        rows_of(client, "ALTER TABLE renamed.missing RENAME TO other")
    rows_of(client, "CREATE VIEW renamed.a_view AS SELECT 1 AS a")
    with pytest.raises((exceptions.BadRequest, exceptions.MethodNotImplemented)):
        rows_of(client, "ALTER TABLE renamed.a_view RENAME TO other_view")
    assert rows_of(client, "SELECT * FROM renamed.a_view") == [(1,)]
