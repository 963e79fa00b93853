"""A whole walk-forward on the local cloud: three versions of a small model, and a world that changes once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1, bigquery

from retraining.core.documents import Evaluation, Manifest, Plan
from retraining.core.naming import vertex
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.hooks.session import call
from retraining.operators.walk_forward import planning, report
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import read_object, run_walk_forward

DAYS, PER_DAY, CHANGES = 40, 60, 24
SPEC = """
name: walked
description: Will it be late?
schedule: null
data:
  query: walked/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  days: [2013-11-01, 2013-12-10]
  checks: {min_rows: 300}
features:
  - {name: weight, kind: numeric}
  - {name: distance, kind: numeric}
  - {name: carrier, kind: categorical}
label: {name: late, kind: binary}
training: {model: linear, seed: 7}
evaluation: {metric: log_loss, max_value: 0.9, slices: [carrier]}
"""
# Late are heavy parcels, and from one day on light ones: a version of before errs from then on.
SOURCE = f"""
CREATE OR REPLACE TABLE walk_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-01 00:01:00+00', INTERVAL {1440 // PER_DAY} * i MINUTE) AS seen_at,
  MOD(i * 104729, 1000) / 10 AS weight,
  MOD(i * 7919, 3000) AS distance,
  FORMAT('carrier %d', MOD(i, 3)) AS carrier,
  IF((MOD(i * 104729, 1000) > 500) = (DIV(i, {PER_DAY}) < {CHANGES}), 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, {DAYS * PER_DAY - 1})) AS i
"""
QUERY = (
    "SELECT * FROM walk_source.parcels WHERE seen_at >= @window_start AND seen_at < @window_end AND seen_at < @as_of"
)
DATES = ["2013-11-19", "2013-11-26", "2013-12-03"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery with forty days of parcels."""
    return make_source(local_cloud, "walk_source", SOURCE)


@pytest.fixture
def spec(client, include: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The model."""
    for module in (planning, report):
        monkeypatch.setattr(module, "include_path", lambda: include)
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    (include / "sql" / "walked").mkdir(parents=True)
    (include / "sql" / "walked" / "examples.sql").write_text(QUERY)
    path = include / "models" / "walked.yaml"
    path.write_text(SPEC)
    return load_spec(path)


def paid_jobs() -> list[str]:
    """The custom jobs of the model, by what they did."""
    cloud = Cloud()
    place = f"projects/{cloud.settings.project}/locations/{cloud.settings.region}"
    client: aiplatform_v1.JobServiceClient = cloud.jobs._client
    jobs = call(lambda: list(client.list_custom_jobs(parent=place)))
    return sorted(job.labels[vertex.TASK_LABEL] for job in jobs if job.labels.get(vertex.MODEL_LABEL) == "walked")


def test_each_version_is_scored_on_all_days_that_followed(spec, make_run) -> None:
    """Once each; those of before the change err after it, and a second walk-forward pays for nothing."""
    run = make_run(run_id="manual__walk")
    form = {"dry_run": False, "every": 7, "first": DATES[0], "last": DATES[-1], "horizons": [1, 7, 14]}
    found = run_walk_forward(spec, run, **form)
    assert run.xcoms["dates", "return_value"] == DATES
    walked = found["walk_forward"]
    versions = walked["versions"]
    assert [version["as_of"] for version in versions] == DATES
    assert [version.get("missing") for version in versions] == [None] * 3
    assert all(version["usd"] > 0 for version in versions)
    scored = [[day["day"] for day in version["days"]] for version in versions]
    last = "2013-12-10"
    assert [(days[0], days[-1]) for days in scored] == [(day, last) for day in DATES]
    loss = {version["as_of"]: {day["day"]: day["quality"] for day in version["days"]} for version in versions}
    assert loss[DATES[0]]["2013-11-24"] < 0.5 < 0.9 < loss[DATES[0]]["2013-11-25"]
    assert loss[DATES[2]][last] < loss[DATES[0]][last]
    assert "Versions by day" in found["page"]
    assert walked["answer"].startswith("Not judged")
    assert paid_jobs() == ["evaluate"] * 3 + ["export"] * 4 + ["train"] * 3

    folder = f"{run.xcoms['plan', 'return_value']['run_uri']}/versions/{versions[1]['run_key']}"
    manifest = Manifest.parse(read_object(f"{folder}/manifest.json"))
    assert min(file.span for file in manifest.splits["test"].files).isoformat() == DATES[1]
    evaluation = Evaluation.parse(read_object(f"{folder}/evaluation.json"))
    assert (evaluation.reference, evaluation.challenger.slices) == ((), ())
    trained = Plan.parse(read_object(f"{run.xcoms['plan_version_1', 'return_value']['run_uri']}/plan.json"))
    assert trained.window.end.isoformat() == "2013-11-25", "the labels of the day before its date are not known yet"
    assert not trained.deploy
    assert Cloud().registry.list_versions("walked") == []

    again = run_walk_forward(spec, make_run(run_id="manual__again"), **form)
    assert len(paid_jobs()) == 10
    assert [version["days"] for version in again["walk_forward"]["versions"]] == [v["days"] for v in versions]
    assert [version["usd"] for version in again["walk_forward"]["versions"]] == [None] * 3
