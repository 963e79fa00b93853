"""The samples of requests and of test examples, run by the local BigQuery: which rows, and how a request has them."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core.documents.deployment import SmokeRequest
from retraining.core.monitoring import attributions
from retraining.core.monitoring.request_log import LogWindows
from tests.support.request_log import CHAMPION_ID, SCHEMA, logged
from tests.support.small_model import make_plan, make_spec
from tests.support.warehouse import Warehouse

DATASET = "core_attributions_sql"
NOW = datetime(2013, 11, 20, 3, tzinfo=UTC)
HOUR = timedelta(hours=1)
SPEC = make_spec(
    features=[
        {"name": "carrier", "kind": "categorical"},
        {"name": "distance", "kind": "numeric"},
        {"name": "heavy", "kind": "numeric"},
        {"name": "sent", "kind": "time", "parts": ["hour"]},
    ],
    monitoring={"attributions": {}},
)
OWN = SmokeRequest(deployed_model_id=CHAMPION_ID, instances=100, start=NOW - 2 * HOUR, end=NOW - HOUR)


@pytest.fixture(scope="module")
def warehouse(local_cloud) -> Warehouse:
    """Thirty requests of one instance and one of fifty; the monitor's own; one of before, and one that is too long."""
    made, table = Warehouse(local_cloud, DATASET), f"{local_cloud.project}.{DATASET}.requests"
    rows = [logged(NOW - HOUR, [{"n": number}]) for number in range(30)]
    rows += [
        logged(NOW - HOUR, [{"n": number} for number in range(100, 150)]),
        logged(NOW - 2 * HOUR, [{"n": -1}] * 100),
        logged(NOW - 25 * HOUR, [{"n": -2}]),
        logged(NOW - HOUR, [{"n": -3, "text": "x" * attributions.MAX_CHARACTERS}]),
    ]
    made.load(table, [{**row, "request_id": number} for number, row in enumerate(rows)], SCHEMA)
    return made


def sample(warehouse: Warehouse, table: str, seed: str, rows: int) -> list[int]:
    """Numbers of the sampled instances."""
    windows = LogWindows.before(SPEC, NOW)
    found = warehouse.run(attributions.render_instances_sql(table, windows, seed, rows, (OWN,)))
    assert len({(row["request_id"], row["place"]) for row in found}) == len(found)
    instances = [(json.loads(row["instance"])["n"], row["place"]) for row in found]
    assert all(place == max(0, number - 100) for number, place in instances)
    return [number for number, _ in instances]


def test_requests_are_drawn_by_the_seed_and_each_has_its_turn(warehouse: Warehouse, local_cloud: Any) -> None:
    """Of 31 requests one instance each comes first; the same for the same seed, others for another."""
    table = f"{local_cloud.project}.{DATASET}.requests"
    every = sample(warehouse, table, "a", 1000)
    assert sorted(every) == [*range(30), *range(100, 150)]
    first = sample(warehouse, table, "a", 31)
    assert sorted(number for number in first if number < 100) == list(range(30))
    assert first == sample(warehouse, table, "a", 31) == every[:31]
    assert sample(warehouse, table, "b", 10) != first[:10]


def test_test_examples_are_as_a_request_has_them(warehouse: Warehouse, local_cloud: Any) -> None:
    """None of a day before the test days; missing values as the model reads them."""
    table, plan = f"{local_cloud.project}.{DATASET}.run_table", make_plan(SPEC)
    test_day, before = plan.window.test_start, plan.window.test_start - timedelta(days=1)
    sent = datetime(2013, 11, 17, 5, tzinfo=UTC)
    rows = [
        {"id": "full", "carrier": "UA", "distance": 7, "heavy": True, "sent": sent.isoformat(), "span": str(test_day)},
        {"id": "empty", "carrier": None, "distance": None, "heavy": None, "sent": None, "span": str(test_day)},
        {"id": "old", "carrier": "AA", "distance": 1, "heavy": False, "sent": None, "span": str(before)},
    ]
    warehouse.load(table, rows, "id:STRING carrier:STRING distance:INT64 heavy:BOOL sent:TIMESTAMP span:DATE")
    found = warehouse.run(attributions.render_test_rows_sql(plan, table, ["heavy"], "a", 10))
    read = {one.name[0]: one.instance for one in attributions.read_test_rows(found, plan.spec.features, "id")}
    assert read.keys() == {"full", "empty"}
    assert read["full"] == {
        "carrier": "UA",
        "distance": 7.0,
        "heavy": 1.0,
        "sent": round(sent.timestamp()) * 10**6,
        "id": "full",
    }
    empty = read["empty"]
    assert math.isnan(empty["distance"])
    assert math.isnan(empty["heavy"])
    assert (empty["carrier"], empty["sent"], empty["id"]) == ("", -(10**18), "empty")
