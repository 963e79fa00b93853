"""The run table through either reader, and that every reader gives a training the same examples.

The clients are unmodified: the local cloud's environment variables lead them to the local cloud. tensorflow-io is read
with in an environment of its own, by this file as a program.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import requests
import tensorflow as tf

from tests.support.refusals import refuses
from tests.trainer.conftest import FEATURES
from trainer.cluster.replica import Replica
from trainer.contract.documents import ExportRequest, Manifest
from trainer.contract.reading import parse_document, read_document, serialise
from trainer.errors import DataError, RequestError
from trainer.export.job import SpanExport
from trainer.export.reading.reader import BigQueryReader
from trainer.input import STORAGE_READ, TENSORFLOW_IO, open_source
from trainer.input.pipeline import Reading, blocks, epochs
from trainer.input.source import Share
from trainer.storage import Storage
from trainer.task import main

ROWS = 6000
DAYS = 3
LEAST = np.iinfo(np.int64).min
ROOT = Path(__file__).parents[3]
LOCALCLOUD_PYTHON = ROOT / ".venv" / "localcloud" / "bin" / "python"
TENSORFLOW_IO_PYTHON = ROOT / ".venv" / "tfio" / "bin" / "python"
NAN = float("nan")
SPEC = {
    "parcel_id": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "carrier": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "distance": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
    "weight": tf.io.FixedLenFeature([], tf.float32, default_value=NAN),
    "express": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
    "insured": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
    "late": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
}
SCHEMA = [
    {"name": name, "type": type_, "mode": mode}
    for name, type_, mode in (
        ("parcel_id", "STRING", "NULLABLE"),
        ("carrier", "STRING", "NULLABLE"),
        ("distance", "INTEGER", "NULLABLE"),
        ("weight", "FLOAT", "NULLABLE"),
        ("express", "BOOLEAN", "NULLABLE"),
        ("insured", "BOOLEAN", "NULLABLE"),
        ("late", "INTEGER", "NULLABLE"),
    )
]
TABLE_SQL = f"""
CREATE OR REPLACE TABLE reading.parcels AS
SELECT CONCAT('parcel-', CAST(n AS STRING)) AS parcel_id,
  CASE MOD(n, 9) WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'say "Ünter", twice' ELSE FORMAT('C%d', n) END AS carrier,
  IF(MOD(n, 7) = 0, NULL, IF(MOD(n, 2) = 0, -n, n * 1000000007)) AS distance,
  IF(MOD(n, 11) = 0, NULL, IF(MOD(n, 13) = 0, CAST('nan' AS FLOAT64), n / 3)) AS weight,
  IF(MOD(n, 3) = 0, NULL, MOD(n, 2) = 0) AS express,
  IF(MOD(n, 17) = 0, NULL, MOD(n, 4) = 0) AS insured,
  MOD(n, 2) AS late,
  DATE_ADD(DATE '2024-01-01', INTERVAL DIV(n, {ROWS // DAYS}) DAY) AS span,
  IF(MOD(n, 10) = 0, 'validation', 'train') AS part,
  0 AS shard,
  n * 7919 - 1000000 AS row_hash
FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n
"""
RUN_SQL = """
import sys
from google.cloud import bigquery
client = bigquery.Client(project=sys.argv[1])
client.create_dataset("reading", exists_ok=True)
client.query_and_wait(sys.argv[2])
"""
LOAD_ROWS = """
import json, sys
from google.cloud import bigquery
client = bigquery.Client(project=sys.argv[1])
client.create_dataset("reading", exists_ok=True)
schema = [bigquery.SchemaField(name, type_) for name, type_ in json.loads(sys.argv[2]).items()]
table = client.create_table(bigquery.Table(sys.argv[3], schema=schema))
client.load_table_from_json(json.load(sys.stdin), table, job_config=bigquery.LoadJobConfig(schema=schema)).result()
"""
with_tensorflow_io = pytest.mark.skipif(
    not TENSORFLOW_IO_PYTHON.exists() and sys.version_info >= (3, 13), reason="TensorFlow 2.16 has no Python 3.13"
)
RUN_COLUMNS = {"span": "DATE", "part": "STRING", "shard": "INTEGER", "row_hash": "INTEGER"}


def with_client(local_cloud, script: str, *arguments: str, content: str | None = None) -> None:
    """Run a script in the environment that has BigQuery's client."""
    command = [str(LOCALCLOUD_PYTHON), "-c", script, local_cloud.project, *arguments]
    subprocess.run(command, env=dict(local_cloud.env), input=content, text=True, check=True, timeout=120)


@pytest.fixture(scope="module")
def table(local_cloud) -> str:
    """A run table with NULLs in every kind of column."""
    with_client(local_cloud, RUN_SQL, TABLE_SQL)
    return f"{local_cloud.project}.reading.parcels"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where shards go."""
    return tmp_path_factory.mktemp("exported")


def export(table: str, folder: Path, **changes: object) -> Manifest:
    """Export all days for real, and read the manifest."""
    size = ROWS // DAYS
    spans = [
        {
            "span": f"2024-01-0{day + 1}",
            "fingerprint": f"{day:032x}",
            "parts": [
                {"part": "train", "rows": size * 9 // 10, "shards": 1},
                {"part": "validation", "rows": size // 10, "shards": 1},
            ],
            "action": "export",
            "because": "new span",
        }
        for day in range(DAYS)
    ]
    request = {
        "schema_version": 1,
        "kind": "export_request",
        "model": "parcels",
        "run_key": "20240110t030000z-0a1b2c3d4e5f",
        "table": table,
        "schema": SCHEMA,
        "schema_hash": "0123456789abcdef",
        "compression": "GZIP",
        "spans_uri": str(folder / "spans"),
        "spans": spans,
        "quarantined": [],
        "test_start": "2024-01-03",
        "manifest_uri": str(folder / "manifest.json"),
        "format": "tfrecord",
        "layout": {"numeric": [], "rows_per_record": 1},
        "images": [],
        "only": "all",
        "golden": None,
        **changes,
    }
    storage = Storage()
    wanted = parse_document(ExportRequest, json.dumps(request).encode(), "export_request")
    reader = BigQueryReader([column["name"] for column in SCHEMA])
    SpanExport(wanted, storage, reader, Replica()).write_spans()
    return parse_document(Manifest, (folder / "manifest.json").read_bytes(), "manifest")


@pytest.fixture(scope="module")
def tfrecords(table: str, folder: Path) -> Manifest:
    """The table as TFRecords."""
    return export(table, folder / "tfrecord")


@pytest.fixture(scope="module")
def lines(table: str, folder: Path) -> Manifest:
    """The table as CSV."""
    return export(table, folder / "csv", format="csv")


@pytest.fixture(scope="module")
def direct(tfrecords: Manifest) -> Manifest:
    """The same run with the test days exported only."""
    splits = {
        name: split if name == "test" else dataclasses.replace(split, files=())
        for name, split in tfrecords.splits.items()
    }
    return dataclasses.replace(tfrecords, splits=splits)


def columns_of(
    manifest: Manifest, name: str, share: Share | None = None, reader: str = STORAGE_READ
) -> dict[str, np.ndarray]:
    """Read a split, and put its rows into the order of the key."""
    with open_source(manifest, manifest.splits, Storage(), share, reader=reader) as source:
        split = source.open_split(name)
        with split.reading(SPEC):
            batches = [{key: values.numpy() for key, values in batch.items()} for batch in split.batches(SPEC)]
        found = {key: np.concatenate([batch[key] for batch in batches]) for key in SPEC}
        split.require_rows(len(found["late"]))
    order = np.argsort(found["parcel_id"])
    return {key: values[order] for key, values in found.items()}


def assert_equal(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    for name in SPEC:
        assert found[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize("split", ["train", "validation"])
def test_the_table_gives_the_examples_of_the_files(tfrecords: Manifest, direct: Manifest, split: str) -> None:
    found = columns_of(direct, split)
    assert_equal(found, columns_of(tfrecords, split))
    for name, missing in (("carrier", b""), ("distance", LEAST), ("express", LEAST), ("insured", LEAST)):
        assert (found[name] == missing).any()
        assert (found[name] != missing).any()


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_csv_gives_the_examples_of_the_records(tfrecords: Manifest, lines: Manifest, split: str) -> None:
    assert {file.uri.rsplit(".", 2)[1] for file in lines.splits[split].files} == {"csv"}
    assert_equal(columns_of(lines, split), columns_of(tfrecords, split))


LAYOUTS = {
    "vector": {"numeric": ["weight"], "rows_per_record": 1},
    "pre-batched": {"numeric": [], "rows_per_record": 64},
    "both": {"numeric": ["weight"], "rows_per_record": 256},
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_examples_of_the_plain_one(
    table: str, tfrecords: Manifest, tmp_path: Path, layout: dict[str, object]
) -> None:
    assert_equal(columns_of(export(table, tmp_path, layout=layout), "train"), columns_of(tfrecords, "train"))


@pytest.fixture
def four_streams(direct: Manifest, add_fault, local_cloud) -> Iterator[None]:
    """The table comes in four streams, though it is small; that it did is checked at the end."""
    fault = add_fault(f"BigQueryRead.CreateReadSession {direct.table}", "split", count=1000, streams=4)
    yield
    url = f"https://{local_cloud.region}-aiplatform.googleapis.com/faults"
    found = requests.get(url, headers=local_cloud.headers, timeout=60).json()
    left = {item["id"]: item["count"] for item in found["faults"]}
    assert left[fault["id"]] < 1000


@pytest.mark.parametrize("split", ["train", "validation"])
def test_a_table_of_four_streams_gives_the_examples_of_the_files(
    tfrecords: Manifest, direct: Manifest, four_streams: None, split: str
) -> None:
    assert_equal(columns_of(direct, split), columns_of(tfrecords, split))


def in_tensorflow_io(local_cloud, *arguments: str) -> None:
    """Run Python in the environment that has it: what it cannot bear ends the process, and no error can be caught."""
    done = subprocess.run(
        [str(TENSORFLOW_IO_PYTHON), *arguments],
        env={**os.environ, **local_cloud.env, "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def read_by_tensorflow_io(local_cloud, manifest: Manifest, folder: Path) -> dict[str, np.ndarray]:
    """Read the training split."""
    (folder / "manifest.json").write_bytes(serialise(manifest))
    in_tensorflow_io(local_cloud, __file__, str(folder / "manifest.json"), str(folder / "train.npz"))
    with np.load(folder / "train.npz", allow_pickle=True) as stored:
        return dict(stored)


@with_tensorflow_io
def test_tensorflow_io_gives_the_examples_of_the_files(
    tfrecords: Manifest, direct: Manifest, tmp_path: Path, local_cloud
) -> None:
    assert_equal(read_by_tensorflow_io(local_cloud, direct, tmp_path), columns_of(tfrecords, "train"))


@with_tensorflow_io
def test_tensorflow_io_bears_a_table_of_four_streams(
    tfrecords: Manifest, direct: Manifest, four_streams: None, tmp_path: Path, local_cloud
) -> None:
    assert_equal(read_by_tensorflow_io(local_cloud, direct, tmp_path), columns_of(tfrecords, "train"))


def test_shares_of_replicas_are_disjoint_and_whole(tfrecords: Manifest, direct: Manifest) -> None:
    parts = [columns_of(direct, "validation", Share(index=index, count=3)) for index in range(3)]
    together = {name: np.concatenate([part[name] for part in parts]) for name in SPEC}
    order = np.argsort(together["parcel_id"])
    assert_equal({name: values[order] for name, values in together.items()}, columns_of(tfrecords, "validation"))
    assert min(len(part["late"]) for part in parts) > 0


def test_an_epoch_has_the_same_order_each_time(direct: Manifest) -> None:
    """Though the streams of a session have none."""

    def order() -> list[bytes]:
        with open_source(direct, direct.splits, Storage()) as source:
            made = blocks(source.open_split("train"), SPEC, lambda columns: columns["parcel_id"], seed=1)
            batches = epochs(made, first=1, last=2, batch_size=100, seed=5)
            return [value for batch in batches for value in batch.numpy()]

    first = order()
    assert len(set(first)) == 2 * ROWS // DAYS * 9 // 10
    assert first == order()


def test_a_larger_split_is_read_again_in_every_epoch(direct: Manifest, monkeypatch: pytest.MonkeyPatch) -> None:
    small = Reading(cache_bytes=0)
    with open_source(direct, direct.splits, Storage()) as source:
        made = blocks(source.open_split("validation"), SPEC, lambda columns: columns["parcel_id"], 1, small)
        assert made.of_epoch is not None
        batches = epochs(made, first=0, last=2, batch_size=100, seed=5, reading=small)
        found = [value for batch in batches for value in batch.numpy()]
    size = 2 * ROWS // DAYS // 10
    assert sorted(found[:size]) == sorted(found[size:])
    assert len(set(found)) == size


def test_an_expired_run_table_is_named(direct: Manifest) -> None:
    gone = dataclasses.replace(direct, table=f"{direct.table}_gone")
    with refuses(RequestError, where="parcels_gone", way_out="snapshot task"):
        columns_of(gone, "train")


def test_a_table_that_changed_is_an_error(direct: Manifest) -> None:
    wrong = dataclasses.replace(direct.splits["train"], rows=direct.splits["train"].rows + 1)
    with refuses(DataError, where="parcels, split train", found="3600", expected="3601"):
        columns_of(dataclasses.replace(direct, splits={**direct.splits, "train": wrong}), "train")


def test_a_column_of_another_type_is_named(direct: Manifest) -> None:
    schema = tuple(
        dataclasses.replace(column, type="INTEGER") if column.name == "carrier" else column for column in direct.columns
    )
    with refuses(DataError, where="parcels, column 'carrier'", found="string", expected="int64"):
        columns_of(dataclasses.replace(direct, columns=schema), "train")


def request_of_a_table(local_cloud, exported, tmp_path: Path, **changes: Any) -> Any:
    """A training of a run whose training days were never exported; its rows are loaded."""
    types = {column.name: column.type for column in exported.manifest().columns} | RUN_COLUMNS
    rows = [{**row, "span": row["span"].isoformat()} for row in exported.rows.to_pylist()]
    table = f"{local_cloud.project}.reading.{tmp_path.name}"
    with_client(local_cloud, LOAD_ROWS, json.dumps(types), table, content=json.dumps(rows))
    manifest = json.loads((exported.path / "manifest.json").read_text())
    manifest["table"] = table
    for name in ("train", "validation"):
        manifest["splits"][name]["files"] = []
    path, out = tmp_path / "manifest.json", str(tmp_path / "training")
    path.write_text(json.dumps(manifest))
    return exported.train_json(out, training={"input": "bigquery"}, manifest_uri=str(path), **changes)


@pytest.mark.long
def test_auxiliary_labels_are_read_from_the_table_as_from_files(local_cloud, exported, tmp_path: Path) -> None:
    zone = {"label": {"name": "zone", "kind": "multiclass", "classes": 5}, "weight": 0.3}
    express = {"label": {"name": "express", "kind": "binary"}, "weight": 0.5}
    features = [feature for feature in FEATURES if feature["name"] not in ("zone", "express")]
    changes: dict[str, Any] = {"auxiliary_labels": [zone, express], "features": features}
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request_of_a_table(local_cloud, exported, tmp_path, **changes)))
    assert main(["train", "--request", str(path)]) == 0
    report = json.loads((tmp_path / "training" / "report.json").read_text())
    files = exported.train(exported.train_request_in(tmp_path / "files", **changes))
    assert {"val_auc", "val_zone_accuracy", "val_express_auc"} < set(report["metrics"])
    # Zone and express are not in the features: of what nobody can learn the hits are chance, and the losses are not.
    compared = [name for name in files.history if name.endswith("loss") or name == "val_auc"]
    assert compared == ["loss", "val_loss", "val_auc", "val_zone_loss", "val_express_loss"]
    for name in compared:
        assert report["history"][name] == pytest.approx(files.history[name], abs=0.05), name


@with_tensorflow_io
def test_a_training_reads_the_table_by_either_reader(local_cloud, exported, tmp_path: Path) -> None:
    """`trainer.task train` by each."""
    request = request_of_a_table(local_cloud, exported, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    path = tmp_path / "request.json"
    path.write_text(json.dumps(request))
    assert main(["train", "--request", str(path)]) == 0
    report = json.loads((tmp_path / "training" / "report.json").read_text())
    assert report["train_rows"] == manifest["splits"]["train"]["rows"]
    assert report["metrics"]["val_auc"] > 0.8

    request["training"]["reader"] = "tensorflow_io"
    request |= {f"{name}_uri": str(tmp_path / "io" / name) for name in ("model", "report", "checkpoint", "tensorboard")}
    path.write_text(json.dumps(request))
    in_tensorflow_io(local_cloud, "-m", "trainer.task", "train", "--request", str(path))
    by_io = json.loads((tmp_path / "io" / "report").read_text())
    assert by_io["framework"]["tensorflow"].startswith("2.16.")
    assert by_io["metrics"]["val_auc"] == pytest.approx(report["metrics"]["val_auc"], abs=1e-3)

    request["training"] |= {"reader": "storage_read", "input": "tfrecord"}
    request["report_uri"] = str(tmp_path / "other.json")
    path.write_text(json.dumps(request))
    assert main(["train", "--request", str(path)]) == 2


if __name__ == "__main__":
    manifest = read_document(Manifest, sys.argv[1], Storage())
    np.savez(sys.argv[2], **columns_of(manifest, "train", reader=TENSORFLOW_IO))
