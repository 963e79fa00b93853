"""What the hooks' messages advise, done as they say: then Google answers.

Elsewhere: a failed statement's next try and a quota (tests/operators/data/test_bad_source.py), an answer that is
too large (test_warehouse.py), an alias or an endpoint that somebody else changed (test_deploy.py and
test_deploy_deaths.py in tests/operators/deployment). Not followed: more bytes than RETRAINING_MAX_BYTES_BILLED, for the
local BigQuery counts none; test_warehouse.py holds that the setting is sent.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from retraining.core.data.sql import MAX_JOBS_PER_ID, Query
from retraining.core.errors import RetrainingError
from retraining.hooks import artifacts, session, warehouse

CONNECTION = "AIRFLOW_CONN_GOOGLE_CLOUD_DEFAULT"
ACCOUNT = "local-cloud@local-project.iam.gserviceaccount.com"
GRANT = "Give the connection's account the role with the permission that the message names"
ONE = Query(sql="SELECT 1 AS n")


def refusal(do: Callable[[], object]) -> str:
    """What is said, as at an operator's edge."""
    with pytest.raises(Exception) as refused:  # noqa: PT011 - one of ours, or of Google's
        do()
    said = refused.value if isinstance(refused.value, RetrainingError) else session.explain(refused.value)
    assert said, refused.value
    return str(said)


def hooks(**changes: str) -> Any:
    """All hooks, with settings of their own."""
    from retraining.hooks.cloud import Cloud

    return Cloud({**os.environ, **changes})


@pytest.fixture
def grant(local_cloud, cloud) -> Iterator[Callable[..., None]]:
    """Let the connection's account have these roles alone, until the test ends."""
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/iam"

    def put(*roles: str) -> None:
        resource = f"projects/{local_cloud.project}"
        bindings = [{"principal": ACCOUNT, "role": role, "resource": resource} for role in roles]
        assert local_cloud.http.post(url, json={"bindings": bindings}, timeout=30).status_code == 200

    yield put
    assert local_cloud.http.delete(url, timeout=30).status_code == 200


def test_a_connection_is_created_and_corrected(cloud, monkeypatch) -> None:
    """One that is not there, one whose key is none, one whose key is of no account any more."""
    whole = json.loads(os.environ[CONNECTION])
    settings = dataclasses.replace(cloud.settings, gcp_conn_id="another")
    assert "'another': no usable credentials" in refusal(lambda: session.connect(settings))
    assert "Create or correct it" in refusal(lambda: session.connect(settings))
    monkeypatch.setenv("AIRFLOW_CONN_ANOTHER", json.dumps({**whole, "extra": {"keyfile_dict": '{"a": 1}'}}))
    assert "Create or correct it" in refusal(lambda: session.connect(settings))
    key = json.loads(Path(whole["extra"]["key_path"]).read_text()) | {"client_email": f"gone-{ACCOUNT}"}
    monkeypatch.setenv("AIRFLOW_CONN_ANOTHER", json.dumps({**whole, "extra": {"keyfile_dict": json.dumps(key)}}))
    gone = warehouse.Warehouse(session.connect(settings))
    assert "Look at the Airflow connection's key or account" in refusal(lambda: gone.dry_run(ONE, "test"))
    monkeypatch.setenv("AIRFLOW_CONN_ANOTHER", json.dumps(whole))
    assert warehouse.Warehouse(session.connect(settings)).dry_run(ONE, "test").schema


def test_a_right_is_granted(cloud, grant, folder, unique) -> None:
    """With the role that has the permission of the message."""
    grant()
    said = refusal(lambda: cloud.artifacts.read_object(f"{folder}/x"))
    assert "storage.objects.get" in said
    assert GRANT in said
    said = refusal(lambda: cloud.warehouse.run_query(ONE, unique, "test"))
    assert "bigquery.jobs.create" in said
    assert GRANT in said
    grant("roles/storage.objectUser", "roles/bigquery.jobUser")
    assert cloud.artifacts.read_object(f"{folder}/x") is None
    assert cloud.warehouse.run_query(ONE, unique, "test").rows == [{"n": 1}]


def test_the_project_is_corrected(cloud, unique) -> None:
    """Google does not tell a foreign project from one that is not there."""
    said = refusal(lambda: hooks(RETRAINING_PROJECT="another-project").warehouse.run_query(ONE, unique, "test"))
    assert "RETRAINING_PROJECT" in said
    assert cloud.warehouse.run_query(ONE, unique, "test").rows


def test_what_is_missing_is_created_or_named_right(cloud, unique) -> None:
    """A bucket, by either hook; corrected the setting names the one that is there."""
    other = hooks(RETRAINING_BUCKET=unique)
    uri = f"gs://{unique}/x"
    assert "Create it or correct that" in refusal(lambda: other.artifacts.read_object(uri))
    said = refusal(lambda: list(other.objects.walk(f"gs://{unique}/")))
    assert (
        "Create it, or correct RETRAINING_PROJECT, RETRAINING_REGION, RETRAINING_BUCKET or RETRAINING_DATASET" in said
    )
    assert cloud.artifacts.read_object(f"gs://{cloud.settings.bucket}/{unique}") is None
    storage.Client().create_bucket(unique)
    assert other.artifacts.read_object(uri) is None
    assert list(other.objects.walk(f"gs://{unique}/")) == []


def test_what_the_service_names_is_corrected(cloud, unique) -> None:
    """A machine that does not exist."""
    container = {"image_uri": cloud.settings.trainer_image, "command": ["python", "-c", "pass"]}

    def create(machine: str) -> Any:
        pool = {"machine_spec": {"machine_type": machine}, "replica_count": 1, "container_spec": container}
        return cloud.jobs.create({"display_name": unique, "job_spec": {"worker_pool_specs": [pool]}, "labels": {}})

    said = refusal(lambda: create("n1-standart-4"))
    assert "n1-standart-4" in said
    assert "Correct what the message names and clear the task" in said
    assert create("n1-standard-4").name


def test_a_statement_or_its_table_is_corrected(cloud, unique) -> None:
    """Clearing gives the statement a new id: the failed job keeps its own."""
    settings = cloud.settings
    table = f"{settings.project}.{settings.dataset}.{unique}"
    read = Query(sql=f"SELECT n FROM `{table}`")
    assert "Correct the SQL or the table it names" in refusal(
        lambda: cloud.warehouse.run_query(Query(sql="SELECT nothing FROM UNNEST([1]) AS n"), f"{unique}-a", "test")
    )
    assert "create what is missing and clear the task" in refusal(
        lambda: cloud.warehouse.run_query(read, f"{unique}-b", "test")
    )
    cloud.warehouse.run_query(Query(sql=f"CREATE TABLE `{table}` AS SELECT 1 AS n"), f"{unique}-c", "test")
    assert cloud.warehouse.run_query(read, f"{unique}-cleared", "test").rows == [{"n": 1}]


def test_the_dataset_of_run_tables_is_created(cloud, unique, add_fault) -> None:
    """The SQL that makes them is right; what is missing is the setting's. The fault has BigQuery's own words."""
    words = f"Not found: Dataset {cloud.settings.project}:{unique} was not found in location {cloud.settings.region}"
    add_fault("bigquery.jobs.insert", "error", code="NOT_FOUND", message=words)
    make = Query(sql=f"CREATE TABLE `{cloud.settings.project}.{unique}.run` AS SELECT 1 AS n")
    said = refusal(lambda: cloud.warehouse.run_query(make, f"{unique}-a", "examples.sql"))
    assert "Correct the SQL, RETRAINING_DATASET or RETRAINING_REGION, and clear plan and what follows it" in said
    assert "create what is missing and clear the task" in said
    bigquery.Client(project=cloud.settings.project).create_dataset(unique)
    cloud.warehouse.run_query(make, f"{unique}-cleared", "examples.sql")


def test_a_statement_that_only_fails_is_cleared(cloud, unique, add_fault) -> None:
    """Its next tries meet the jobs of the earlier ones; a cleared task has an id of its own."""
    fault = f"Query.Run *{unique}*"
    query = Query(sql=f"SELECT '{unique}' AS name")
    add_fault(fault, "error", count=MAX_JOBS_PER_ID, code="INTERNAL")
    for _ in range(MAX_JOBS_PER_ID):
        assert "next try runs another" in refusal(lambda: cloud.warehouse.run_query(query, unique, "test"))
    said = refusal(lambda: cloud.warehouse.run_query(query, unique, "test"))
    assert f"Look at job {unique}, clear the task" in said
    assert cloud.warehouse.run_query(query, f"{unique}-cleared", "test").rows == [{"name": unique}]


def test_a_document_that_is_too_large_is_deleted_and_written_again(cloud, folder, monkeypatch) -> None:
    """By the task that should have written it."""
    uri = f"{folder}/a.json"
    cloud.artifacts.write_once(uri, b"0123456789")
    monkeypatch.setattr(artifacts, "MAX_DOCUMENT_BYTES", 9)
    said = refusal(lambda: cloud.artifacts.read_object(uri))
    assert "Look who wrote it, delete it, and clear the task that should have written it" in said
    storage.Blob.from_uri(uri, storage.Client()).delete()
    assert cloud.artifacts.write_once(uri, b"{}") == cloud.artifacts.read_object(uri) == b"{}"
