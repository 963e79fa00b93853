"""A sample of a model's examples, on the local cloud's BigQuery: which keys are in it, and what it is compared with."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery

from tests.support.scenes.data_tasks import DataRun, make_source

SPEC = """
name: {name}
description: Is it in an odd hundred?
data:
  query: {name}/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  validation_percent: 20
  checks: {{min_rows: 900, label_rate: [0.1, 0.9], severity: {{null_keys: warn}}}}
features: [{{name: size, kind: numeric}}]
label: {{name: odd, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.6, promote: {{min_examples: 10}}}}
"""
SOURCE = """
CREATE OR REPLACE TABLE sampled.rows AS
SELECT
  IF(i = 7, NULL, CONCAT('key-', CAST(i AS STRING))) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:30:00+00', INTERVAL MOD(i, 10) DAY) AS seen_at,
  CAST(i AS FLOAT64) AS size,
  MOD(DIV(i, 100), 2) AS odd
FROM UNNEST(GENERATE_ARRAY(0, 999)) AS i
"""
QUERY = (
    "SELECT id, seen_at, size, odd FROM sampled.rows"
    " WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a hundred rows on each of ten days, one of them without a key."""
    return make_source(local_cloud, "sampled", SOURCE)


@pytest.fixture
def nights(client, make_run, include: Path):
    """Makes runs of one model of this test's own."""
    name = f"sampled_{uuid.uuid4().hex[:12]}"

    def make(run_id: str) -> DataRun:
        night = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_id=run_id), SPEC)
        night.write(QUERY)
        return night

    return make


def examples(client: bigquery.Client, night: DataRun, **params: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """Keys of the run table with their parts, and what the snapshot says."""
    night.plan(**params)
    taken = night.snapshot()
    rows = client.query_and_wait(f"SELECT IFNULL(id, '') AS id, part FROM `{taken['table']}`")
    return {row["id"]: row["part"] for row in rows}, taken


def test_a_smaller_sample_is_a_part_of_a_larger_one_and_the_same_in_every_run(client, nights) -> None:
    whole, _ = examples(client, nights("whole"))
    half, _ = examples(client, nights("half"), sample_percent=50)
    again, taken = examples(client, nights("again"), sample_percent=50, force=True)
    tenth, _ = examples(client, nights("tenth"), sample_percent=10.0)
    assert (len(whole), again) == (1000, half)
    assert tenth.items() < half.items() < whole.items()
    assert len(half) == pytest.approx(500, abs=60)
    assert len(tenth) == pytest.approx(100, abs=30)
    assert {"train", "validation"} == set(tenth.values())  # by another hash than the parts
    assert "" in tenth  # a row without a key, for the checks
    assert taken["rows"] == len(half)


def test_a_sample_is_judged_by_its_share_and_beside_samples_alone(nights) -> None:
    """A tenth of 900 rows is enough, and no fall against the whole night before it."""
    first = nights("first")
    first.plan()
    first.snapshot()
    assert first.check_data()["passed"]
    second = nights("second")
    second.plan(sample_percent=10.0, as_of="2013-11-20T04:00:00Z")
    taken = second.snapshot()
    assert taken["exported_spans"] == taken["spans"] == 10
    assert second.check_data() == {
        "passed": True,
        "warnings": [
            "1 examples have no key, so no split for life: leave them out in the query",
            (
                "12 negatives are too few to judge auc by, so nothing of this run will be promoted: "
                "raise data.sample_percent, or lengthen data.test_days"
            ),
        ],
        "quarantined": [],
    }
