"""The classifier on the local cloud: the real statement, the trainer's own job, the document that it leaves."""

from __future__ import annotations

import json
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from retraining.core.documents import Multivariate, Signals
from retraining.core.naming import storage as names
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.operators.monitoring import multivariate as multivariate_task
from retraining.operators.monitoring.multivariate import MeasureMultivariateOperator
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import run_whole

pytestmark = pytest.mark.long

AS_OF = datetime(2013, 11, 20, 12, tzinfo=UTC)
SPEC = """
name: {name}
description: Will it be late?
schedule: null
data:
  query: {name}/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  checks: {{min_rows: 1000}}
features:
  - {{name: carrier, kind: categorical}}
  - {{name: heavy, kind: numeric}}
  - {{name: distance, kind: numeric}}
  - {{name: weight, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.5, reference: false}}
"""
SOURCE = """
CREATE OR REPLACE TABLE traffic_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:01:00+00', INTERVAL 12 * i MINUTE) AS seen_at,
  IF(MOD(i, 2) = 0, 'fast', 'slow') AS carrier,
  MOD(i, 3) = 0 AS heavy,
  IF(MOD(i, 31) = 0, NULL, MOD(i * 7919, 1000)) AS distance,
  MOD(i * 104729, 1009) / 10 AS weight,
  IF(MOD(i * 104729, 1000) > 500, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, 1499)) AS i
"""
QUERY = "SELECT * FROM traffic_source.parcels WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
# Each column as in the source, but the weight goes with the distance; a smoke test's and older ones are not counted.
LOG = """
CREATE OR REPLACE TABLE retraining.requests_{name} AS
SELECT
  'endpoint' AS endpoint,
  '1' AS deployed_model_id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-20 00:00:00+00', INTERVAL IF(i < 600, i, -100000) SECOND) AS logging_time,
  CAST(i AS NUMERIC) AS request_id,
  [FORMAT(
    '{{"carrier": "%s", "heavy": %d, "distance": %d, "weight": %f}}',
    IF(MOD(i, 2) = 0, 'fast', 'slow'), IF(MOD(i, 3) = 0, 1, 0), MOD(i * 7919, 1000), MOD(i * 7919, 1000) / 10
  )] AS request_payload,
  ['0.5'] AS response_payload
FROM UNNEST(GENERATE_ARRAY(0, 699)) AS i
"""


@pytest.fixture
def monitored(local_cloud: Any, make_run: Any, include: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A run with its table, as a champion's; requests; and a monitor run behind `measure`: its task and folder."""
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    name = f"traffic_{uuid.uuid4().hex[:12]}"
    make_source(local_cloud, "traffic_source", SOURCE, LOG.format(name=name))
    (include / "models" / f"{name}.yaml").write_text(SPEC.format(name=name))
    (include / "sql" / name).mkdir(parents=True)
    (include / "sql" / name / "examples.sql").write_text(QUERY)
    spec = load_spec(include / "models" / f"{name}.yaml")
    monkeypatch.setattr(multivariate_task, "load_spec", lambda _: spec)
    run = make_run()
    run_whole(spec, run, last="snapshot")
    run_key = run.xcoms["plan", "return_value"]["run_uri"].split("/")[-1]
    monitor = make_run(dag_id=f"monitor__{name}", run_id="manual__1", params={"multivariate": True})
    folder = names.monitor_uri(local_cloud.bucket, name, AS_OF, monitor.run_id)
    signals = Signals(
        model=name,
        as_of=AS_OF,
        window_hours=24,
        champion={"version_id": "1", "run_key": run_key},
        endpoint_name="endpoint",
        log_table=f"{local_cloud.project}.{local_cloud.dataset}.requests_{name}",
        requests=600,
        bytes_read=0,
        signals=(),
    )
    write(f"{folder}/signals.json", signals.to_bytes())
    return monitor, MeasureMultivariateOperator(task_id="multivariate", model=name, run_uri=folder), folder


def write(uri: str, data: bytes) -> None:
    storage.Blob.from_uri(uri, storage.Client()).upload_from_string(data)


def run_task(run: Any, task: Any, **context: Any) -> Any:
    deadline = time.monotonic() + 300
    while True:
        try:
            return run.execute(task, **context)
        except AirflowRescheduleException:
            assert time.monotonic() < deadline


def test_a_changed_relation_is_found_and_named(monitored) -> None:
    """One job; then, with the run table gone, the champion's query gives the same answer."""
    run, task, folder = monitored
    result = run_task(run, task)
    found = Multivariate.parse(storage.Blob.from_uri(result["uri"], storage.Client()).download_as_bytes())
    assert found.requests == 600
    assert found.examples == 8 * 120  # without the two test days
    assert found.auc > 0.7
    assert {feature.name for feature in found.features[:2]} == {"distance", "weight"}
    columns = [field.name for field in bigquery.Client().get_table(found.table).schema]
    assert columns == ["asked", "f0", "f1", "f2", "f3"]
    assert run_task(run, task)["job"] == result["job"]

    plan_uri = f"{folder.rsplit('/monitor/', 1)[0]}/runs/{found.run_key}/snapshot.json"
    snapshot = json.loads(storage.Blob.from_uri(plan_uri, storage.Client()).download_as_bytes())
    Cloud().warehouse.delete_table(snapshot["table"])
    storage.Blob.from_uri(result["uri"], storage.Client()).delete()
    again = run_task(run, task, max_tries=5)  # as one that was cleared
    other = Multivariate.parse(storage.Blob.from_uri(again["uri"], storage.Client()).download_as_bytes())
    assert other.requests == found.requests
    assert other.auc == pytest.approx(found.auc, abs=0.02)
