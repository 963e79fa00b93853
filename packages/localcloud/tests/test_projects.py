"""Projects: by id or number, one or several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from google.api_core import exceptions
from google.cloud import bigquery, bigquery_storage_v1, storage
from google.cloud.bigquery_storage_v1 import types

from localcloud.projects import Projects

NUMBER = "123456789012"


def test_numbers_and_ids(tmp_path: Path):
    """Numbers follow the order of the projects; names keep everything else."""
    projects = Projects(["one", "two"], tmp_path / "owners.json")
    assert [projects.find_id(name) for name in ("one", NUMBER, "123456789013", "three")] == ["one", "one", "two", None]
    assert (
        projects.with_ids(f"projects/{NUMBER}/locations/r/models/{NUMBER}")
        == f"projects/one/locations/r/models/{NUMBER}"
    )
    assert projects.with_ids("projects/7/logs/x") == "projects/7/logs/x"
    projects.own("b", "123456789013")
    again = Projects(["one", "two"], tmp_path / "owners.json")
    assert (again.owner("b"), again.owner("other")) == ("two", "one")


def test_a_number_stands_for_the_project(local_cloud):
    """In BigQuery's REST and Storage Read APIs."""
    client = bigquery.Client(project=NUMBER)
    client.create_dataset("numbered", exists_ok=True)
    bigquery.Client(project=local_cloud.project).query_and_wait("CREATE OR REPLACE TABLE numbered.t AS SELECT 7 AS n")
    assert [row.n for row in client.query("SELECT n FROM numbered.t").result()] == [7]
    reader = bigquery_storage_v1.BigQueryReadClient()
    table = types.ReadSession(table=f"projects/{NUMBER}/datasets/numbered/tables/t", data_format=types.DataFormat.ARROW)
    session = reader.create_read_session(parent=f"projects/{NUMBER}", read_session=table, max_stream_count=1)
    assert session.estimated_row_count == 1


def test_a_further_project(localcloud_commands, tmp_path, monkeypatch):
    """It has buckets and datasets of its own, and is remembered; nobody else's is."""
    state_path = tmp_path / "state"
    localcloud_commands.start_ready(state_path, "--project", "second")
    assert json.loads((state_path / "state.json").read_bytes())["other_projects"] == ["second"]
    env = json.loads(localcloud_commands.run("env", "--json", "--state", str(state_path)).stdout)
    for name, value in env.items():
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    first, second = (storage.Client(project=project) for project in ("local-project", "second"))
    second.create_bucket("of-the-second")
    assert second.get_bucket("of-the-second").project_number == int(NUMBER) + 1
    assert [bucket.name for bucket in second.list_buckets()] == ["of-the-second"]
    assert "of-the-second" not in {bucket.name for bucket in first.list_buckets()}
    client = bigquery.Client(project="second")
    client.create_dataset("d", exists_ok=True)
    client.query_and_wait("CREATE TABLE second.d.t AS SELECT 1 AS n")
    assert [row.n for row in client.query_and_wait("SELECT n FROM d.t")] == [1]
    with pytest.raises(exceptions.NotFound):
        bigquery.Client(project="local-project").get_table("local-project.d.t")
    with pytest.raises(exceptions.Forbidden):
        bigquery.Client(project="third").create_dataset("d")
    hold_results_apart(bigquery.Client(project="local-project"), client)


def hold_results_apart(*clients: bigquery.Client) -> None:
    """A job's id is that of one project: its rows, and those of a script's statements, are not another's."""
    for number, client in enumerate(clients):
        script = f"SELECT {number} AS n; SELECT {number + 10} AS n"
        client.query(script, job_id="of-both", job_retry=None).result()
        config = bigquery.QueryJobConfig(use_query_cache=False)
        client.query(f"SELECT {number} AS n{number}", job_id="one-of-both", job_config=config, job_retry=None).result()
    for number, client in enumerate(clients):
        found = [[row.n for row in child.result()] for child in client.list_jobs(parent_job="of-both")]
        assert sorted(found) == [[number], [number + 10]]
        job = client.get_job("one-of-both")
        assert [dict(row) for row in job.result()] == [{f"n{number}": number}]
        assert [dict(row) for row in client.list_rows(client.get_table(job.destination))] == [{f"n{number}": number}]
