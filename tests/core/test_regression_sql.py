"""The statistics and requests queries of a label that is a number, run by the local BigQuery."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core import documents, settings
from retraining.core.data import columns as columns_of
from retraining.core.data import snapshot, statistics
from retraining.core.naming import bigquery as bigquery_names
from tests.support.small_model import make_plan, make_spec
from tests.support.warehouse import Warehouse

DATASET = "core_numbers"
INFINITE = 99.0  # JSON has no word for it
QUERY = (
    f"SELECT id, at, origin, IF(departures = {INFINITE}, CAST('inf' AS FLOAT64), departures) AS departures, "
    f"IF(departures = 7, NULL, IF(departures = {INFINITE}, CAST('inf' AS FLOAT64), departures)) AS delay, "
    "IF(departures BETWEEN 0 AND 39, MOD(CAST(departures AS INT64), 4), NULL) AS gate, "
    "CASE departures WHEN 5 THEN NULL WHEN 6 THEN CAST('nan' AS FLOAT64) WHEN 7 THEN -1.0 "
    f"WHEN {INFINITE} THEN CAST('inf' AS FLOAT64) ELSE departures END AS importance "
    "FROM core_numbers.hours"
)
LABEL = {"name": "departures", "kind": "regression", "transform": "log1p", "min": 0, "max": 50}


def rows() -> list[dict[str, Any]]:
    """Two hundred hours on four days: 0 to 39 departures, three labels out of bounds, one missing."""
    made = []
    for index in range(200):
        departures: float | None = {0: -1.0, 1: 51.0, 2: INFINITE, 3: None}.get(index, float(index % 40))
        at = datetime(2013, 11, 15 + index % 4, tzinfo=UTC)
        made.append({"id": f"hour-{index}", "at": at.isoformat(), "origin": "JFK", "departures": departures})
    return made


@pytest.fixture(scope="module")
def warehouse(local_cloud):
    """The local BigQuery with the rows in it."""
    found = Warehouse(local_cloud, DATASET)
    schema = "id:STRING at:TIMESTAMP origin:STRING departures:FLOAT"
    found.load(f"{local_cloud.project}.{DATASET}.hours", rows(), schema)
    return found


@pytest.fixture(scope="module")
def plan(local_cloud):
    """A run over them."""
    spec = make_spec(
        name="hours",
        data={
            "query": "hours.sql",
            "key": "id",
            "event_time": "at",
            "window_days": 10,
            "test_days": 2,
            "weight": "importance",
        },
        features=[{"name": "origin", "kind": "categorical"}],
        label=LABEL,
        auxiliary_labels=[
            {"name": "delay", "kind": "regression", "transform": "log1p", "min": 0},
            {"name": "gate", "kind": "multiclass", "classes": 3},
        ],
        training={"model": "dense"},
        evaluation={"metric": "mae", "max_value": 9},
    )
    return make_plan(spec, sql=QUERY, settings=settings.load(local_cloud.env))


def test_statistics_of_numbers(warehouse, plan) -> None:
    warehouse.run(snapshot.render_snapshot_sql(plan))
    schema = warehouse.columns(bigquery_names.run_table(plan))
    columns = columns_of.own_columns(schema)
    taken = documents.Snapshot.model_construct(table=bigquery_names.run_table(plan), columns=columns, left_out=None)
    counted = warehouse.run(statistics.render_statistics_sql(plan, taken))
    found = statistics.build_statistics(plan, taken, counted, statistics.build_days(plan, counted))
    expected = [(int(row["id"].split("-")[1]), row["departures"]) for row in rows()]
    tested = [value for index, value in expected if index % 4 in (2, 3) and index not in (2, 3)]
    numbers = found.splits["test"].label.numbers
    assert numbers is not None
    mean = sum(tested) / len(tested)
    logs = [math.log1p(value) for value in tested]
    assert (numbers.min, numbers.max) == (min(tested), max(tested))
    assert numbers.mean == pytest.approx(mean)
    assert numbers.stddev == pytest.approx(math.sqrt(sum((value - mean) ** 2 for value in tested) / len(tested)))
    assert numbers.trained_mean == pytest.approx(sum(logs) / len(logs))
    assert len(numbers.quantiles) == 21
    outside = [split.label.outside for split in found.splits.values() if split.label.outside]
    assert sum(item.rows for item in outside) == 3
    assert sum(split.label.nulls for split in found.splits.values()) == 1
    assert [day.label.outside for day in found.days] == [1, 1, 1, 0]
    by_day = [[value for index, value in expected if index % 4 == day and index > 3] for day in range(4)]
    assert [day.label.mean for day in found.days] == pytest.approx([sum(day) / len(day) for day in by_day])

    delays, gates = ([split.auxiliary_labels[name] for split in found.splits.values()] for name in ("delay", "gate"))
    right = [value for index, value in expected if index not in (0, 2, 3) and value != 7]
    assert sum(item.nulls for item in delays) == 1 + 5
    assert sum(item.outside.rows for item in delays if item.outside) == 2
    assert sum(item.nulls for item in gates) == 4
    assert sum(item.outside.rows for item in gates if item.outside) == 49
    by_class = [sum(counts) for counts in zip(*(item.counts for item in gates), strict=True)]
    assert by_class == [sum(value % 4 == each for value in right if value < 50) for each in range(3)]
    tests = [value for index, value in expected if index % 4 in (2, 3) and index not in (2, 3) and value != 7]
    logs = [math.log1p(value) for value in tests]
    weights = [split.weight for split in found.splits.values() if split.weight]
    assert sum(item.nulls for item in weights) == 1 + 5 + 5  # of a label that is missing, of 5 and of 6 departures
    assert sum(item.outside for item in weights) == 1 + 1 + 5  # -1, infinity, and of 7
    counted = [value for value in tested if value not in (5, 6, 7)]
    assert weights[-1].mean == pytest.approx(sum(counted) / len(counted))
    assert delays[-1].numbers.trained_mean == pytest.approx(sum(logs) / len(logs))
