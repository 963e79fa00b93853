"""A query's result into one day of a partitioned table: that day is replaced whole, the others stay."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, MethodNotImplemented
from google.cloud import bigquery

Write = Callable[[str, str], Any]


@pytest.fixture
def table(local_cloud) -> str:
    """A table of two days."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("partitions", exists_ok=True)
    name = f"{local_cloud.project}.partitions.t{uuid.uuid4().hex[:12]}"
    client.query_and_wait(f"CREATE TABLE `{name}` (n INT64, day DATE) PARTITION BY day")
    client.query_and_wait(f"INSERT INTO `{name}` VALUES (1, DATE '2013-11-20'), (2, DATE '2013-11-21')")
    return name


def write(table: str, day: str, sql: str, disposition: str = "WRITE_TRUNCATE") -> Any:
    """Write a result into a day."""
    config = bigquery.QueryJobConfig(destination=f"{table}${day}", write_disposition=disposition)
    config.create_disposition = "CREATE_NEVER"
    return list(bigquery.Client().query(sql, job_config=config).result(retry=None))


def rows(table: str) -> list[tuple[int, str]]:
    """The whole table."""
    return [(row.n, str(row.day)) for row in bigquery.Client().query_and_wait(f"SELECT * FROM `{table}` ORDER BY n")]


def test_a_day_is_replaced_whole_and_again(table) -> None:
    """As often as one likes; the other day stays, and the table stays partitioned."""
    for _ in range(2):
        write(table, "20131120", "SELECT n, DATE '2013-11-20' AS day FROM UNNEST([7, 8]) AS n")
        assert rows(table) == [(2, "2013-11-21"), (7, "2013-11-20"), (8, "2013-11-20")]
    assert bigquery.Client().get_table(table).time_partitioning.field == "day"


def test_a_day_is_added_to(table) -> None:
    """By WRITE_APPEND."""
    write(table, "20131120", "SELECT 7 AS n, DATE '2013-11-20' AS day", "WRITE_APPEND")
    assert rows(table) == [(1, "2013-11-20"), (2, "2013-11-21"), (7, "2013-11-20")]


@pytest.mark.parametrize(
    ("day", "sql", "words"),
    [
        ("20131120", "SELECT 7 AS n, DATE '2013-11-22' AS day", "different partitions rather than destination"),
        ("20131120", "SELECT 7 AS n, DATE '2013-11-20' AS day, 1 AS other", "Cannot add fields .field: other."),
        ("tomorrow", "SELECT 7 AS n, DATE '2013-11-20' AS day", r"Invalid partition decorator \$tomorrow"),
    ],
)
def test_what_does_not_belong_there_is_refused(table, day, sql, words) -> None:
    """And nothing of the day is gone."""
    with pytest.raises(BadRequest, match=words):
        write(table, day, sql)
    assert rows(table) == [(1, "2013-11-20"), (2, "2013-11-21")]


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("d", ("DAY", "d")),
        ("DATE_TRUNC(d, MONTH)", ("MONTH", "d")),
        ("DATE(ts)", ("DAY", "ts")),
        ("TIMESTAMP_TRUNC(ts, HOUR)", ("HOUR", "ts")),
        ("DATETIME_TRUNC(dt, YEAR)", ("YEAR", "dt")),
    ],
)
@pytest.mark.parametrize(
    "query", ["", " AS SELECT DATE '2024-01-02' AS d, CURRENT_TIMESTAMP() AS ts, CURRENT_DATETIME() AS dt"]
)
def test_a_statement_says_by_what_a_table_is_partitioned(local_cloud, by, expected, query):
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("partitioned", exists_ok=True)
    columns = "" if query else "(d DATE, ts TIMESTAMP, dt DATETIME)"
    client.query_and_wait(
        f"CREATE OR REPLACE TABLE partitioned.said {columns} PARTITION BY {by}"
        f" OPTIONS (partition_expiration_days = 2){query}"
    )
    found = client.get_table("partitioned.said").time_partitioning
    assert (found.type_, found.field) == expected
    assert found.expiration_ms == 2 * 24 * 3_600_000


def test_a_table_by_the_time_of_loading_has_no_column_of_it(local_cloud):
    """It is refused by name: what had the time of the query was answered to any question."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("partitioned", exists_ok=True)
    client.query_and_wait("CREATE OR REPLACE TABLE partitioned.loaded (n INT64) PARTITION BY _PARTITIONDATE")
    found = client.get_table("partitioned.loaded").time_partitioning
    assert (found.type_, found.field) == ("DAY", None)
    with pytest.raises(MethodNotImplemented, match="has no _PARTITIONTIME: when a row was loaded is not kept"):
        client.query_and_wait(
            "SELECT n FROM partitioned.loaded WHERE _PARTITIONTIME > '2020-01-01'", retry=None, job_retry=None
        )


def test_a_statement_partitions_by_ranges(local_cloud):
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("partitioned", exists_ok=True)
    by = "RANGE_BUCKET(n, GENERATE_ARRAY(0, 100, 10))"
    client.query_and_wait(f"CREATE OR REPLACE TABLE partitioned.ranged (n INT64) PARTITION BY {by}")
    found = client.get_table("partitioned.ranged").range_partitioning
    assert (found.field, found.range_.start, found.range_.end, found.range_.interval) == ("n", 0, 100, 10)
