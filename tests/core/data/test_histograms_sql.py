"""Histograms of numbers and counts of rare categories, by the statistics query, run by the local BigQuery."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from bench import monitor_baselines as baselines
from retraining.core import documents, settings
from retraining.core.data import columns as columns_of
from retraining.core.data import snapshot, statistics
from retraining.core.data.sql import Parameter, Query
from retraining.core.naming import bigquery as bigquery_names
from tests.support.small_model import make_plan, make_spec
from tests.support.warehouse import Warehouse

DATASET = "core_histograms"
ROWS = 3000
NUMBERS = ("zeros", "constant", "heavy", "few", "alternating", "none")
TEXTS = ("shop", "colour", "batch")
UNLIKE = ("alternating", "colour", "batch")
"""What differs from day to day."""
SCHEMA = " ".join(
    [
        "id:STRING at:TIMESTAMP late:INTEGER",
        *(f"{name}:STRING" for name in TEXTS),
        *(f"{name}:FLOAT" for name in NUMBERS),
    ]
)


def rows() -> list[dict[str, Any]]:
    """Mostly zeros, a constant, a heavy tail with missing values, few values, none at all; 2,000 shops.

    One number and the colours are others every second day, batches are others each day; the 15th has few rows.
    """
    random, by_day = np.random.default_rng(0), np.random.default_rng(1)
    made = []
    for index in range(ROWS):
        day = 6 if index % 9 == 7 and index > 300 else index % 9
        made.append(
            {
                "id": f"row-{index}",
                "at": datetime(2013, 11, 8 + day, tzinfo=UTC).isoformat(),
                "late": int(random.random() < 0.3),
                "shop": None if index % 50 == 7 else f"shop {int(random.integers(0, 2000))}",
                "zeros": float(random.exponential(3)) if random.random() < 0.04 else 0.0,
                "constant": 0.1,
                "heavy": None if index % 10 == 3 else float(random.pareto(1.1)),
                "few": float(random.integers(-2, 3)),
                "alternating": float(by_day.normal(2 * (day % 2))),
                "colour": "red" if by_day.random() < (0.2, 0.7)[day % 2] else "blue",
                "batch": f"batch {day}",
            }
        )
    return made


@pytest.fixture(scope="module")
def warehouse(local_cloud: Any) -> Warehouse:
    """The local BigQuery with the rows in it."""
    found = Warehouse(local_cloud, DATASET)
    found.load(f"{local_cloud.project}.{DATASET}.visits", rows(), SCHEMA)
    return found


@pytest.fixture(scope="module")
def counted(warehouse: Warehouse, local_cloud: Any) -> documents.Statistics:
    """Statistics of a run over them."""
    spec = make_spec(
        name="visits",
        data={"query": "visits.sql", "key": "id", "event_time": "at", "window_days": 10, "test_days": 2},
        features=[
            *({"name": name, "kind": "categorical"} for name in TEXTS),
            *({"name": name, "kind": "numeric"} for name in NUMBERS),
        ],
        label={"name": "late", "kind": "binary"},
        evaluation={"metric": "auc", "min_value": 0.6},
    )
    query = f"SELECT {', '.join(name.split(':')[0] for name in SCHEMA.split())} FROM {DATASET}.visits"
    plan = make_plan(spec, sql=query, settings=settings.load(local_cloud.env))
    warehouse.run(snapshot.render_snapshot_sql(plan))
    columns = columns_of.own_columns(warehouse.columns(bigquery_names.run_table(plan)))
    taken = documents.Snapshot.model_construct(table=bigquery_names.run_table(plan), columns=columns, left_out=None)
    found = warehouse.run(statistics.render_statistics_sql(plan, taken))
    return statistics.build_statistics(plan, taken, found, statistics.build_days(plan, found))


@pytest.mark.parametrize("name", NUMBERS[:-1])
def test_each_number_has_all_its_rows_in_its_bins(counted: documents.Statistics, name: str) -> None:
    for split in filter(lambda each: each.rows, counted.splits.values()):
        found = split.features[name]
        assert isinstance(found, documents.NumericStatistics)
        assert found.histogram is not None
        assert found.histogram.counts[0] == found.histogram.counts[-1] == 0
        assert sum(found.histogram.counts) == split.rows - found.nulls
        own = statistics.edges_around(found.quantiles)
        assert set(found.histogram.edges) <= set(own)
        assert (found.histogram.edges[0], found.histogram.edges[-1]) == (own[0], own[-1])


def test_a_mode_has_a_bin_of_its_own_with_its_own_rows(counted: documents.Statistics) -> None:
    """What the quantiles have by steps of 5 %, it has to the row."""
    train = counted.splits["train"].features
    zeros, constant = train["zeros"].histogram, train["constant"].histogram
    assert zeros.counts[1] / sum(zeros.counts) == pytest.approx(0.96, abs=0.015)
    assert zeros.edges[0] < 0 < zeros.edges[1]
    assert constant.counts[1] == counted.splits["train"].rows
    assert len(constant.edges) == 2
    assert train["none"].histogram is None


def test_rare_categories_are_counted_by_their_hash(counted: documents.Statistics, warehouse: Warehouse) -> None:
    """Of the training split alone; with room between them, and each at the place that BigQuery's hash gives."""
    split = counted.splits["train"]
    shop = split.features["shop"]
    assert isinstance(shop, documents.CategoricalStatistics)
    assert len(shop.top) == statistics.MAX_CATEGORIES
    beyond = shop.distinct - len(shop.top)
    assert len(shop.tail) >= 4 * beyond > len(shop.tail) / 2
    assert sum(shop.tail) + sum(item.count for item in shop.top) + shop.nulls == split.rows
    assert not counted.splits["test"].features["shop"].tail
    query = f"SELECT DISTINCT shop, FARM_FINGERPRINT(shop) & {len(shop.tail) - 1} AS place FROM {DATASET}.visits"
    places = {row["shop"]: row["place"] for row in warehouse.run(Query(sql=query))}
    known = {item.value for item in shop.top}
    seen = Counter(row["shop"] for row in rows() if row["shop"] and row["shop"] not in known)
    assert {places[value] for value in seen} >= {place for place, count in enumerate(shop.tail) if count}


@pytest.mark.parametrize("name", [*NUMBERS[:-1], *TEXTS])
def test_the_usual_distance_of_days_is_the_monitors(
    counted: documents.Statistics, warehouse: Warehouse, name: str
) -> None:
    """Of each day of the training split from its others, by the functions that requests are measured with.

    A day of few rows does not count; it is one of the others.
    """
    query = f"SELECT span, {name} AS value FROM `{counted.table}` WHERE part = 'train' AND span < @test_start"
    start = Parameter(name="test_start", type="DATE", value=counted.window.test_start.isoformat())
    days: dict[Any, list[Any]] = defaultdict(list)
    for row in warehouse.run(Query(sql=query, parameters=(start,))):
        days[row["span"]].append(row["value"])
    expected, rows_there = baselines.calibrated(list(days.values()), 200)
    found = counted.splits["train"].features[name]
    assert rows_there == counted.splits["train"].rows
    assert found.usual.days == expected.usual.days == len(days) - 1
    assert found.usual.distance == pytest.approx(expected.usual.distance, abs=0.02)
    assert (found.usual.distance > 0.1) == (name in UNLIKE)
    assert counted.splits["test"].features[name].usual is None
