"""The demo's data: whole, in UTC, with stable ids; a second load does nothing."""

from __future__ import annotations

import pytest
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, after `seed`."""
    local_cloud.run("seed")
    return bigquery.Client(project=local_cloud.project)


def value(client, sql):
    (row,) = client.query_and_wait(sql)
    return row[0]


def test_second_seed_does_nothing(client, local_cloud):
    """And says so."""
    before = client.get_table("flights.flights").modified
    assert local_cloud.run("seed").stdout.count("rows are there") == 3
    assert client.get_table("flights.flights").modified == before


def test_rows_and_datasets(client, local_cloud):
    """Both tables whole; the dataset for run tables is there."""
    assert (client.get_table("flights.flights").num_rows, client.get_table("flights.weather").num_rows) == (
        336_776,
        26_115,
    )
    assert client.get_dataset(local_cloud.dataset).dataset_id == "retraining"


def test_flight_ids_are_unique_and_readable(client):
    """One per flight; an example that anybody can look up."""
    assert value(client, "SELECT COUNT(DISTINCT flight_id) FROM flights.flights") == 336_776
    sql = "SELECT scheduled_departure FROM flights.flights WHERE flight_id = '2013-01-01-UA-1545-EWR-0515'"
    assert value(client, sql).isoformat() == "2013-01-01T10:15:00+00:00"


def test_times_are_utc(client):
    """In New York's clock they are the schedule's hours and minutes, on both sides of the clock changes."""
    sql = (
        "SELECT COUNTIF(FORMAT_DATETIME('%Y-%m-%d %H:%M', DATETIME(scheduled_departure, 'America/New_York')) ="
        " FORMAT('%04d-%02d-%02d %02d:%02d', year, month, day, hour, minute)) FROM flights.flights"
    )
    assert value(client, sql) == 336_776


def test_flights_find_their_weather(client):
    """By origin and hour; 1,556 have none."""
    sql = (
        "SELECT COUNTIF(w.origin IS NULL) FROM flights.flights f LEFT JOIN flights.weather w"
        " ON f.origin = w.origin AND f.time_hour = w.time_hour"
    )
    assert value(client, sql) == 1_556
    assert (
        value(client, "SELECT COUNT(*) - COUNT(DISTINCT CONCAT(origin, UNIX_SECONDS(time_hour))) FROM flights.weather")
        == 0
    )


def test_missing_values_are_null(client):
    """As the loader's docstring counts them."""
    sql = (
        "SELECT [COUNTIF(dep_time IS NULL), COUNTIF(arr_delay IS NULL), COUNTIF(tailnum IS NULL)] FROM flights.flights"
    )
    assert value(client, sql) == [8_255, 9_430, 2_512]
