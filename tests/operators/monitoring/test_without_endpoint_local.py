"""A model without an endpoint on the local cloud: trained, scored and watched by what it scored."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud import storage

from retraining.core.documents import Signal, Signals
from retraining.core.naming import vertex
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.operators.monitoring import measurement, watch
from retraining.operators.monitoring.measurement import MeasureSignalsOperator
from retraining.operators.scoring import scoring_plan
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import run_scoring, run_whole

pytestmark = pytest.mark.long

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
  - {{name: distance, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.5, reference: false, promote: {{min_examples: 500}}}}
deployment: null
scoring: {{table: batch_source.today, destination: retraining.answers_{name}}}
"""
SOURCE = """
CREATE OR REPLACE TABLE batch_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '{start}', INTERVAL 4 * i MINUTE) AS seen_at,
  IF(MOD(i, 2) = 0, 'fast', 'slow') AS carrier,
  IF(MOD(i, 31) = 0, NULL, MOD(i * 7919, 1000)) AS distance,
  IF(MOD(i * 7919, 1000) + MOD(i * 104729, 400) > 700, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, 3599)) AS i
"""
QUERY = "SELECT * FROM batch_source.parcels WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
TODAY = """
CREATE OR REPLACE TABLE batch_source.today AS
SELECT id, {carrier} AS carrier, distance
FROM batch_source.parcels
WHERE seen_at >= TIMESTAMP '{since}'
"""


@pytest.fixture
def midnight() -> datetime:
    """The last one as the test begins: its file may have been read on the day before."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def spec(local_cloud: Any, include: Path, midnight: datetime, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its file, and the tables that it reads: ten days of parcels up to last midnight."""
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    name = f"batch_{uuid.uuid4().hex[:8]}"
    make_source(
        local_cloud, "batch_source", SOURCE.format(start=midnight - timedelta(days=10)), today("carrier", midnight)
    )
    path = include / "models" / f"{name}.yaml"
    path.write_text(SPEC.format(name=name))
    (include / "sql" / name).mkdir(parents=True)
    (include / "sql" / name / "examples.sql").write_text(QUERY)
    for module in (scoring_plan, watch, measurement):
        monkeypatch.setattr(module, "include_path", lambda: include)
    return load_spec(path)


def today(carrier: str, midnight: datetime) -> str:
    """What is scored: parcels of three days, with another carrier."""
    return TODAY.format(carrier=carrier, since=midnight - timedelta(days=3))


def measure(spec: Any, make_run: Any, number: int) -> dict[str, list[Signal]]:
    """A monitor run now: its signals by kind."""
    params = {"as_of": None, "retrain_as_of": None, "window_hours": 24}
    run = make_run(
        dag_id=f"monitor__{spec.name}",
        run_id=f"manual__{number}",
        params=params,
        logical_date=datetime.now(UTC),
        run_after=datetime.now(UTC),
    )
    told = run.execute(MeasureSignalsOperator(task_id="measure", model=spec.name))
    stored = storage.Blob.from_uri(f"{told['monitor_uri']}/signals.json", storage.Client()).download_as_bytes()
    found = Signals.parse(stored)
    assert found.endpoint_name is None
    by_kind: dict[str, list[Signal]] = {}
    for signal in found.signals:
        by_kind.setdefault(signal.kind, []).append(signal)
    return by_kind


def test_it_is_trained_scored_and_watched_without_a_machine_that_serves(
    spec: Any, local_cloud: Any, midnight: datetime, make_run: Any
) -> None:
    """Its scored rows are judged as an endpoint's requests are, with the labels that are known; no endpoint is made."""
    night = run_whole(spec, make_run(run_id="manual__night", logical_date=midnight, run_after=midnight))
    assert night["deployment"]["deployed"], night["decision"]["words"]
    assert Cloud().endpoints.get(spec.name) is None
    before = measure(spec, make_run, 1)
    assert {signal.reason for signal in before["skew"]} == {"no_traffic"}

    run_scoring(spec, make_run(run_id="manual__score", logical_date=midnight, run_after=midnight))
    seen = measure(spec, make_run, 2)
    assert not {"errors", "latency"} & seen.keys()
    assert [signal.value for signal in seen["traffic"]] == [1080]
    assert {(signal.subject, signal.state) for signal in seen["skew"]} == {("carrier", "ok"), ("distance", "ok")}
    (drifted,) = [signal for signal in seen["prediction_drift"] if signal.subject == "late"]
    assert drifted.state == "ok"
    judged = next(signal for signal in seen["performance"] if signal.measure == "auc" and not signal.subject)
    assert judged.state == "ok", judged
    assert judged.examples == 720  # of the days that are over for the examples query

    make_source(local_cloud, "batch_source", today("'new'", midnight))
    run_scoring(spec, make_run(run_id="manual__changed", logical_date=midnight, run_after=midnight), force=True)
    changed = {signal.subject: signal.state for signal in measure(spec, make_run, 3)["skew"]}
    assert changed == {"carrier": "exceeded", "distance": "ok"}
    champion = Cloud().registry.find_by_alias(spec.name, vertex.CHAMPION)
    assert champion is not None
    assert not champion.deployed
