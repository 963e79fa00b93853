"""Nights one after the other on the local cloud: what the checks compare with, and what they leave out."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.cloud import bigquery

from retraining.core.checks import history
from retraining.core.checks.dataset import check_data
from retraining.core.documents import Checks, ExportRequest, Plan, Snapshot, Statistics
from retraining.hooks.cloud import Cloud
from retraining.operators.jobs.requests import request_export
from retraining.operators.record.run_record import Record
from tests.support.airflow_release import AirflowFailException
from tests.support.scenes.data_tasks import DataRun, make_source

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
  schema_version: SCHEMA_VERSION
  checks:
    min_rows: 100
    max_age_hours: 30
    max_volume_change: 0.2
    ranges: {{distance: [0, 400]}}
    severity: {{ranges: quarantine}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: distance, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.6, promote: {{min_examples: 10}}}}
"""
# Thirteen days of 24 parcels; the 12th has a distance in metres.
SOURCE = """
CREATE OR REPLACE TABLE checks_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:30:00+00', INTERVAL i HOUR) AS seen_at,
  CONCAT('carrier ', CAST(MOD(i, 2) AS STRING)) AS carrier,
  IF(i = 270, 270000, MOD(i, 150)) AS distance,
  MOD(DIV(i, 2), 2) AS late
FROM UNNEST(GENERATE_ARRAY(0, 311)) AS i
"""
QUERY = (
    "SELECT id, seen_at, carrier, distance, late FROM checks_source.parcels"
    " WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with the source and the dataset for run tables."""
    return make_source(local_cloud, "checks_source", SOURCE)


@pytest.fixture
def on(client, make_run, include: Path) -> Callable[..., Any]:
    """Run the data tasks of the night of a day of November, to what they left; the message of a run that fails."""
    name = f"checked_{uuid.uuid4().hex[:12]}"

    def run(day: int, *, query: str = QUERY, schema_version: int = 1, run_id: str = "manual__1") -> Any:
        time = datetime(2013, 11, day, 3, tzinfo=UTC)
        made = make_run(dag_id=f"retrain__{name}", run_id=run_id, logical_date=time)
        night = DataRun(include, name, made, SPEC.replace("SCHEMA_VERSION", str(schema_version)))
        night.write(query)
        planned, failed, result = night.plan(), "", None
        night.snapshot()
        try:
            result = night.check_data()
        except AirflowFailException as error:
            failed = str(error)
        cloud = Cloud()
        record = Record(cloud.artifacts, planned["run_uri"])
        return SimpleNamespace(
            cloud=cloud,
            record=record,
            result=result,
            failed=failed,
            checks=record.read_document(Checks),
            statistics=record.read_document(Statistics),
        )

    return run


@pytest.mark.long
def test_nights_are_compared_with_those_whose_data_passed(on) -> None:
    """Volume, categories and columns; a stopped night is no measure; what was compared with can be read again."""
    first = on(20)
    assert (first.result, first.checks.compared_with) == ({"passed": True, "warnings": [], "quarantined": []}, ())
    half = on(21, query=f"{QUERY} AND MOD(distance, 2) = 0")
    assert "50% fewer than in the last run" in half.failed
    assert half.checks.findings[0].compared_with == (first.record.uri(Checks),)
    still_half = on(22, query=f"{QUERY} AND MOD(distance, 2) = 0 AND distance > 0")
    assert "50% fewer than in the last run" in still_half.failed
    assert [item.uri for item in still_half.checks.compared_with] == [
        first.record.uri(kind) for kind in (Checks, Snapshot, Statistics)
    ]
    gone = on(22, query=QUERY.replace("carrier,", "IF(carrier = 'carrier 0', 'carrier 1', carrier) AS carrier,"))
    assert gone.result["quarantined"] == ["2013-11-20"]
    assert [(item.check, item.severity) for item in gone.checks.findings] == [
        ("ranges", "quarantine"),
        ("constant", "warn"),
        ("vanished_category", "warn"),
        ("min_evidence", "warn"),  # twelve of the one day that is left to test on
    ]
    again = history.build_history(
        [(item.uri, gone.cloud.artifacts.read_object(item.uri)) for item in gone.checks.compared_with]
    )
    assert (
        check_data(gone.record.read_document(Plan), gone.record.read_document(Snapshot), gone.statistics, again)
        == gone.checks
    )


def test_a_bad_day_is_left_out_of_statistics_export_and_record(on) -> None:
    """One value in metres on the 20th: the order names the day, and the figures are those of the other nine."""
    night = on(22)
    assert night.result["quarantined"] == ["2013-11-20"]
    assert night.checks.quarantined == night.statistics.quarantined == (date(2013, 11, 20),)
    assert sum(split.rows for split in night.statistics.splits.values()) == 9 * 24
    assert night.statistics.splits["test"].features["distance"].max < 400
    request = request_export(night.cloud, night.record).request
    assert isinstance(request, ExportRequest)
    assert request.quarantined == (date(2013, 11, 20),)
    assert len(request.spans) == 10


def test_another_schema_needs_another_version_in_the_spec(on) -> None:
    """Blocked until the spec says so; a night later the new columns are what is expected."""
    assert on(19).checks.passed
    wider = QUERY.replace("late FROM", "late, 1.5 AS weight FROM")
    blocked = on(20, query=wider)
    assert "added weight (FLOAT). If that is wanted, set data.schema_version to 2" in blocked.failed
    raised = on(20, query=wider, schema_version=2)
    assert raised.checks.findings == ()
    assert raised.checks.volume.data_version == 2
    assert on(21, query=wider, schema_version=2).checks.findings == ()
