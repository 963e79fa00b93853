"""The demo's data: whole, in UTC, with stable ids; a second load does nothing."""

from __future__ import annotations

import pytest
from google.cloud import bigquery

from demo import seed


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, after `demo.seed`."""
    local_cloud.seed()
    return bigquery.Client(project=local_cloud.project)


def value(client, sql):
    (row,) = client.query_and_wait(sql)
    return row[0]


def test_second_seed_does_nothing(client, local_cloud):
    """And says so."""
    before = client.get_table("flights.flights").modified
    assert local_cloud.seed().count("rows are there") == 3
    assert client.get_table("flights.flights").modified == before


def test_rows_and_datasets(client, local_cloud):
    """All tables whole; the dataset for run tables is there."""
    rows = [client.get_table(name).num_rows for name in ("flights.flights", "flights.weather", "digits.images")]
    assert rows == [336_776, 26_115, 1_797]
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


def test_digits_are_pngs_spread_over_days(client):
    """Every image has an id and a time of its own, some 15 a day, all digits in every two weeks."""
    sql = (
        "SELECT COUNT(DISTINCT image_id) AS ids, COUNT(DISTINCT captured_at) AS times,"
        " COUNT(DISTINCT DATE(captured_at)) AS days, MIN(captured_at) AS first, MAX(captured_at) AS last"
        " FROM digits.images"
    )
    (found,) = client.query_and_wait(sql)
    assert (found["ids"], found["times"], found["days"]) == (1_797, 1_797, 120)
    assert found["first"].isoformat() == "2013-08-01T00:00:00+00:00"
    assert found["last"].isoformat() < "2013-11-29"
    sql = (
        "SELECT COUNT(DISTINCT digit) FROM digits.images"
        " GROUP BY DIV(DATE_DIFF(DATE(captured_at), DATE '2013-08-01', DAY), 14)"
    )
    assert {row[0] for row in client.query_and_wait(sql)} == {10}
    image = value(client, "SELECT image FROM digits.images WHERE image_id = 'digit-0000'")
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    assert value(client, "SELECT digit FROM digits.images WHERE image_id = 'digit-0000'") == 0


def test_without_a_cloud_it_says_how_to_start_one(capsys, tmp_path):
    """And loads nothing."""
    assert seed.main(["--state", str(tmp_path)]) == 2
    assert "Start it with" in capsys.readouterr().err
