"""`localcloud seed`: a folder becomes tables and objects, once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from google.cloud import bigquery, storage

from localcloud.command import cli
from tests.support.local_cloud import run_localcloud

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a file of the folder."""

    def write_file(name: str, text: str) -> Path:
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file


def seed(local_cloud, tmp_path: Path) -> list[str]:
    return local_cloud.run("seed", str(tmp_path / "data")).stdout.splitlines()


def test_tables_and_objects_are_there_once(local_cloud, write, tmp_path: Path) -> None:
    """With the types of the schema, or found out; the same files again load nothing, changed ones replace."""
    schema = [
        {"name": "id", "type": "STRING"},
        {"name": "at", "type": "TIMESTAMP"},
        {"name": "rain", "type": "FLOAT64"},
    ]
    write("bigquery/seeded/weather.csv", "id,at,rain\n007,2026-01-01T00:00:00Z,\n008,2026-01-02T00:00:00Z,1.5\n")
    write("bigquery/seeded/weather.schema.json", json.dumps(schema))
    write("bigquery/seeded/found.jsonl", '{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n{"a": 3, "b": null}\n')
    (tmp_path / "data/bigquery/seeded_empty").mkdir()
    write("storage/seeded-bucket/deep/er/one.txt", "one")

    tables = bigquery.Client(project=local_cloud.project)
    objects = storage.Client(project=local_cloud.project)
    assert seed(local_cloud, tmp_path) == [
        f"{local_cloud.project}.seeded.found: 3 rows loaded",
        f"{local_cloud.project}.seeded.weather: 2 rows loaded",
        "gs://seeded-bucket/deep/er/one.txt: 3 bytes loaded",
    ]
    rows = [tuple(row) for row in tables.query("SELECT id, EXTRACT(DAY FROM at), rain FROM seeded.weather ORDER BY 1")]
    assert rows == [("007", 1, None), ("008", 2, 1.5)]
    assert {field.name: field.field_type for field in tables.get_table("seeded.found").schema} == {
        "a": "INTEGER",
        "b": "STRING",
    }
    assert list(tables.list_tables("seeded_empty")) == []
    assert objects.bucket("seeded-bucket").blob("deep/er/one.txt").download_as_bytes() == b"one"

    write("bigquery/seeded/found.jsonl", '{"a": 4, "b": "z"}\n')
    write("storage/seeded-bucket/deep/er/one.txt", "two!")
    assert seed(local_cloud, tmp_path) == [
        f"{local_cloud.project}.seeded.found: 1 rows loaded",
        f"{local_cloud.project}.seeded.weather: 2 rows are there",
        "gs://seeded-bucket/deep/er/one.txt: 4 bytes loaded",
    ]
    assert seed(local_cloud, tmp_path)[2] == "gs://seeded-bucket/deep/er/one.txt: 4 bytes are there"
    assert [tuple(row) for row in tables.query("SELECT a, b FROM seeded.found")] == [(4, "z")]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["README.md"], "README.md: it is neither bigquery/ nor storage/"),
        (["bigquery/loose.csv"], "loose.csv: no folder with the name of a dataset"),
        (["bigquery/d/t.txt"], "t.txt: no file with the name of a table"),
        (["bigquery/d/a-b.csv"], "a-b.csv: no file with the name of a table"),
        (["bigquery/d/t.csv", "bigquery/d/t.jsonl"], "t.csv: another file is of the same table"),
        (["bigquery/d/t.schema.json"], "t.schema.json: a schema without its table"),
        (["storage/loose.txt"], "loose.txt: a file beside the buckets"),
    ],
)
def test_what_is_neither_is_refused_by_name(local_cloud, write, tmp_path, capsys, names, found) -> None:
    """Before anything is loaded."""
    write("storage/never/made.txt", "x")
    for name in names:
        write(name, "x")
    assert cli.main(["seed", "--state", str(local_cloud.state_path), str(tmp_path / "data")]) == 2
    said = capsys.readouterr().err
    assert found in said
    assert "Expected bigquery/<dataset>/<table>.csv" in said
    assert not storage.Client(project=local_cloud.project).bucket("never").exists()


def test_a_file_that_is_not_what_it_says(local_cloud, write, tmp_path: Path) -> None:
    """Is named with what BigQuery says of it; so is a schema that is none."""
    path = write("bigquery/seeded/broken.csv", "a,b\n1\nx,y,z\n")
    schema_path = write("bigquery/seeded/broken.schema.json", '[{"name": "a", "type": "INTEGER"}]')
    command = ("seed", "--state", str(local_cloud.state_path), str(tmp_path / "data"))
    refused = run_localcloud(*command, check=False)
    assert refused.returncode == 2
    assert str(path) in refused.stderr
    schema_path.write_text('{"name": "a"}')
    refused = run_localcloud(*command, check=False)
    assert refused.returncode == 2
    assert str(schema_path) in refused.stderr
