"""A version of staging in production, on the local cloud: two buckets, two regions, the real trainer and judge."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from retraining.core.naming import vertex
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from tests.support.scenes.asked_endpoint import retire
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import read_object, run_whole

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

MODEL, SOURCE = "promoted_parcels", "promotion_source"
FIRST, SECOND = (datetime(2013, 11, day, 3, tzinfo=UTC) for day in (19, 20))
SPEC = f"""
name: {MODEL}
description: Will it be late?
schedule: null
data:
  query: {MODEL}/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  checks: {{min_rows: 1000}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: weight, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: dense, epochs: 8, batch_size: 64, seed: 7, hyperparameters: {{learning_rate: 0.01}}}}
evaluation: {{metric: auc, min_value: 0.7, promote: {{min_examples: 100, below_reference: true}}}}
"""
# Late are the heavy parcels of one carrier, from the 8th to the 18th.
ROWS = f"""
CREATE OR REPLACE TABLE {SOURCE}.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-08 00:01:00+00', INTERVAL 6 * i MINUTE) AS seen_at,
  FORMAT('carrier %d', MOD(i, 5)) AS carrier,
  MOD(i * 104729, 1000) / 10 AS weight,
  IF(MOD(i, 5) IN (1, 2) AND MOD(i * 104729, 1000) > 300, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, {11 * 240 - 1})) AS i
"""
CORRECTED = f"UPDATE {SOURCE}.parcels SET weight = weight + 1 WHERE id = 'parcel-800'"
QUERY = f"SELECT * FROM {SOURCE}.parcels WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"


class Stages:
    """Two stages of one local cloud; `enter` says which the tasks are in."""

    def __init__(self, tmp_path: Path, patch: pytest.MonkeyPatch, project: str) -> None:
        self._patch = patch
        self.path = tmp_path / "models" / f"{MODEL}.yaml"
        (tmp_path / "sql" / MODEL).mkdir(parents=True)
        self.path.parent.mkdir()
        self.path.write_text(SPEC)
        (tmp_path / "sql" / MODEL / "examples.sql").write_text(QUERY)
        unique = uuid.uuid4().hex[:8]
        self.places = {
            "staging": ("us-west1", f"staging-{unique}"),
            "production": ("us-central1", f"production-{unique}"),
        }
        lines = [f"  {name}: {{region: {place[0]}, bucket: {place[1]}}}" for name, place in self.places.items()]
        (tmp_path / "environments.yaml").write_text("\n".join(["stages:", *lines]))
        for _, bucket in self.places.values():
            storage.Client(project=project).create_bucket(bucket, location="us-central1")
        patch.setenv("RETRAINING_INCLUDE", str(tmp_path))
        patch.setenv("RETRAINING_WATCH_S", "60")
        for name in ("RESULTS_BUCKET", "ENVIRONMENT", "SERVING_IMAGE"):
            patch.delenv(f"RETRAINING_{name}", raising=False)

    def enter(self, name: str) -> Any:
        """Return the model's spec as this stage has it."""
        region, bucket = self.places[name]
        for variable, value in (("STAGE", name), ("REGION", region), ("BUCKET", bucket)):
            self._patch.setenv(f"RETRAINING_{variable}", value)
        return load_spec(self.path)


def test_a_version_of_staging_serves_in_production(local_cloud, tmp_path, monkeypatch, make_run) -> None:
    """The judge reads staging's shards where a day was corrected since, and the endpoint serves the copy."""
    make_source(local_cloud, SOURCE, ROWS)
    stages = Stages(tmp_path, monkeypatch, local_cloud.project)
    there = run_whole(stages.enter("staging"), make_run(run_id="manual__1", logical_date=FIRST), "register")
    assert there["decision"]["verdict"] == "promote", there["decision"]["words"]
    bigquery.Client(project=local_cloud.project).query_and_wait(CORRECTED)

    named = f"staging/{there['plan']['run_key']} to production"
    here = run_whole(stages.enter("production"), make_run(run_id="promote", logical_date=SECOND), taken_from=named)
    assert here["decision"]["verdict"] == "promote", here["decision"]["words"]
    assert "train_request" not in here
    assert here["report"]["model_digest"] == there["report"]["model_digest"]
    assert here["report"]["model_uri"].startswith(f"gs://{stages.places['production'][1]}/jobs/{MODEL}/runs/")
    searched = here["evaluate_request"]["initial"]["prove_unseen"]
    assert {file["span"] for file in searched} == {"2013-11-08", "2013-11-11"}  # out of the window, and corrected
    assert all(file["uri"].startswith(f"gs://{stages.places['staging'][1]}/") for file in searched)
    assert read_object(f"{here['plan']['run_uri']}/taken_from/manifest.json") == read_object(
        f"{there['plan']['run_uri']}/manifest.json"
    )
    assert "in stage staging is taken over and judged here" in here["page"]
    jobs = Cloud().jobs.find_jobs({vertex.RUN_LABEL: here["plan"]["run_key"]})
    assert [job.labels[vertex.TASK_LABEL] for job in jobs] == ["export", "evaluate"]

    version = Cloud().registry.find_by_alias(MODEL, vertex.CHAMPION)
    assert version is not None
    assert version.labels[vertex.PROMOTED_RUN_LABEL] == there["plan"]["run_key"]
    done = here["deployment"]
    assert done["deployed"], done["words"]
    assert done["smoke_test"]["max_abs_error"] < 1e-4
    retire(done["endpoint_name"])
