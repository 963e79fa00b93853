"""A frozen set, STRUCTs, large rows and events of the future, on the local cloud's BigQuery and storage."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from tests.support.airflow_release import AirflowFailException
from tests.support.scenes.data_tasks import DataRun, make_source

SPEC = """
name: {name}
description: Will it be late?
schedule: null
data:
  query: {name}/examples.sql
  golden_query: {name}/golden.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  shard_mb: 1
  checks: {{min_rows: 100}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: distance, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.5}}
"""
SOURCE = """
CREATE OR REPLACE TABLE golden_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:30:00+00', INTERVAL i HOUR) AS seen_at,
  CONCAT('carrier ', CAST(MOD(i, 3) AS STRING)) AS carrier,
  i AS distance,
  MOD(i, 2) AS late,
  STRUCT('x' AS city, STRUCT(1.5 AS lat) AS geo) AS place,
  REPEAT('n', IF(i < 24, 100000, 1)) AS note
FROM UNNEST(GENERATE_ARRAY(0, 299)) AS i
UNION ALL
SELECT 'skewed', TIMESTAMP '2999-01-01 00:00:00+00', 'carrier 0', 1, 1,
  STRUCT('x' AS city, STRUCT(1.5 AS lat) AS geo), 'n'
UNION ALL
SELECT 'undated', NULL, 'carrier 0', 1, 1, STRUCT('x' AS city, STRUCT(1.5 AS lat) AS geo), 'n'
"""
QUERY = (
    "SELECT * FROM golden_source.parcels WHERE seen_at >= LEAST(@window_start, @window_end, @as_of) OR seen_at IS NULL"
)
GOLDEN = "SELECT * FROM golden_source.frozen;"
FROZEN = """
CREATE OR REPLACE TABLE golden_source.frozen AS
SELECT * FROM golden_source.parcels WHERE distance IN (30, 31, 40, 41) AND note = 'n'
"""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a source of ten days: the first one has rows of 100 kB."""
    return make_source(local_cloud, "golden_source", SOURCE)


@pytest.fixture
def make_data_run(client, make_run, include: Path) -> Any:
    """Runs of one model of this test's own; another one for each run id."""
    client.query_and_wait(FROZEN)
    name = f"golden_{uuid.uuid4().hex[:12]}"

    def make(run_id: str = "manual__1") -> DataRun:
        night = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_id=run_id), SPEC)
        night.write(QUERY, golden=GOLDEN)
        return night

    return make


@pytest.fixture
def read(local_cloud) -> Any:
    """Reads a JSON object of the bucket."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    return lambda uri: json.loads(bucket.blob(uri.removeprefix(f"gs://{bucket.name}/")).download_as_bytes())


def test_the_whole_snapshot(make_data_run, read, client) -> None:
    """The frozen set stands beside the run table and not in it; shards by bytes; STRUCTs flattened; skew named."""
    night = make_data_run()
    planned = night.plan()
    taken = night.snapshot()
    stored = read(f"{planned['run_uri']}/snapshot.json")
    assert (stored["golden"]["rows"], stored["golden"]["action"], stored["golden"]["shards"]) == (4, "export", 1)
    assert taken["rows"] == 240 - 4
    columns = {column["name"]: column["type"] for column in stored["schema"]}
    assert (columns["place.city"], columns["place.geo.lat"]) == ("STRING", "FLOAT")
    heavy, *light = [sum(part["shards"] for part in span["parts"]) for span in stored["spans"]]
    assert heavy >= 3  # 24 rows of 100 kB in two parts of at most 1 MB a shard
    assert set(light) <= {1, 2}
    assert stored["left_out"] == {"future": 1, "latest": "2999-01-01", "undated": 1}
    assert "left out: 1 events after today, the last one on 2999-01-01" in stored["explain"]
    found = client.query_and_wait(f"SELECT COUNTIF(distance IN (30, 31, 40, 41)) AS frozen FROM `{taken['table']}`")
    assert next(iter(found)).frozen == 0


def test_the_frozen_set_stays_frozen(make_data_run, read, client, local_cloud) -> None:
    """Its source may change; its table may not."""
    first = make_data_run()
    planned = first.plan()
    first.snapshot()
    golden = read(f"{planned['run_uri']}/snapshot.json")["golden"]
    client.query_and_wait("DELETE FROM golden_source.frozen WHERE distance = 30")
    second = make_data_run("manual__2")
    again = second.plan(force=True)
    assert again["run_uri"] != planned["run_uri"]
    second.snapshot()
    assert read(f"{again['run_uri']}/snapshot.json")["golden"] == golden
    client.delete_table(golden["table"])
    third = make_data_run("manual__3")
    third.plan(force=True)
    with pytest.raises(AirflowFailException, match=r"the frozen set has changed.*4 rows"):
        third.snapshot()


def test_a_frozen_set_of_other_columns_is_refused(make_data_run) -> None:
    """Before anything is exported, with each column's name."""
    night = make_data_run()
    night.write(QUERY, golden="SELECT * EXCEPT (distance, place), 'far' AS distance FROM golden_source.frozen")
    night.plan()
    with pytest.raises(
        AirflowFailException,
        match=r"golden\.sql: other columns .*distance \(STRING, not INTEGER\).*place\.city \(missing, not STRING\)",
    ):
        night.snapshot()


def test_a_frozen_set_does_not_depend_on_the_run(make_data_run) -> None:
    """The window is no parameter of it."""
    night = make_data_run()
    night.write(QUERY, golden="SELECT * FROM golden_source.frozen WHERE seen_at < @window_end")
    with pytest.raises(AirflowFailException, match=r"golden\.sql: unknown parameter @window_end. Expected none"):
        night.plan()
