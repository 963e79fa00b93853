"""Examples without a time, on the local cloud's BigQuery: split by their keys, exported once, judged without days."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from google.cloud import bigquery

from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun, make_source

SPEC = """
name: {name}
description: Is it in an odd hundred?
data:
  query: {name}/examples.sql
  split: hash
  key: id
  test_percent: 20
  checks: {{min_rows: 900, label_rate: [0.1, 0.9]}}
features: [{{name: size, kind: numeric}}]
label: {{name: odd, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.6, promote: {{min_examples: 10}}}}
"""
SOURCE = """
CREATE OR REPLACE TABLE timeless.rows AS
SELECT CONCAT('key-', CAST(i AS STRING)) AS id, CAST(i AS FLOAT64) AS size, MOD(DIV(i, 100), 2) AS odd
FROM UNNEST(GENERATE_ARRAY(0, 999)) AS i
"""
QUERY = "SELECT id, size, odd FROM timeless.rows"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a thousand rows."""
    return make_source(local_cloud, "timeless", SOURCE)


@pytest.fixture
def nights(client, make_run, include: Path):
    """Makes runs of one model of this test's own."""
    name = f"timeless_{uuid.uuid4().hex[:12]}"

    def make(run_id: str, query: str = QUERY, **options: str) -> DataRun:
        night = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_id=run_id, **options), SPEC)
        night.write(query)
        return night

    return make


def splits(client: bigquery.Client, table: str) -> dict[str, str]:
    """Keys of a run table with their splits."""
    sql = f"SELECT id, IF(span = DATE '1970-01-02', 'test', part) AS split FROM `{table}`"
    return {row["id"]: row["split"] for row in client.query_and_wait(sql)}


def test_the_key_decides_the_split_for_life(client, nights) -> None:
    """A week later, with a hundred examples gone, every other example is where it was."""
    first = nights("first")
    first.plan()
    taken = first.snapshot()
    assert (taken["rows"], taken["spans"], taken["exported_spans"]) == (1000, 2, 2)
    checked = first.check_data()
    assert (checked["passed"], checked["quarantined"]) == (True, [])
    assert [text.partition(" has another whole number")[0] for text in checked["warnings"]] == ["size"]
    then = splits(client, taken["table"])
    counts = {name: list(then.values()).count(name) for name in ("train", "validation", "test")}
    assert counts["test"] == pytest.approx(200, abs=50)
    assert counts["validation"] == pytest.approx(80, abs=40)
    later = nights("later", f"{QUERY} WHERE size >= 100")
    later.plan(as_of="2013-11-27T03:00:00Z")
    now = splits(client, later.snapshot()["table"])
    assert len(now) == 900
    assert now.items() < then.items()
    assert later.check_data()["passed"]


def test_a_backfill_needs_a_query_that_knows_the_past(nights) -> None:
    """Without @as_of each of its days would read the same rows."""
    with refuses(AirflowFailException, where="backfill", found="@as_of"):
        nights("blind", run_type="backfill").plan()
    query = f"{QUERY} WHERE @as_of > TIMESTAMP '2000-01-01'"
    assert nights("dated", query, run_type="backfill").plan()["mode"] == "backfill"


def test_a_window_is_no_param_of_it(nights) -> None:
    with pytest.raises(AirflowFailException, match="no Param 'window_days'"):
        nights("wide").plan(window_days=30)
