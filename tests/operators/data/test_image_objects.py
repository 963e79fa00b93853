"""Images as objects, on the local cloud's BigQuery and storage: what lies at each address is part of its day."""

from __future__ import annotations

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from google.cloud import bigquery, storage

from retraining.core.errors import SpecError
from retraining.core.spec.files import load_spec
from retraining.hooks import check_queries
from retraining.hooks.cloud import Cloud
from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun, make_source

SPEC = """
name: {name}
description: Is it a cat?
data:
  query: {name}/examples.sql
  key: photo_id
  event_time: taken_at
  window_days: 10
  test_days: 2
  checks: {{min_rows: 50, CHECKS}}
features:
  - {{name: photo, kind: image, height: 8, width: 8, objects: FOLDER}}
label: {{name: cat, kind: binary}}
training: {{model: cnn}}
evaluation: {{metric: auc, min_value: 0.5}}
"""
QUERY = "SELECT * FROM {dataset}.photos WHERE taken_at >= LEAST(@window_start, @window_end, @as_of)"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with a dataset for the addresses."""
    return make_source(local_cloud, "photo_source")


@pytest.fixture
def read(local_cloud) -> Any:
    """Reads a JSON object of the bucket."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    return lambda uri: json.loads(bucket.blob(uri.removeprefix(f"gs://{bucket.name}/")).download_as_bytes())


class Photos:
    """A user's bucket of photos, and the table that has their addresses, 12 a day."""

    def __init__(self, client: bigquery.Client, project: str) -> None:
        self.bucket = storage.Client(project=project).create_bucket(
            f"photos-{uuid.uuid4().hex[:12]}", location="us-central1"
        )
        self.dataset = f"photos_{uuid.uuid4().hex[:12]}"
        self._client = client
        client.create_dataset(self.dataset)
        self.rows = [
            {
                "photo_id": f"p{i:03}",
                "taken_at": f"2013-11-{9 + i // 12:02d} {i % 12:02d}:30:00 UTC",
                "photo": self.uri(f"cats/{i}.png"),
                "cat": i % 2,
            }
            for i in range(120)
        ]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.put, [f"cats/{i}.png" for i in range(120)]))

    def uri(self, name: str) -> str:
        """Address of an object."""
        return f"gs://{self.bucket.name}/{name}"

    def put(self, name: str, data: bytes = PNG, content_type: str = "image/png") -> None:
        """Write an object."""
        self.bucket.blob(name).upload_from_string(data, content_type=content_type)

    def write_table(self) -> None:
        """Write the addresses."""
        config = bigquery.LoadJobConfig(
            schema=[
                bigquery.SchemaField("photo_id", "STRING"),
                bigquery.SchemaField("taken_at", "TIMESTAMP"),
                bigquery.SchemaField("photo", "STRING"),
                bigquery.SchemaField("cat", "INT64"),
            ],
            write_disposition="WRITE_TRUNCATE",
        )
        self._client.load_table_from_json(self.rows, f"{self.dataset}.photos", job_config=config).result()


@pytest.fixture
def photos(client, local_cloud) -> Photos:
    """A bucket of the user's own, and a table."""
    return Photos(client, local_cloud.project)


@pytest.fixture
def make_data_run(photos, make_run, include) -> Any:
    """Runs of a model of these photos."""
    name = f"cats_{uuid.uuid4().hex[:12]}"

    def make(run_id: str = "manual__1", folder: str = "cats/", checks: str = "", query: str = QUERY) -> DataRun:
        photos.write_table()
        spec = SPEC.replace("FOLDER", photos.uri(folder)).replace(
            "CHECKS", checks.replace("{", "{{").replace("}", "}}")
        )
        night = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_id=run_id), spec)
        night.write(query.format(dataset=photos.dataset))
        return night

    return make


def spans_of(stored: dict[str, Any]) -> dict[str, str]:
    """Fingerprints by day."""
    return {span["span"]: span["fingerprint"] for span in stored["spans"]}


def test_an_object_that_was_written_again_is_another_day(make_data_run, photos, read) -> None:
    """And an untouched one is not, although the run is another; the run table has the generation beside the address."""
    first = make_data_run()
    before = first.plan()
    assert first.snapshot()["rows"] == 120
    assert first.check_data()["passed"]
    photos.put("cats/15.png", PNG + b"other")
    photos.put("cats/new.png")
    second = make_data_run("manual__2")
    again = second.plan(force=True)
    second.snapshot()
    taken = [read(f"{planned['run_uri']}/snapshot.json") for planned in (before, again)]
    found, now = spans_of(taken[0]), spans_of(taken[1])
    assert len(found) == 10
    assert [day for day in found if found[day] != now[day]] == ["2013-11-10"]
    assert {column["name"]: column["type"] for column in taken[0]["schema"]}["photo"] == "STRING"
    rows = bigquery.Client().query_and_wait(f"SELECT photo FROM `{taken[1]['table']}` WHERE photo_id = 'p015'")
    blob = photos.bucket.get_blob("cats/15.png")
    assert [row.photo for row in rows] == [f"{photos.uri('cats/15.png')}#{blob.generation},{len(PNG) + 5}"]
    statistics = read(f"{before['run_uri']}/statistics.json")["splits"]["train"]["features"]["photo"]
    assert (statistics["nulls"], statistics["min_bytes"], statistics["max_bytes"]) == (0, len(PNG), len(PNG))


def test_what_no_training_can_read_is_named_before_anything_is_paid(make_data_run, photos, read) -> None:
    """How many, why, and the first of them: gone, elsewhere, of another type; NULL is a missing image."""
    photos.bucket.blob("cats/15.png").delete()
    photos.put("cats/50.png", b"<html>", "text/html; charset=utf-8")
    photos.put("dogs/1.png")
    photos.rows[51]["photo"] = photos.uri("dogs/1.png")
    photos.rows[52]["photo"] = "https://example.org/52.png"
    photos.rows[53]["photo"] = None
    night = make_data_run()
    planned = night.plan()
    night.snapshot()
    with pytest.raises(AirflowFailException) as refused:
        night.check_data()
    message = str(refused.value)
    assert f"p015 ({photos.uri('cats/15.png')})" in message
    assert "outside the folder" in message
    assert "p052 (https://example.org/52.png)" in message
    assert "text/html; charset=utf-8" in message
    assert f"p050 ({photos.uri('cats/50.png')})" in message
    splits = read(f"{planned['run_uri']}/statistics.json")["splits"]
    unreadable = [item for split in splits.values() for item in split["features"]["photo"]["unreadable"]]
    assert sum(item["rows"] for item in unreadable if item["found"] == "elsewhere") == 2
    assert sum(split["features"]["photo"]["nulls"] for split in splits.values()) == 5


def test_a_model_may_go_on_without_them(make_data_run, photos) -> None:
    """Then they are missing images, which have a limit of their own."""
    photos.bucket.blob("cats/5.png").delete()
    night = make_data_run(checks="severity: {objects: warn}")
    night.plan()
    night.snapshot()
    assert night.check_data()["passed"]
    strict = make_data_run("manual__2", checks="severity: {objects: warn}, max_null_fraction: {photo: 0}")
    strict.plan(force=True)
    strict.snapshot()
    with refuses(AirflowFailException, found="of photo is missing"):
        strict.check_data()


def test_a_folder_without_objects_and_a_column_of_bytes_are_refused(make_data_run) -> None:
    """Before the run table is made."""
    night = make_data_run(folder="birds/")
    night.plan()
    with refuses(AirflowFailException, found="gs://photos-"):
        night.snapshot()
    query = QUERY.replace("*", "* REPLACE (CAST(photo AS BYTES) AS photo)")
    night = make_data_run("manual__2", query=query)
    night.plan(force=True)
    with refuses(AirflowFailException, where="column photo", found="BYTES", way_out="Select the addresses"):
        night.snapshot()


def test_check_models_asks_for_a_column_of_addresses(make_data_run) -> None:
    """As BigQuery describes the query."""
    night = make_data_run()
    spec = load_spec(night.include / "models" / f"{night.name}.yaml")
    assert "take" in check_queries.check(spec, night.include, Cloud().session)
    plain = spec.model_copy(update={"entries": (spec.features[0].model_copy(update={"objects": None}),)})
    with refuses(SpecError, found="'photo': STRING", way_out="image feature"):
        check_queries.check(plain, night.include, Cloud().session)
