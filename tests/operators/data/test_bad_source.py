"""What a bad source gets from the data tasks, on the local cloud's BigQuery and storage: named, and nothing half done.

The tasks are the real ones with the real hooks; only the scheduler is missing.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from google.cloud import bigquery, storage

from retraining.core.errors import JobError
from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
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
  checks: {{min_rows: 100}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: distance, kind: numeric}}
label: {{name: late, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.5}}
"""
SOURCE = """
CREATE OR REPLACE TABLE bad_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:30:00+00', INTERVAL i HOUR) AS seen_at,
  CONCAT('carrier ', CAST(MOD(i, 3) AS STRING)) AS carrier,
  i AS distance,
  MOD(i, 2) AS late
FROM UNNEST(GENERATE_ARRAY(0, 299)) AS i
"""
QUERY = (
    "SELECT id, seen_at, carrier, distance, late FROM bad_source.parcels"
    " WHERE seen_at >= @window_start AND seen_at < LEAST(@window_end, @as_of)"
)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a source table of ten days and the dataset for run tables."""
    return make_source(local_cloud, "bad_source", SOURCE)


@pytest.fixture
def night(client, make_run, include: Path) -> DataRun:
    """A run of a model of this test's own."""
    name = f"bad_{uuid.uuid4().hex[:12]}"
    made = DataRun(include, name, make_run(dag_id=f"retrain__{name}"), SPEC)
    made.write(QUERY)
    return made


@pytest.fixture
def documents(local_cloud) -> Callable[[str], list[str]]:
    """Names of the documents in a run's folder, without the records of failures."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)

    def names(run_uri: str) -> list[str]:
        prefix = run_uri.removeprefix(f"gs://{bucket.name}/").rstrip("/") + "/"
        found = (blob.name.removeprefix(prefix) for blob in bucket.list_blobs(prefix=prefix))
        return sorted(name for name in found if not name.startswith("failures/"))

    return names


def run_tables(client: bigquery.Client, dataset: str, name: str) -> list[str]:
    return [table.table_id for table in client.list_tables(dataset) if table.table_id.startswith(name)]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        pytest.param(QUERY.replace("bad_source.parcels", "bad_source.gone"), "bad_source.gone", id="missing-table"),
        pytest.param(QUERY.replace("distance", "distanze"), "distanze", id="missing-column-in-the-source"),
        pytest.param(QUERY.replace("FROM", "FORM"), "yntax", id="wrong-sql"),
    ],
)
def test_a_query_that_cannot_run_is_found_before_anything_is_made(
    night, client, local_cloud, documents, query, words
) -> None:
    """A dry run refuses it: the file is named, no table is made, nothing is recorded but the plan."""
    night.write(query)
    planned = night.plan()
    with pytest.raises(AirflowFailException, match=rf"(?s)examples\.sql: BigQuery refuses .*{words}.*Correct the SQL"):
        night.snapshot()
    assert documents(planned["run_uri"]) == ["plan.json"]
    assert run_tables(client, local_cloud.dataset, planned["model"]) == []


@pytest.mark.parametrize(
    ("left_out", "role"),
    [("distance, ", "feature 'distance'"), (", late", "the label"), ("id, ", "the key")],
    ids=["feature", "label", "key"],
)
def test_a_column_that_the_query_does_not_give_is_named(night, documents, left_out, role) -> None:
    """With what it gives instead; nothing is recorded."""
    night.write(QUERY.replace(left_out, "", 1))
    planned = night.plan()
    with pytest.raises(AirflowFailException) as caught:
        night.snapshot()
    assert "examples.sql" in str(caught.value)
    if left_out != "id, ":  # without its key the run table cannot be made at all
        assert role in str(caught.value)
        assert "carrier" in str(caught.value)
    assert documents(planned["run_uri"]) == ["plan.json"]


@pytest.mark.parametrize("event", ["bigquery.jobs.insert", "Query.Run *CREATE*"], ids=["refused", "accepted, then not"])
def test_no_permission_is_not_called_wrong_sql(night, add_fault, documents, event) -> None:
    """Trying again cannot help; the message says who must be given what."""
    planned = night.plan()
    add_fault(event, "error", count=0, code="PERMISSION_DENIED", message="Access Denied: bigquery.tables.getData")
    with refuses(AirflowFailException, found="bigquery.tables.getData", way_out="connection's account"):
        night.snapshot()
    assert documents(planned["run_uri"]) == ["plan.json"]


@pytest.mark.parametrize("event", ["bigquery.jobs.insert", "Query.Run *CREATE*"], ids=["refused", "accepted, then not"])
def test_a_quota_is_worth_another_try(night, add_fault, documents, event) -> None:
    """The task may be retried, by another job; then all is as if nothing had happened."""
    planned = night.plan()
    add_fault(event, "error", code="RESOURCE_EXHAUSTED", message="Quota exceeded: bytes per day")
    with refuses(JobError, found="Quota exceeded", way_out="quota"):
        night.snapshot(max_tries=1)
    assert documents(planned["run_uri"]) == ["plan.json"]
    assert night.snapshot(try_number=2, max_tries=1)["rows"] == 240


def test_bigquery_that_stumbles_is_not_noticed(night, add_fault) -> None:
    """503 twice, then an answer that got lost: the job of that call is found by its id."""
    night.plan()
    add_fault("bigquery.jobs.insert", "error", count=2)
    add_fault("bigquery.jobs.insert", "lost_response")
    assert night.snapshot()["spans"] == 10


def test_a_query_that_failed_by_itself_is_run_again_by_the_next_try(night, add_fault) -> None:
    """The failed job keeps its id; the task's next try meets it there and runs another."""
    night.plan()
    add_fault("Query.Run *BIT_XOR*", "error", code="INTERNAL", message="An internal error occurred")
    with refuses(JobError, where="fingerprint", found="internalError", way_out="next try"):
        night.snapshot(max_tries=1)
    assert night.snapshot(try_number=2, max_tries=1)["spans"] == 10


def test_storage_that_stumbles_is_not_noticed(night, add_fault, documents) -> None:
    """503 on the write of the snapshot, an answer that got lost: the document is there once."""
    planned = night.plan()
    add_fault("storage.objects.insert gs://*/snapshot.json", "error", count=2)
    add_fault("storage.objects.insert gs://*/snapshot.json", "lost_response")
    night.snapshot()
    assert documents(planned["run_uri"]) == ["plan.json", "snapshot.json"]


def test_storage_that_refuses_is_named_and_the_next_try_goes_on(night, add_fault, documents) -> None:
    """No document is half written; the retry finds the run table and writes what is missing."""
    planned = night.plan()
    add_fault("storage.objects.insert gs://*/snapshot.json", "error", code="PERMISSION_DENIED", message="no create")
    with refuses(AirflowFailException, found="no create", way_out="connection's account"):
        night.snapshot()
    assert documents(planned["run_uri"]) == ["plan.json"]
    assert night.snapshot()["rows"] == 240


def test_somebody_elses_document_counts(night, local_cloud, documents) -> None:
    """412: another try wrote the plan first; what is stored is what both work with."""
    first = night.plan()
    assert night.plan() == first
    assert documents(first["run_uri"]) == ["plan.json"]


@pytest.mark.parametrize(
    ("select", "check"),
    [
        pytest.param("IF(distance = 50, NULL, id) AS id", "1 examples have no key", id="null-key"),
        pytest.param("IF(distance = 51, 'parcel-50', id) AS id", "1 rows repeat a key", id="repeated-key"),
    ],
)
def test_keys_that_are_none(night, documents, select, check) -> None:
    """Findings with the count; the run ends before anything is paid for."""
    night.write(QUERY.replace("SELECT id", f"SELECT {select}"))
    planned = night.plan()
    night.snapshot()
    with pytest.raises(AirflowFailException, match=rf"checks\.json: (1 finding blocks|\d findings block): .*{check}"):
        night.check_data()
    written = ["checks.json", "plan.json", "schema.pbtxt", "snapshot.json", "statistics.json", "statistics.pbtxt"]
    assert documents(planned["run_uri"]) == written


def test_events_of_the_future_are_left_out(night, client) -> None:
    """A device whose clock is years ahead: its rows are in no span, also when the query does not look at the time."""
    client.query_and_wait(
        "CREATE OR REPLACE TABLE bad_source.skewed AS SELECT * FROM bad_source.parcels UNION ALL"
        " SELECT CONCAT('skewed-', id), TIMESTAMP_ADD(seen_at, INTERVAL 9000 DAY), carrier, distance, late"
        " FROM bad_source.parcels"
    )
    night.write(
        "SELECT id, seen_at, carrier, distance, late FROM bad_source.skewed"
        " WHERE seen_at >= LEAST(@window_start, @window_end, @as_of)"
    )
    planned = night.plan()
    taken = night.snapshot()
    assert (taken["spans"], taken["rows"]) == (10, 240)
    (newest,) = client.query_and_wait(f"SELECT MAX(seen_at) AS newest FROM `{taken['table']}`")
    assert newest.newest.isoformat() < planned["as_of"]


def test_a_document_that_was_tampered_with_is_named(night, local_cloud) -> None:
    """The contract is checked on reading: the field and the way out."""
    planned = night.plan()
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    name = planned["plan_uri"].removeprefix(f"gs://{bucket.name}/")
    document = json.loads(bucket.blob(name).download_as_bytes())
    document["window"]["start"] = "tomorrow"
    bucket.blob(name).upload_from_string(json.dumps(document))
    with pytest.raises(AirflowFailException, match=r"plan\.json: .*window\.start"):
        night.snapshot()
