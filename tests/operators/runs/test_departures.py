"""The shipped forecast `departures`: what its query counts, and whether a night of it beats what needs no model.

The query is held against counts that Python makes of the flights; the model against the hours before, and against
scikit-learn's gradient boosting on the same rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from google.cloud import bigquery

from retraining.core.checks.quarantine import bad_days, days_to_leave_out
from retraining.core.documents.checks import DayLabels, DayStatistics
from retraining.core.settings import include_path
from retraining.core.spec.files import load_query, load_spec
from retraining.core.spec.model import ModelSpec
from tests.support.scenes.asked_endpoint import predict, retire
from tests.support.scenes.whole_run import run_whole
from tests.support.small_model import make_plan

FIRST, SECOND = (datetime(2013, 11, day, 3, tzinfo=UTC) for day in (20, 21))
HOUR, DAY, NEW_YORK = timedelta(hours=1), timedelta(days=1), ZoneInfo("America/New_York")
AIRPORTS = ("EWR", "JFK", "LGA")
COLUMNS_LIKE_MODEL = 0.1  # flights: how much worse than gradient boosting the shipped model's MAE may be


@pytest.fixture(scope="module")
def spec(local_cloud) -> ModelSpec:
    """The model as it is shipped, with the demo's flights in BigQuery."""
    local_cloud.seed()
    return load_spec(include_path() / "models" / "departures.yaml")


@pytest.fixture(scope="module")
def night(spec, make_run) -> Iterator[Callable[[datetime], dict[str, Any]]]:
    """Runs a night, each once; gives its documents."""
    nights: dict[datetime, dict[str, Any]] = {}

    def run_once(logical_date: datetime) -> dict[str, Any]:
        if logical_date not in nights:
            run = make_run(run_id=f"manual__{logical_date:%Y%m%d}", logical_date=logical_date)
            nights[logical_date] = run_whole(spec, run)
        return nights[logical_date]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETRAINING_WATCH_S", "60")
        yield run_once
    for found in nights.values():
        if found["deployment"]["deployed"]:
            retire(found["deployment"]["endpoint_name"])
            return


def examples(spec: ModelSpec, start: datetime, end: datetime, as_of: datetime, dataset: str = "flights") -> list[Any]:
    """The rows of the query, on the flights of a dataset."""
    given = {"window_start": start, "window_end": end, "as_of": as_of}
    parameters = [bigquery.ScalarQueryParameter(name, "TIMESTAMP", value) for name, value in given.items()]
    config = bigquery.QueryJobConfig(query_parameters=parameters)
    query = load_query(spec, include_path()).replace("FROM flights.flights", f"FROM {dataset}.flights")
    return list(bigquery.Client().query_and_wait(query, job_config=config))


def days_of(rows: list[Any]) -> Iterator[DayStatistics]:
    """What the checks know of each day's labels."""
    for day, of_day in groupby(sorted(rows, key=lambda row: row.hour), key=lambda row: row.hour.date()):
        labels = np.array([row.departures for row in of_day])
        measured = DayLabels(nulls=0, outside=0, rate=None, mean=labels.mean(), stddev=labels.std(ddof=1))
        yield DayStatistics.model_construct(span=day, rows=len(labels), key_nulls=0, label=measured, features={})


def counted_by_hand() -> tuple[Counter[tuple[str, datetime]], Counter[tuple[str, datetime]]]:
    """Flights that left, and flights that were due, by airport and hour of an autumn."""
    sql = (
        "SELECT origin, scheduled_departure, dep_delay FROM flights.flights"
        " WHERE scheduled_departure >= '2013-10-15' AND scheduled_departure < '2013-11-20'"
    )
    left: Counter[tuple[str, datetime]] = Counter()
    due: Counter[tuple[str, datetime]] = Counter()
    for origin, scheduled, delay in (row.values() for row in bigquery.Client().query_and_wait(sql)):
        due[origin, begin_of_hour(scheduled)] += 1
        if delay is not None:
            left[origin, begin_of_hour(scheduled + timedelta(minutes=delay))] += 1
    return left, due


def begin_of_hour(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)


def same_hour(hour: datetime, days: int) -> datetime:
    """The hour so many days before, by New York's clock."""
    local = hour.astimezone(NEW_YORK).replace(tzinfo=None, fold=0) - days * DAY
    return local.replace(tzinfo=NEW_YORK).astimezone(UTC)


def test_each_row_counts_its_hour_and_knows_only_what_was_before_it(spec) -> None:
    """Ten days around the end of summer time, of which the last is not over: every airport, every hour, once."""
    start, end = datetime(2013, 10, 29, tzinfo=UTC), datetime(2013, 11, 8, tzinfo=UTC)
    as_of = end - timedelta(hours=5, minutes=30)
    rows = examples(spec, start, end, as_of)
    hours = [start + index * HOUR for index in range(10 * 24 - 6)]  # the hour that as_of lies in is not over
    assert sorted((row.origin, row.hour) for row in rows) == [(origin, hour) for origin in AIRPORTS for hour in hours]
    assert len({row.hour_id for row in rows}) == len(rows)
    left, due = counted_by_hand()
    for row in rows:
        before = [(row.origin, row.hour - index * HOUR) for index in range(48, 0, -1)]
        assert row.departures_before == [left[hour] for hour in before]
        assert row.scheduled_before == [due[hour] for hour in before]
        assert row.departures_last_hour == left[before[-1]]
        assert row.departures_yesterday == left[row.origin, same_hour(row.hour, 1)]
        assert row.departures_last_week == left[row.origin, same_hour(row.hour, 7)]
        assert row.scheduled == due[row.origin, row.hour]
        assert row.departures == left[row.origin, row.hour]
        local = row.hour.astimezone(NEW_YORK)
        assert (row.hour_of_day, row.day_of_week) == (local.hour, local.isoweekday() % 7 + 1)
    assert sum(row.departures == 0 for row in rows) > 100  # nights


@pytest.mark.parametrize(
    "clock",
    [
        pytest.param("UTC", id="a-day-of-utc", marks=pytest.mark.long),
        pytest.param("America/New_York", id="a-day-of-new-york"),
    ],
)
def test_a_day_whose_flights_were_not_loaded_is_left_out_with_the_reason(spec, clock: str) -> None:
    """By its labels, which are zeros: the day itself, whole or as much of it as its own clock has, and no other."""
    missing, start, end = date(2013, 11, 6), datetime(2013, 10, 15, tzinfo=UTC), datetime(2013, 11, 19, tzinfo=UTC)
    client = bigquery.Client()
    client.create_dataset("incomplete", exists_ok=True)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE incomplete.flights AS SELECT * FROM flights.flights"
        f" WHERE DATE(scheduled_departure, '{clock}') != '{missing}'"
    )
    plan, days = make_plan(spec), [*days_of(examples(spec, start, end, end, "incomplete"))]
    (found,) = bad_days(plan, days)
    assert (found.check, found.severity, found.span) == ("max_label_shift", "quarantine", missing)
    assert re.search(r"the mean of departures is [0-3](\.\d+)? on 2013-11-06", found.message)
    assert days_to_leave_out(plan, days) == (missing,)


@pytest.mark.long
def test_it_beats_the_same_hour_last_week_and_answers_for_an_airport(night) -> None:
    """On the test days, as the run's evaluation has it; the timetable alone and yesterday are beaten too."""
    found = night(FIRST)
    evaluation = found["evaluation"]
    assert found["checks"]["findings"] == []
    assert evaluation["rows"] == 14 * 24 * len(AIRPORTS)
    baselines = {baseline["name"]: baseline for baseline in evaluation["baselines"]}
    mae = evaluation["challenger"]["metrics"]["mae"]
    assert baselines["same_hour_last_week"]["rows"] == evaluation["rows"]
    assert mae < 0.85 * baselines["same_hour_last_week"]["metrics"]["mae"]
    assert mae < 0.85 * min(baseline["metrics"]["mae"] for baseline in baselines.values())
    assert found["decision"]["verdict"] == "promote"
    busy = {
        "departures_before": [0] * 5 + [20] * 19 + [0] * 5 + [20] * 19,
        "scheduled_before": [0] * 5 + [20] * 19 + [0] * 5 + [20] * 19,
        "scheduled": 20,
        "departures_last_week": 20,
        "origin": "LGA",
        "hour_of_day": "9",
        "day_of_week": "4",
    }
    at_night = {**busy, "scheduled": 0, "departures_last_week": 0, "hour_of_day": "2"}
    day, night_hour = predict(found["deployment"]["endpoint_name"], [busy, at_night])
    assert 0 <= night_hour < 2 < 10 < day < 30


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_second_night_holds_the_champion_against_the_challenger(night) -> None:
    """On the same hours, with the interval of the difference; who may serve follows from it."""
    night(FIRST)
    found = night(SECOND)
    evaluation, decision = found["evaluation"], found["decision"]
    assert [span["span"] for span in found["manifest"]["spans"] if span["action"] == "export"] == ["2013-11-20"]
    champion, challenger = (evaluation[model]["metrics"]["mae"] for model in ("champion", "challenger"))
    difference = evaluation["difference"]
    assert difference["metric"] == "mae"
    assert difference["low"] < difference["mean"] < difference["high"]
    assert difference["mean"] == pytest.approx(challenger - champion)
    print(f"mae {challenger:.3f}, champion {champion:.3f}, difference {difference}")
    print(decision["words"])
    gates = {gate["gate"]: gate["passed"] for gate in decision["gates"]}
    assert gates["gain"] == (difference["high"] < 0)  # fewer flights off is better, and surely so
    assert decision["verdict"] == ("promote" if all(gates.values()) else "reject")


def boosted_mae(spec: ModelSpec, table_name: str, test_start: date) -> float:
    """Return the test MAE of scikit-learn's gradient boosting on the model's own columns: each step is a column."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    listed = ", ".join([*spec.feature_names, spec.label.name, "part", "CAST(span AS STRING) AS day"])
    rows = list(bigquery.Client().query_and_wait(f"SELECT {listed} FROM `{table_name}` ORDER BY row_hash"))
    table = np.array([numbers_of(spec, row) for row in rows], dtype=float)
    label = np.array([row[spec.label.name] for row in rows])
    tested = np.array([row["day"] >= test_start.isoformat() for row in rows])
    trained = ~tested & np.array([row["part"] == "train" for row in rows])
    model = HistGradientBoostingRegressor(loss="poisson", random_state=1)
    model.fit(table[trained], label[trained])
    return float(np.abs(model.predict(table[tested]) - label[tested]).mean())


def numbers_of(spec: ModelSpec, row: Any) -> list[float]:
    """A row's features side by side."""
    found: list[float] = []
    for feature in spec.features:
        value = row[feature.name]
        if feature.kind == "sequence":
            found += value
        else:
            found.append(AIRPORTS.index(value) if feature.name == "origin" else value)
    return found


@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_keeps_up_with_gradient_boosting(spec, night) -> None:
    """On the same rows and columns, with the same loss."""
    found = night(FIRST)
    boosted = boosted_mae(spec, found["snapshot"]["table"], date.fromisoformat(found["plan"]["window"]["test_start"]))
    ours = found["evaluation"]["challenger"]["metrics"]["mae"]
    baselines = {
        baseline["name"]: round(baseline["metrics"]["mae"], 3) for baseline in found["evaluation"]["baselines"]
    }
    print(f"mae {ours:.3f}, gradient boosting {boosted:.3f}, baselines {baselines}")
    assert ours < boosted + COLUMNS_LIKE_MODEL
