"""Attributions on the local cloud: a model is trained, deployed and asked, and the monitor asks it too."""

from __future__ import annotations

import random
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud import storage

from retraining.core.documents import AttributionBaseline, AttributionRequest, RequestAttributions, Signal, Signals
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.operators.monitoring import measurement, watch
from retraining.operators.monitoring.measurement import MeasureSignalsOperator
from tests.support.scenes.asked_endpoint import predict, retire
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import read_object, run_whole

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
monitoring: {{min_requests: 30, attributions: {{requests: 60}}}}
"""
SOURCE = """
CREATE OR REPLACE TABLE attribution_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '{start}', INTERVAL 4 * i MINUTE) AS seen_at,
  IF(MOD(i, 2) = 0, 'fast', 'slow') AS carrier,
  MOD(i * 7919, 1000) AS distance,
  IF(MOD(i * 7919, 1000) + IF(MOD(i, 2) = 0, 0, 300) + MOD(i * 104729, 400) > 800, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, 3599)) AS i
"""
QUERY = """
SELECT * FROM attribution_source.parcels WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)
"""


@pytest.fixture
def midnight() -> datetime:
    """The last one as the test begins."""
    return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


@pytest.fixture
def spec(local_cloud: Any, include: Path, midnight: datetime, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Its file, and the table that it reads: ten days of parcels up to last midnight."""
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    name = f"why_{uuid.uuid4().hex[:8]}"
    make_source(local_cloud, "attribution_source", SOURCE.format(start=midnight - timedelta(days=10)))
    path = include / "models" / f"{name}.yaml"
    path.write_text(SPEC.format(name=name))
    (include / "sql" / name).mkdir(parents=True)
    (include / "sql" / name / "examples.sql").write_text(QUERY)
    for module in (watch, measurement):
        monkeypatch.setattr(module, "include_path", lambda: include)
    return load_spec(path)


def measure(spec: Any, make_run: Any, number: int) -> tuple[str, dict[str, list[Signal]]]:
    """A monitor run now: its folder, and its signals by kind."""
    asked = datetime.now(UTC)
    while (now := datetime.now(UTC).replace(microsecond=0)) <= asked:  # a run is as of a whole second, exclusive
        time.sleep(0.05)
    params = {"as_of": None, "retrain_as_of": None, "window_hours": 24}
    run = make_run(
        dag_id=f"monitor__{spec.name}", run_id=f"manual__{number}", params=params, logical_date=now, run_after=now
    )
    folder = run.execute(MeasureSignalsOperator(task_id="measure", model=spec.name))["monitor_uri"]
    by_kind: dict[str, list[Signal]] = {}
    for signal in Signals.parse(read_object(f"{folder}/signals.json")).signals:
        by_kind.setdefault(signal.kind, []).append(signal)
    return folder, by_kind


def ask(endpoint: str, requests: int, *, lost: bool) -> None:
    """Ask as an application would, ten parcels at a time; where it lost the distance, it sends always the same."""
    chance = random.Random(requests)
    for _ in range(requests):
        parcels = [
            {"carrier": chance.choice(["fast", "slow"]), "distance": 500.0 if lost else chance.uniform(0, 1000)}
            for _ in range(10)
        ]
        predict(endpoint, parcels)


def test_a_feature_that_lost_its_meaning_is_seen_and_what_is_asked_is_not(
    spec: Any, midnight: datetime, make_run: Any
) -> None:
    """First requests like the test days, then such without a distance; the monitor's own are in no count."""
    night = run_whole(spec, make_run(run_id="manual__night", logical_date=midnight, run_after=midnight))
    assert night["deployment"]["deployed"], night["decision"]["words"]
    endpoint = Cloud().endpoints.get(spec.name)
    assert endpoint is not None
    try:
        ask(endpoint.name, 6, lost=False)
        folder, seen = measure(spec, make_run, 1)
        (quiet,) = seen["attributions"]
        assert (quiet.state, quiet.examples) == ("ok", 60), quiet
        request = AttributionRequest.parse(read_object(f"{folder}/attribution_request.json"))
        answered = RequestAttributions.parse(read_object(f"{folder}/attributions.json"))
        run_uri = f"{folder.rpartition('/monitor/')[0]}/runs/{request.run_key}"
        baseline = AttributionBaseline.parse(read_object(f"{run_uri}/attribution_baseline.json"))
        assert (len(request.requests), len(request.test_rows), len(baseline.rows)) == (60, 60, 60)
        assert (request.predictions, answered.calls) == (400, 4)

        _, again = measure(spec, make_run, 2)
        assert again["attributions"] == [quiet]
        assert [each.examples for each in again["skew"]] == [60, 60]
        assert {each.state for each in again["skew"]} == {"ok"}

        ask(endpoint.name, 150, lost=True)  # so many that few of those before are among the sixty
        storage.Blob.from_uri(f"{folder}/attribution_request.json", storage.Client()).delete()  # as a day later
        _, changed = measure(spec, make_run, 3)
        (alarm,) = changed["attributions"]
        assert alarm.state == "exceeded", alarm
        assert "distance" in alarm.message
    finally:
        retire(endpoint.name)
