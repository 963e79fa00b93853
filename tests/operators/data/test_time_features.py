"""Times as features, on the local cloud's BigQuery: what statistics say of them, and columns that are none."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from retraining.core.errors import SpecError
from retraining.core.spec.files import load_spec
from retraining.hooks import check_queries
from retraining.hooks.cloud import Cloud
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun, make_source

SPEC = """
name: {name}
description: Is it in an odd hundred?
data: {{query: "{name}/examples.sql", split: hash, key: id, test_percent: 20, checks: {{min_rows: 900}}}}
features:
  - {{name: sent_at, kind: time, parts: [hour, weekday, month, days]}}
  - {{name: day, kind: time, parts: DAY}}
  - {{name: clock, kind: time, parts: [hour]}}
label: {{name: odd, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.6, promote: {{min_examples: 10}}}}
"""
SOURCE = """
CREATE OR REPLACE TABLE timed.rows AS
SELECT
  CONCAT('key-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2020-02-29 12:00:00.000001 UTC', INTERVAL i DAY) AS sent_at,
  IF(MOD(i, 10) = 0, NULL, DATE_ADD(DATE '1969-12-01', INTERVAL MOD(i, 62) DAY)) AS day,
  DATETIME '2021-01-01 06:00:00' AS clock,
  CAST(i AS STRING) AS text,
  MOD(DIV(i, 100), 2) AS odd
FROM UNNEST(GENERATE_ARRAY(0, 999)) AS i
"""
QUERY = "SELECT id, sent_at, day, clock, odd FROM timed.rows"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a thousand rows."""
    return make_source(local_cloud, "timed", SOURCE)


@pytest.fixture
def make_data_run(client, make_run, include: Path) -> Any:
    """Makes runs of one model of this test's own."""
    name = f"timed_{uuid.uuid4().hex[:12]}"

    def make(query: str = QUERY, day: str = "[weekday, days]") -> DataRun:
        run = DataRun(include, name, make_run(dag_id=f"retrain__{name}"), SPEC.replace("DAY", day))
        run.write(query)
        return run

    return make


def test_statistics_have_times_in_days(make_data_run, local_cloud) -> None:
    """Of each type, also before 1970, with what is missing; one time in all rows is a finding."""
    run = make_data_run()
    planned = run.plan()
    run.snapshot()
    warnings = run.check_data()["warnings"]
    assert any("clock is one time in every training example" in warning for warning in warnings)
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    path = f"{planned['run_uri']}/statistics.json".removeprefix(f"gs://{bucket.name}/")
    splits = json.loads(bucket.blob(path).download_as_bytes())["splits"]
    rows = {name: split["rows"] for name, split in splits.items()}
    found = {name: [split["features"][name] for split in splits.values()] for name in ("sent_at", "day", "clock")}
    assert {each["kind"] for many in found.values() for each in many} == {"time"}
    assert sum(rows.values()) == 1000
    assert sum(each["nulls"] for each in found["day"]) == 100
    assert (min(each["min"] for each in found["day"]), max(each["max"] for each in found["day"])) == (-31, 30)
    first = 18_321.5 + 1 / 86_400_000_000  # 2020-02-29
    assert min(each["min"] for each in found["sent_at"]) == pytest.approx(first, abs=1e-9)
    assert max(each["max"] for each in found["sent_at"]) == pytest.approx(first + 999, abs=1e-9)
    mean = sum(each["mean"] * count for each, count in zip(found["sent_at"], rows.values(), strict=True)) / 1000
    assert mean == pytest.approx(first + 499.5, abs=1e-6)
    assert splits["train"]["features"]["sent_at"]["stddev"] == pytest.approx(1000 / 12**0.5, rel=0.05)
    assert {(each["min"], each["stddev"]) for each in found["clock"]} == {(18_628.25, 0)}


@pytest.mark.parametrize(
    ("query", "day", "found", "way_out"),
    [
        pytest.param(QUERY, "[hour]", "'day': DATE", "a time feature with the part hour", id="hour-of-a-date"),
        pytest.param(
            QUERY.replace("sent_at,", "text AS sent_at,"), "[days]", "'sent_at': STRING", "a time feature", id="text"
        ),
        pytest.param(
            QUERY.replace("clock", "[clock] AS clock"), "[days]", "'clock': DATETIME REPEATED", "unnest it", id="array"
        ),
    ],
)
def test_what_has_no_such_part_is_refused_by_make_check_models(
    make_data_run, include, query, day, found, way_out
) -> None:
    """And by a run, before anything is paid: `check_data` has the same findings."""
    run = make_data_run(query, day)
    spec = load_spec(include / "models" / f"{run.name}.yaml")
    with refuses(SpecError, found=found, way_out=way_out):
        check_queries.check(spec, include, Cloud().session)
