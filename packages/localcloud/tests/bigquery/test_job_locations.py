"""Jobs run where their datasets are, and are found there."""

from __future__ import annotations

import io
import uuid

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

TABLES = {"locations_eu": "EU", "locations_tokyo": "asia-northeast1", "locations_any": None}


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `t` in a dataset of each location."""
    made = bigquery.Client(project=local_cloud.project)
    for name, location in TABLES.items():
        dataset = bigquery.Dataset(f"{made.project}.{name}")
        dataset.location = location
        made.create_dataset(dataset, exists_ok=True)
        made.query_and_wait(f"CREATE OR REPLACE TABLE {name}.t AS SELECT 1 AS n")
    return made


@pytest.mark.parametrize(
    ("sql", "location", "expected"),
    [
        ("SELECT n FROM locations_eu.t", None, "EU"),
        ("SELECT n FROM locations_eu.t", "EU", "EU"),
        ("SELECT n FROM locations_eu.t", "eu", "eu"),
        ("SELECT a.n FROM locations_any.t AS a, locations_tokyo.t AS b", None, "asia-northeast1"),
        ("SELECT n FROM locations_any.t", "europe-west4", "europe-west4"),
        ("SELECT n FROM locations_any.t", None, "US"),
        ("SELECT 1", "asia-northeast1", "asia-northeast1"),
        ("CREATE OR REPLACE TABLE locations_eu.made AS SELECT n FROM locations_any.t", None, "EU"),
    ],
)
def test_a_query_runs_where_its_datasets_are(client, sql, location, expected):
    job = client.query(sql, location=location, job_retry=None)
    job.result()
    found = client.get_job(job.job_id, location=location)
    assert (job.location, found.location) == (expected, expected)


@pytest.mark.parametrize(
    ("sql", "location", "said"),
    [
        ("SELECT n FROM locations_eu.t", "US", "Dataset local-project:locations_eu was not found in location US"),
        ("SELECT n FROM locations_eu.t", "europe-west4", "was not found in location europe-west4"),
        ("INSERT locations_tokyo.t (n) VALUES (2)", "EU", "locations_tokyo was not found in location EU"),
        ("SELECT a.n FROM locations_eu.t AS a, locations_tokyo.t AS b", None, "locations_tokyo was not found in"),
        ("CREATE OR REPLACE TABLE locations_eu.no AS SELECT n FROM locations_tokyo.t", None, "was not found in"),
    ],
)
@pytest.mark.parametrize("dry", [False, True])
def test_a_query_does_not_see_what_is_elsewhere(client, sql, location, said, dry):
    config = bigquery.QueryJobConfig(dry_run=dry)
    with pytest.raises(exceptions.NotFound, match=said):
        client.query(sql, location=location, job_config=config, retry=None, job_retry=None).result(retry=None)
    elsewhere = bigquery.Client(project=client.project, location=location)
    if location and not dry:
        with pytest.raises(exceptions.NotFound, match=said):
            elsewhere.query_and_wait(sql, retry=None, job_retry=None)


def test_a_default_dataset_counts(client):
    config = bigquery.QueryJobConfig(default_dataset=f"{client.project}.locations_eu")
    assert client.query("SELECT n FROM t", job_config=config).location == "EU"
    with pytest.raises(exceptions.NotFound):
        client.query("SELECT n FROM t", job_config=config, location="US", retry=None, job_retry=None).result(retry=None)


def test_loads_and_copies_are_placed_too(client):
    config = bigquery.LoadJobConfig(schema=[bigquery.SchemaField("n", "INTEGER")], source_format="CSV")
    table = f"{client.project}.locations_eu.loaded"
    for location in ("EU", None):
        job = client.load_table_from_file(io.BytesIO(b"1\n2\n"), table, location=location, job_config=config)
        job.result()
        assert (job.location, client.get_job(job.job_id).location) == ("EU", "EU")
    with pytest.raises(exceptions.NotFound):
        client.load_table_from_file(io.BytesIO(b"1\n"), table, location="US", job_config=config, num_retries=0).result()
    with pytest.raises(exceptions.NotFound, match="was not found in location"):
        client.copy_table(table, f"{client.project}.locations_tokyo.copied", retry=None).result(retry=None)
    copied = client.copy_table(table, f"{client.project}.locations_eu.copied")
    copied.result()
    assert copied.location == "EU"


def test_a_job_is_found_where_it_runs(client):
    job = client.query(
        "SELECT n FROM locations_eu.t", job_id=f"placed-{uuid.uuid4().hex}", location="EU", job_retry=None
    )
    job.result()
    assert client.get_job(job.job_id, location="EU").job_id == job.job_id
    assert client.get_job(job.job_id).location == "EU"
    for ask in (client.get_job, client.cancel_job):
        with pytest.raises(exceptions.NotFound, match="Not found: Job local-project:US"):
            ask(job.job_id, location="US", retry=None)
    assert client.cancel_job(job.job_id, location="EU", retry=None).job_id == job.job_id


def test_an_id_that_made_no_job_is_free_in_every_place(client):
    job_id = f"again-{uuid.uuid4().hex}"
    refused = "CREATE MODEL locations_any.m OPTIONS (model_type = 'linear_reg') AS SELECT n FROM locations_any.t"
    with pytest.raises(exceptions.MethodNotImplemented):
        client.query(refused, job_id=job_id, location="EU", retry=None, job_retry=None)
    client.query("SELECT 1", job_id=job_id, location="US", job_retry=None).result()
    assert client.get_job(job_id, location="US").location == "US"


def test_a_dataset_stays_where_it_was_made(local_cloud, client):
    """A replacement that says no location is no way round it; one without a location stays everywhere."""
    where = f"https://bigquery.googleapis.com/bigquery/v2/projects/{client.project}/datasets"
    for name, location in (("locations_eu", "EU"), ("locations_any", "US")):
        reference = {"datasetReference": {"projectId": client.project, "datasetId": name}}
        assert local_cloud.http.patch(f"{where}/{name}", json={"location": "asia-east1"}, timeout=30).status_code == 400
        for body in ({**reference, "description": "new"}, {**reference, "location": location}):
            assert local_cloud.http.put(f"{where}/{name}", json=body, timeout=30).status_code == 200
        assert client.get_dataset(name).location == location
    with pytest.raises(exceptions.NotFound, match="was not found in location US"):
        client.query("SELECT n FROM locations_eu.t", location="US", retry=None, job_retry=None).result(retry=None)
    assert client.query("SELECT n FROM locations_any.t", location="europe-west4").location == "europe-west4"
