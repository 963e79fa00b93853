"""A night whose training reads CSV, and those whose training reads the run table: from the plan to the judge.

`training.input: tfrecord` is what every other night of the tests reads.
"""

from __future__ import annotations

import csv
import gzip
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery, storage

from retraining.core.spec.files import load_spec
from tests.support.scenes.data_tasks import make_source
from tests.support.scenes.whole_run import run_whole

DAYS, PER_DAY = 10, 240
TFIO_IMAGE = "us-central1-docker.pkg.dev/local-project/retraining/trainer-tfio:0.2.0"
TFIO_READER = f"input: bigquery\n  reader: tensorflow_io\n  runtime: {{image: {TFIO_IMAGE}}}"
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
  checks: {{min_rows: 1000}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: distance, kind: numeric}}
  - {{name: weight, kind: numeric}}
  - {{name: express, kind: numeric}}
label: {{name: late, kind: binary}}
training:
  model: dense
  epochs: 12
  batch_size: 64
  seed: 7
  hyperparameters: {{learning_rate: 0.01}}
  {input}
evaluation: {{metric: auc, min_value: 0.7, threshold: max_f1}}
"""
# Late are the heavy parcels of one carrier; every kind of column has NULLs, text has commas and quotes.
SOURCE = f"""
CREATE OR REPLACE TABLE input_source.parcels AS
SELECT
  CONCAT('parcel-', CAST(i AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2013-11-09 00:01:00+00', INTERVAL 6 * i MINUTE) AS seen_at,
  CASE MOD(i, 5) WHEN 0 THEN NULL WHEN 1 THEN 'fast, "Ünter"' ELSE FORMAT('carrier %d', MOD(i, 5)) END AS carrier,
  IF(MOD(i, 31) = 0, NULL, MOD(i * 7919, 3000)) AS distance,
  IF(MOD(i, 17) = 0, NULL, MOD(i * 104729, 1000) / 10) AS weight,
  IF(MOD(i, 7) = 0, NULL, MOD(i, 2) = 0) AS express,
  IF(MOD(i, 5) IN (1, 2) AND MOD(i * 104729, 1000) > 300, 1, 0) AS late
FROM UNNEST(GENERATE_ARRAY(0, {DAYS * PER_DAY - 1})) AS i
"""
QUERY = (
    "SELECT * FROM input_source.parcels WHERE seen_at >= @window_start AND seen_at < @window_end AND seen_at < @as_of"
)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery with ten days of parcels."""
    return make_source(local_cloud, "input_source", SOURCE)


@pytest.fixture
def judge(client, make_run, include: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], dict[str, Any]]:
    """Runs a night of a model of this test's own up to the judge; gives its documents."""
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")

    def run(input_: str) -> dict[str, Any]:
        name = f"input_{uuid.uuid4().hex[:12]}"
        (include / "models" / f"{name}.yaml").write_text(SPEC.format(name=name, input=input_))
        (include / "sql" / name).mkdir(parents=True)
        (include / "sql" / name / "examples.sql").write_text(QUERY)
        return run_whole(load_spec(include / "models" / f"{name}.yaml"), make_run(), last="evaluate")

    return run


def assert_judged(found: dict[str, Any]) -> None:
    """All examples were exported or read, and the model has learned who is late."""
    splits = found["manifest"]["splits"]
    assert sum(split["rows"] for split in splits.values()) == DAYS * PER_DAY
    assert found["report"]["train_rows"] == splits["train"]["rows"]
    assert found["evaluation"]["rows"] == splits["test"]["rows"] == 2 * PER_DAY
    assert found["evaluation"]["challenger"]["metrics"]["auc"] > 0.9
    threshold = found["evaluation"]["threshold"]  # chosen on the validation split, wherever that lies
    assert f"on {splits['validation']['rows']} validation examples" in threshold["words"]
    assert threshold["challenger"]["f1"]["value"] > 0.6


def read_object(uri: str) -> bytes:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return bytes(storage.Client().bucket(bucket).blob(name).download_as_bytes())


@pytest.mark.long
def test_a_night_on_csv(judge) -> None:
    """Every split is CSV, for trainer and judge alike."""
    found = judge("input: csv")
    assert_judged(found)
    manifest = found["manifest"]
    assert manifest["format"] == "csv"
    files = [file for split in manifest["splits"].values() for file in split["files"]]
    assert all(file["uri"].endswith(".csv.gz") for file in files)
    header, *rows = csv.reader(gzip.decompress(read_object(files[0]["uri"])).decode().splitlines())
    assert header == ["id", "seen_at", "carrier", "distance", "weight", "express", "late"]
    assert len(rows) == files[0]["rows"]


@pytest.mark.long
@pytest.mark.parametrize("reader", ["input: bigquery", TFIO_READER], ids=["own", "tensorflow_io"])
def test_a_night_on_the_run_table(judge, reader: str) -> None:
    """Only the judge's days are exported; the judge, on another TensorFlow than tensorflow-io's, reads the model."""
    found = judge(reader)
    assert_judged(found)
    manifest = found["manifest"]
    assert manifest["format"] == "tfrecord"
    assert [len(manifest["splits"][name]["files"]) for name in ("train", "validation")] == [0, 0]
    assert {file["span"] for file in manifest["splits"]["test"]["files"]} == {"2013-11-17", "2013-11-18"}
