"""`FOR SYSTEM_TIME AS OF` through the real client: tables as they were, or a refusal, and never another answer."""

from __future__ import annotations

import time
import uuid
from datetime import UTC, datetime

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

from localcloud.bigquery.time_travel import with_times


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset `travel`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("travel", exists_ok=True)
    return made


@pytest.fixture
def table(client) -> str:
    """A table of ten rows."""
    name = f"travel.t{uuid.uuid4().hex}"
    client.query_and_wait(f"CREATE TABLE {name} AS SELECT n FROM UNNEST(GENERATE_ARRAY(1, 10)) n")
    return name


def moment() -> datetime:
    """Return a time that is later than all before, and earlier than all that comes."""
    time.sleep(0.002)
    now = datetime.now(UTC)
    time.sleep(0.002)
    return now


def count(client: bigquery.Client, table: str, at: datetime) -> int:
    """Count rows as they were, by a query parameter."""
    parameter = bigquery.ScalarQueryParameter("at", "TIMESTAMP", at)
    config = bigquery.QueryJobConfig(query_parameters=[parameter])
    (row,) = client.query_and_wait(f"SELECT COUNT(*) c FROM {table} AS t FOR SYSTEM_TIME AS OF @at", job_config=config)
    return int(row.c)


def test_each_state_is_found_again(client, table):
    """After statements, loads and queries with a destination; by a parameter, a literal and an expression."""
    times, expected = [moment()], [10]
    for statement, rows in (
        (f"INSERT INTO {table} (n) VALUES (11)", 11),
        (f"DELETE FROM {table} WHERE n > 5", 5),
        (f"TRUNCATE TABLE {table}", 0),
        (f"MERGE INTO {table} t USING (SELECT 7 AS n) s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (n) VALUES (n)", 1),
        (f"CREATE OR REPLACE TABLE {table} AS SELECT n FROM UNNEST([1, 2, 3]) n", 3),
    ):
        client.query_and_wait(statement)
        times.append(moment())
        expected.append(rows)
    replace = bigquery.QueryJobConfig(destination=f"{client.project}.{table}", write_disposition="WRITE_TRUNCATE")
    client.query("SELECT n FROM UNNEST([1, 2, 3, 4]) n", job_config=replace).result()
    times.append(moment())
    expected.append(4)
    client.load_table_from_json(
        [{"n": 1}], table, job_config=bigquery.LoadJobConfig(write_disposition="WRITE_TRUNCATE")
    ).result()
    times.append(moment())
    expected.append(1)
    config = bigquery.QueryJobConfig(destination=f"{client.project}.{table}", write_disposition="WRITE_APPEND")
    client.query("SELECT 2 AS n", job_config=config).result()
    times.append(moment())
    expected.append(2)
    assert [count(client, table, at) for at in times] == expected
    literal = f"SELECT COUNT(*) c FROM {table} FOR SYSTEM_TIME AS OF TIMESTAMP '{times[2].isoformat()}'"
    assert [row.c for row in client.query_and_wait(literal)] == [5]
    now = f"SELECT COUNT(*) c FROM {table} FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP()"
    assert [row.c for row in client.query_and_wait(now)] == [2]


def test_what_is_not_known_is_refused(client, table):
    """Before the table, among streamed rows, in the future, and longer ago than seven days; the rest is known."""
    begun = moment()
    assert client.insert_rows_json(table, [{"n": 1}]) == []
    between = moment()
    assert client.insert_rows_json(table, [{"n": 2}]) == []
    after = moment()
    for at in (datetime(2013, 11, 20, tzinfo=UTC), datetime(2999, 1, 1, tzinfo=UTC), begun, between):
        with pytest.raises(exceptions.GoogleAPICallError, match="Invalid time travel timestamp"):
            count(client, table, at)
    assert count(client, table, after) == 12
    client.query_and_wait(f"DELETE FROM {table} WHERE TRUE")
    assert (count(client, table, after), count(client, table, moment())) == (12, 0)


@pytest.mark.parametrize("value", ["2026-11-23 20:00:00 UTC", "2026-11-23T20:00:00.123456+00:00"])
def test_a_parameter_becomes_a_literal(value):
    """Only a time does, and only behind the clause."""
    parameters = [
        {"name": "at", "parameterValue": {"value": value}},
        {"name": "x", "parameterValue": {"value": "' OR 1"}},
    ]
    sql = "SELECT @at FROM d.t for system_time  as of @at"
    assert with_times(sql, parameters) == f"SELECT @at FROM d.t for system_time  as of TIMESTAMP '{value}'"
    assert with_times("FROM t FOR SYSTEM_TIME AS OF @x", parameters) == "FROM t FOR SYSTEM_TIME AS OF @x"
