"""Every SQL template and the flights query, run by the local BigQuery through Google's client."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core import documents as d
from retraining.core import settings
from retraining.core.checks import dataset as checks
from retraining.core.data import snapshot, statistics
from retraining.core.data.sql import Query
from retraining.core.naming import bigquery as bigquery_names
from retraining.core.planning.windows import AsOf
from retraining.core.spec import files
from tests.support.small_model import make_plan, make_spec
from tests.support.warehouse import Warehouse

DATASET = "core_sql"
QUERY = "SELECT id, at, carrier, distance, late FROM core_sql.examples -- all of them"
FLIGHT = {"year": 2013, "month": 11, "day": 10, "hour": 5, "minute": 15, "sched_arr_time": 819, "carrier": "UA"}


def examples() -> list[dict[str, Any]]:
    """2,600 rows of three days of the window, one day before it and one after it; numbers and categories may miss."""
    days = {"2013-11-08": 50, "2013-11-09": 2300, "2013-11-16": 150, "2013-11-18": 150, "2013-11-19": 50}
    rows = []
    for day, count in days.items():
        for index in range(count):
            number = len(rows)
            rows.append(
                {
                    "id": f"key-{number}",
                    "at": f"{day}T{index % 24:02d}:00:00Z",
                    "carrier": None if index % 50 == 7 else ("UA", "AA", "UA", "B6")[index % 4],
                    "distance": "NaN" if index % 50 == 3 else None if index % 50 == 4 else float(index % 101),
                    "late": int(index % 5 == 0),
                }
            )
    return rows


@pytest.fixture(scope="module")
def warehouse(local_cloud):
    """The local BigQuery with the examples in it."""
    found = Warehouse(local_cloud, DATASET)
    schema = "id:STRING at:TIMESTAMP carrier:STRING distance:FLOAT64 late:INT64"
    found.load(f"{local_cloud.project}.{DATASET}.examples", examples(), schema)
    return found


@pytest.fixture(scope="module")
def the_plan(local_cloud):
    """A run of the small model over the examples, in shards of 1,000 rows."""
    data = {**make_spec().data.model_dump(mode="json"), "rows_per_shard": 1000}
    data["checks"]["max_null_fraction"] = {"distance": 0.01}
    return make_plan(make_spec(data=data), sql=QUERY, settings=settings.load(local_cloud.env))


@pytest.fixture(scope="module")
def the_snapshot(warehouse, the_plan):
    """The run table, made."""
    warehouse.run(snapshot.render_snapshot_sql(the_plan))
    return build(warehouse, the_plan)


def build(warehouse, the_plan, stored=None):
    schema = [field.to_api_repr() for field in warehouse.client.get_table(bigquery_names.run_table(the_plan)).schema]
    rows = warehouse.run(snapshot.render_fingerprint_sql(the_plan))
    return snapshot.build_snapshot(the_plan, schema, rows, stored or {})


@pytest.fixture(scope="module")
def the_statistics(warehouse, the_plan, the_snapshot):
    """The statistics of the run table."""
    rows = warehouse.run(statistics.render_statistics_sql(the_plan, the_snapshot))
    return statistics.build_statistics(the_plan, the_snapshot, rows)


def test_the_run_table_has_the_windows_rows_in_spans_parts_and_shards(warehouse, the_plan, the_snapshot):
    rows = warehouse.run(Query(sql=f"SELECT * FROM `{the_snapshot.table}`"))
    assert len(rows) == 2600
    assert Counter(str(row["span"]) for row in rows) == {"2013-11-09": 2300, "2013-11-16": 150, "2013-11-18": 150}
    counted = Counter((str(row["span"]), row["part"]) for row in rows)
    for span in the_snapshot.spans:
        for part in span.parts:
            assert part.rows == counted[str(span.span), part.part]
    assert [column.name for column in the_snapshot.columns] == ["id", "at", "carrier", "distance", "late"]
    large = {part.part: part.shards for part in the_snapshot.spans[0].parts}
    assert large == {"train": 3, "validation": 1}
    share = sum(row["part"] == "validation" for row in rows) / len(rows)
    assert 0.07 < share < 0.13


HOURS = """
SELECT
  CONCAT('key-', CAST(n AS STRING)) AS id, TIMESTAMP_ADD(TIMESTAMP '1969-12-02', INTERVAL n HOUR) AS at,
  'UA' AS carrier, 1.5 AS distance, 0 AS late
FROM UNNEST(GENERATE_ARRAY(0, 60 * 24 - 1)) AS n
"""


def test_validation_by_days_takes_whole_days_for_life(warehouse, local_cloud):
    """Before 1970 too, evenly and on all weekdays; another window and another run take the same ones."""
    data, taken = make_spec().data.model_dump(mode="json"), []
    for length, end in ((60, 30), (30, 30), (50, 25)):
        changed = {**data, "window_days": length, "test_days": 7, "validation_percent": 20, "validation_by": "days"}
        asked = AsOf(value=datetime(1970, 1, 1, 3, tzinfo=UTC) + timedelta(days=end), source="logical_date")
        plan = make_plan(
            make_spec(data={**changed, "label_lag_days": 0}),
            sql=HOURS,
            as_of=asked,
            settings=settings.load(local_cloud.env),
        )
        warehouse.run(snapshot.render_snapshot_sql(plan))
        table = bigquery_names.run_table(plan)
        rows = warehouse.run(Query(sql=f"SELECT span, part, COUNT(*) AS n FROM `{table}` GROUP BY span, part"))
        assert len({row["span"] for row in rows}) == len(rows) == length
        assert {row["n"] for row in rows} == {24}
        taken.append({row["span"]: row["part"] for row in rows})
        warehouse.run(Query(sql=f"DROP TABLE `{table}`"))
    whole = [day for day, part in taken[0].items() if part == "validation"]
    assert all(taken[0][day] == part for other in taken[1:] for day, part in other.items())
    assert 10 <= len(whole) <= 14
    assert {day.weekday() for day in whole} == set(range(7))
    assert min(whole).year == 1969


def test_a_second_snapshot_has_the_same_fingerprints_and_reuses_every_span(warehouse, the_plan, the_snapshot):
    stored = {str(span.span): {span.fingerprint: None} for span in the_snapshot.spans}
    warehouse.run(snapshot.render_snapshot_sql(the_plan))
    again = build(warehouse, the_plan, stored)
    assert [span.fingerprint for span in again.spans] == [span.fingerprint for span in the_snapshot.spans]
    assert {span.action for span in again.spans} == {"reuse"}


@pytest.mark.parametrize(
    "change",
    [
        "SELECT * REPLACE (IF(id = 'key-2400', 'ZZ', carrier) AS carrier) FROM core_sql.examples",
        "SELECT * FROM core_sql.examples UNION ALL SELECT * FROM core_sql.examples WHERE id = 'key-2400'",
        (
            "SELECT * FROM core_sql.examples UNION ALL "
            "SELECT examples.* FROM core_sql.examples, UNNEST([1, 2]) AS twice WHERE id = 'key-2400'"
        ),
        "SELECT * FROM core_sql.examples WHERE id != 'key-2400'",
    ],
    ids=["changed", "doubled", "tripled", "gone"],
)
def test_one_changed_row_changes_its_span_and_no_other(warehouse, local_cloud, the_plan, the_snapshot, change):
    other = make_plan(the_plan.spec, sql=change, settings=settings.load(local_cloud.env))
    stored = {str(span.span): {span.fingerprint: None} for span in the_snapshot.spans}
    warehouse.run(snapshot.render_snapshot_sql(other))
    found = build(warehouse, other, stored)
    assert [span.action for span in found.spans] == ["reuse", "export", "reuse"]
    warehouse.run(Query(sql=f"DROP TABLE `{bigquery_names.run_table(other)}`"))


def test_statistics_agree_with_counting_by_hand(the_statistics):
    train = the_statistics.splits["train"]
    assert sum(split.rows for split in the_statistics.splits.values()) == 2600
    assert the_statistics.splits["test"].rows == 150  # every part of 2013-11-18, and 2013-11-17 has no row
    assert the_statistics.keys == d.KeyStatistics(distinct=2600, nulls=0)
    rows = [row for row in examples() if "2013-11-18" <= row["at"] < "2013-11-19"]
    test = the_statistics.splits["test"]
    assert test.label.mean == pytest.approx(sum(row["late"] for row in rows) / len(rows))
    distance = test.features["distance"]
    numbers = sorted(row["distance"] for row in rows if isinstance(row["distance"], float))
    assert isinstance(distance, d.NumericStatistics)
    assert (distance.nulls, distance.min, distance.max) == (len(rows) - len(numbers), numbers[0], numbers[-1])
    assert distance.mean == pytest.approx(sum(numbers) / len(numbers))
    assert len(distance.quantiles) == 21
    assert distance.quantiles[10] == pytest.approx(numbers[len(numbers) // 2], abs=2)
    carrier = test.features["carrier"]
    assert isinstance(carrier, d.CategoricalStatistics)
    counted = Counter(row["carrier"] for row in rows)
    assert {item.value: item.count for item in carrier.top} == {k: v for k, v in counted.items() if k is not None}
    assert (carrier.nulls, carrier.distinct) == (counted[None], 3)
    assert isinstance(train.features["carrier"], d.CategoricalStatistics)
    assert train.features["carrier"].top[0].value == "UA"


def test_checks_find_the_missing_numbers(the_plan, the_snapshot, the_statistics):
    found = checks.check_data(the_plan, the_snapshot, the_statistics)
    assert {finding.check for finding in found.findings} == {"max_null_fraction"}
    assert not found.passed


def test_the_flights_query_gives_what_was_known_before_departure(warehouse, local_cloud):
    include = settings.include_path()
    spec = files.load_spec(include / "models" / "flight_delays.yaml")
    sql = files.load_query(spec, include)
    for table in ("flights", "weather"):
        assert f"flights.{table} AS {table}" in sql
        sql = sql.replace(f"flights.{table} AS {table}", f"{DATASET}.{table} AS {table}")
    flights = [
        flight("late", arr_delay=16.0),
        flight("on time", arr_delay=15.0),
        flight("cancelled", arr_delay=None),
        flight("too old", scheduled_departure="2013-09-01T10:15:00Z", arr_delay=0.0),
        flight("no weather", origin="LGA", arr_delay=0.0),
    ]
    flight_schema = (
        "flight_id:STRING scheduled_departure:TIMESTAMP time_hour:TIMESTAMP carrier:STRING origin:STRING dest:STRING "
        "distance:INT64 year:INT64 month:INT64 day:INT64 hour:INT64 minute:INT64 sched_arr_time:INT64 arr_delay:FLOAT64"
    )
    warehouse.load(f"{local_cloud.project}.{DATASET}.flights", flights, flight_schema)
    weather = {"origin": "EWR", "time_hour": "2013-11-10T10:00:00Z", "temp": 39.02, "humid": 59.37, "wind_speed": 10.3}
    warehouse.load(
        f"{local_cloud.project}.{DATASET}.weather",
        [{**weather, "precip": 0.0, "pressure": 1012.0, "visib": 10.0}],
        "origin:STRING time_hour:TIMESTAMP temp:FLOAT64 humid:FLOAT64 wind_speed:FLOAT64 precip:FLOAT64 "
        "pressure:FLOAT64 visib:FLOAT64",
    )
    the_plan = make_plan(spec, sql=sql, settings=settings.load(local_cloud.env))
    rows = {row["flight_id"]: row for row in warehouse.run(snapshot.render_examples_check_sql(the_plan))}
    assert {name: row["arrived_late"] for name, row in rows.items()} == {"late": 1, "on time": 0, "no weather": 0}
    found = rows["late"]
    assert (found["departure_minute"], found["arrival_minute"], found["day_of_week"]) == (315, 499, 1)
    assert found["temp"] == 39.02
    assert rows["no weather"]["temp"] is None
    assert set(spec.feature_names) < set(found)
    assert not {"dep_delay", "air_time", "dep_time", "arr_time", "arr_delay"} & set(found)
    warehouse.run(snapshot.render_snapshot_sql(the_plan))
    assert [str(span.span) for span in build(warehouse, the_plan).spans] == ["2013-11-10"]


def flight(flight_id, **changes):
    values = {
        "flight_id": flight_id,
        "scheduled_departure": "2013-11-10T10:15:00Z",
        "time_hour": datetime(2013, 11, 10, 10, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "origin": "EWR",
        "dest": "IAH",
        "distance": 1400,
        **FLIGHT,
    }
    return {**values, **changes}
