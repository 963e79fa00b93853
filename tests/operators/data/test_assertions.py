"""A model's own checks in SQL, on the local cloud's BigQuery: named, counted, priced; a block ends the run."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from tests.support.airflow_release import AirflowFailException
from tests.support.scenes.data_tasks import DataRun, make_source

SPEC = """
name: {name}
description: Is it late?
data:
  query: {name}/examples.sql
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  checks: {{min_rows: 50, severity: {{label_rate: quarantine}}, label_rate: [0.1, 0.9]}}
  assertions:
    - {{name: no_heavy, query: {name}/no_heavy.sql, severity: ASKED}}
    - {{name: every_carrier, query: {name}/every_carrier.sql, severity: warn}}
features: [{{name: carrier, kind: categorical}}, {{name: weight, kind: numeric}}]
label: {{name: late, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.6, promote: {{min_examples: 10}}}}
"""
# Ten days of 24 rows; three are heavy, one of them on the third day, of which every label is 1.
SOURCE = """
CREATE OR REPLACE TABLE asserted.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:30:00+00', INTERVAL i HOUR) AS seen_at,
  CONCAT('carrier ', CAST(MOD(i, 3) AS STRING)) AS carrier,
  IF(i IN (7, 50, 200), 5000.5, CAST(i AS FLOAT64)) AS weight,
  IF(DIV(i, 24) = 2, 1, MOD(i, 2)) AS late
FROM UNNEST(GENERATE_ARRAY(0, 239)) AS i
"""
QUERY = (
    "SELECT id, seen_at, carrier, weight, late FROM asserted.parcels"
    " WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
)
HEAVY = "-- None is that heavy.\nSELECT id, weight FROM examples WHERE weight > 1000;\n"
CARRIERS = """
SELECT known.carrier FROM UNNEST(['carrier 0', 'carrier 9']) AS known_name
INNER JOIN (SELECT 'carrier 9' AS carrier) AS known ON known.carrier = known_name
WHERE known_name NOT IN (SELECT carrier FROM asserted.parcels WHERE seen_at >= @window_start)
"""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with the source."""
    return make_source(local_cloud, "asserted", SOURCE)


@pytest.fixture
def make_night(client, make_run, include: Path) -> Callable[..., DataRun]:
    """Makes a run of a model of this test's own."""
    name = f"asserted_{uuid.uuid4().hex[:12]}"

    def make(severity: str = "block", heavy: str = HEAVY, carriers: str = CARRIERS) -> DataRun:
        night = DataRun(include, name, make_run(dag_id=f"retrain__{name}"), SPEC.replace("ASKED", severity))
        night.write(QUERY, no_heavy=heavy, every_carrier=carriers)
        return night

    return make


@pytest.fixture
def stored(local_cloud) -> Callable[[str, str], dict[str, Any]]:
    """Reads a document of a run."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)

    def read(run_uri: str, kind: str) -> dict[str, Any]:
        path = f"{run_uri}/{kind}.json".removeprefix(f"gs://{bucket.name}/")
        document: dict[str, Any] = json.loads(bucket.blob(path).download_as_bytes())
        return document

    return read


def test_a_row_of_a_check_that_blocks_ends_the_run_before_training(make_night, stored, capsys) -> None:
    night = make_night()
    planned, log = night.plan(), capsys.readouterr().out
    plan = stored(planned["run_uri"], "plan")
    assert plan["assertions"]["no_heavy"]["sha256"] == hashlib.sha256(HEAVY.encode()).hexdigest()
    assert f"assertion no_heavy (block) of {night.name}/no_heavy.sql, SHA-256 " in log
    assert f"assertion every_carrier, {night.name}/every_carrier.sql (warn): about 0.0 MB read, 0.0" in log
    night.snapshot()
    with pytest.raises(AirflowFailException, match="no_heavy finds 2 rows, id parcel-200, parcel-7: correct the"):
        night.check_data()
    checks = stored(planned["run_uri"], "checks")
    assert not checks["passed"]
    assert checks["quarantined"] == ["2013-11-11"]  # whose heavy parcel does not count
    assert "5000" not in json.dumps(checks)
    heavy, carriers = checks["assertions"]
    assert (heavy["rows"], heavy["keys"]) == (2, ["parcel-200", "parcel-7"])
    assert heavy["sha256"] == plan["assertions"]["no_heavy"]["sha256"]
    assert heavy["bytes_processed"] > 0
    assert (carriers["rows"], carriers["keys"], carriers["not_asked"]) == (1, [], None)


def test_a_warning_is_a_finding_that_the_run_goes_on_with(make_night, stored) -> None:
    night = make_night("warn", "SELECT id FROM examples WHERE FALSE")
    planned = night.plan()
    night.snapshot()
    answer = night.check_data()
    assert answer["passed"]
    expected = f"every_carrier finds 1 rows: correct the source, or the query {night.name}/every_carrier.sql"
    assert expected in answer["warnings"]
    checks = stored(planned["run_uri"], "checks")
    assert [item["rows"] for item in checks["assertions"]] == [0, 1]
    finding = next(item for item in checks["findings"] if item["check"] == "assertions.every_carrier")
    assert (finding["severity"], finding["found"]) == ("warn", "1 rows")


def test_a_warning_that_bigquery_refuses_ends_no_run_and_is_not_silent(make_night, stored, capsys) -> None:
    night = make_night("warn", carriers="SELECT 1 AS one FROM asserted.nothing")
    planned = night.plan()
    assert "it will be a warning: assertion every_carrier" in capsys.readouterr().out
    night.snapshot()
    assert any("every_carrier could not be asked" in warning for warning in night.check_data()["warnings"])
    assert stored(planned["run_uri"], "checks")["assertions"][1]["rows"] is None


def test_a_check_that_blocks_and_that_bigquery_refuses_ends_the_plan(make_night) -> None:
    night = make_night("block", "SELECT id FROM examples WHERE wieght > 1")
    with pytest.raises(AirflowFailException, match=r"(?s)assertion no_heavy, .*no_heavy\.sql.*wieght"):
        night.plan()
