"""A user's files as examples, on the local cloud's BigQuery and storage: the same rows whatever holds them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from google.cloud import bigquery, storage

from retraining.core.errors import DataError, JobError
from retraining.core.spec.files import load_spec
from retraining.hooks import check_queries
from retraining.hooks.cloud import Cloud
from retraining.hooks.warehouse import Warehouse
from tests.support.airflow_release import AirflowFailException
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun, make_source

REPOSITORY = Path(__file__).resolve().parents[3]
COLUMNS = {
    "id": "STRING",
    "seen_at": "TIMESTAMP",
    "day": "DATE",
    "carrier": "STRING",
    "note": "STRING",
    "distance": "FLOAT64",
    "heavy": "BOOL",
    "late": "INT64",
}
SPEC = """
name: {name}
description: Will it be late?
data:
  SOURCE
  key: id
  event_time: seen_at
  window_days: 10
  test_days: 2
  checks: {{min_rows: 100}}
features:
  - {{name: carrier, kind: categorical, embedding_dim: 4}}
  - {{name: distance, kind: numeric}}
  - {{name: heavy, kind: categorical}}
label: {{name: late, kind: binary}}
training: {{model: dense}}
evaluation: {{metric: auc, min_value: 0.5}}
"""
LINES = [
    {
        "id": f"parcel-{i}",
        "seen_at": f"2013-11-{9 + i // 24:02d} {i % 24:02d}:30:00 UTC",
        "day": f"2013-11-{9 + i // 24:02d}",
        "carrier": None if i % 7 == 0 else f"carrier {i % 3}",
        "note": 'says "no",\nand again' if i % 5 == 0 else "",
        "distance": None if i % 11 == 0 else i + 0.5,
        "heavy": i % 2 == 0,
        "late": i % 3 % 2,
    }
    for i in range(240)
]


def csv_of(lines: list[dict[str, Any]], columns: list[str] | None = None) -> bytes:
    """A CSV file: NULL is empty, an empty text is quoted, as are commas and line ends."""

    def text(value: object) -> str:
        if isinstance(value, str) and (not value or set(value) & set('",\n')):
            return '"' + value.replace('"', '""') + '"'
        return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)

    names = columns or list(COLUMNS)
    rows = [names, *([text(line.get(name)) for name in names] for line in lines)]
    return "".join(",".join(row) + "\n" for row in rows).encode()


def json_of(lines: list[dict[str, Any]]) -> bytes:
    """JSON lines, without what is NULL."""
    return "".join(json.dumps({k: v for k, v in line.items() if v is not None}) + "\n" for line in lines).encode()


def parquet_of(lines: list[dict[str, Any]]) -> bytes:
    """A Parquet file, with times and days as such, and its columns in another order."""
    table = pyarrow.Table.from_pylist(lines)
    for name, kind in (("seen_at", pyarrow.timestamp("us", tz="UTC")), ("day", pyarrow.date32())):
        texts = [line[name].removesuffix(" UTC") for line in lines]
        plain = pyarrow.array(texts).cast(pyarrow.timestamp("us") if name == "seen_at" else kind)
        values = plain.cast(kind) if name == "day" else pyarrow.compute.assume_timezone(plain, "UTC")
        table = table.set_column(table.schema.get_field_index(name), name, values)
    file = io.BytesIO()
    pyarrow.parquet.write_table(table.select(sorted(table.column_names)), file)
    return file.getvalue()


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with the same rows in a table."""
    client = make_source(local_cloud, "files_source")
    schema = [bigquery.SchemaField(name, kind) for name, kind in COLUMNS.items()]
    config = bigquery.LoadJobConfig(schema=schema, write_disposition="WRITE_TRUNCATE")
    client.load_table_from_json(LINES, "files_source.parcels", job_config=config).result()
    return client


@pytest.fixture
def bucket(local_cloud) -> storage.Bucket:
    """A bucket of the user's own."""
    name = f"parcels-{uuid.uuid4().hex[:12]}"
    return storage.Client(project=local_cloud.project).create_bucket(name, location="us-central1")


@pytest.fixture
def read(local_cloud) -> Any:
    """Reads a JSON object of the bucket."""
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    return lambda uri: json.loads(bucket.blob(uri.removeprefix(f"gs://{bucket.name}/")).download_as_bytes())


@pytest.fixture
def make_data_run(client, make_run, include: Path) -> Any:
    """Runs of a model of files, or of a query."""

    def make(source: str, name: str = "", query: str = "SELECT 1", run_id: str = "manual__1") -> DataRun:
        name = name or f"files_{uuid.uuid4().hex[:12]}"
        spec = SPEC.replace("SOURCE", source.replace("{", "{{").replace("}", "}}"))
        night = DataRun(include, name, make_run(dag_id=f"retrain__{name}", run_id=run_id), spec)
        night.write(query)
        return night

    return make


def put(bucket: storage.Bucket, name: str, data: bytes) -> None:
    """Write an object."""
    bucket.blob(name).upload_from_string(data)


def source(bucket: storage.Bucket, pattern: str = "parcels/*", form: str = "csv") -> str:
    """The YAML of `data.files`."""
    columns = [{"name": name, "type": type_} for name, type_ in COLUMNS.items()]
    return (
        f"files: {json.dumps({'uris': f'gs://{bucket.name}/{pattern}', 'format': form, 'columns': columns or COLUMNS})}"
    )


def test_the_same_rows_have_the_same_fingerprint_whatever_holds_them(make_data_run, bucket, read) -> None:
    """In CSV files, gzipped JSON lines, Parquet, and a table."""
    put(bucket, "csv/parcels/1.csv", csv_of(LINES[:100]))
    put(bucket, "csv/parcels/deeper/2.csv", csv_of(LINES[100:]))
    put(bucket, "csv/other.txt", b"nothing")
    put(bucket, "json/1.json.gz", gzip.compress(json_of(LINES[:100])))
    put(bucket, "json/2.json.gz", gzip.compress(json_of(LINES[100:])))
    put(bucket, "parquet/1.parquet", parquet_of(LINES))
    of_table = "SELECT * FROM files_source.parcels WHERE seen_at >= LEAST(@window_start, @window_end, @as_of)"
    nights = {
        "table": make_data_run(
            "query: {name}/examples.sql".replace("{name}", "parcels_table"), "parcels_table", of_table
        ),
        "csv": make_data_run(source(bucket, "csv/parcels/*")),
        "json": make_data_run(source(bucket, "json/*", "json")),
        "parquet": make_data_run(source(bucket, "parquet/*.parquet", "parquet")),
    }
    stored = {}
    for kind, night in nights.items():
        planned = night.plan()
        assert night.snapshot()["rows"] == 240, kind
        assert night.check_data()["passed"]
        stored[kind] = read(f"{planned['run_uri']}/snapshot.json")
    found = {kind: [(span["span"], span["fingerprint"]) for span in taken["spans"]] for kind, taken in stored.items()}
    assert len(found["table"]) == 10
    assert found["csv"] == found["json"] == found["parquet"] == found["table"]
    assert stored["csv"]["source_files"]["count"] == 2
    assert stored["csv"]["explain"][0].startswith("source: 2 files, ")


def test_a_query_reads_them_as_a_table(make_data_run, bucket, read) -> None:
    """By the name `files`, whatever else it joins."""
    put(bucket, "parcels/1.csv", csv_of(LINES))
    query = """WITH near AS (SELECT * FROM files WHERE id != 'parcel-5')
    SELECT near.* FROM near JOIN files_source.parcels USING (id) WHERE near.seen_at < @window_end;"""
    name = f"files_{uuid.uuid4().hex[:12]}"
    night = make_data_run(f"query: {name}/examples.sql\n  {source(bucket)}", name, query)
    planned = night.plan()
    assert night.snapshot()["rows"] == 239
    assert "SELECT near.*" in read(f"{planned['run_uri']}/plan.json")["query"]["sql"]
    spec = load_spec(night.include / "models" / f"{name}.yaml")
    taken = check_queries.check(spec, night.include, Cloud().session)
    assert "1 files of" in taken
    assert taken.endswith("columns of data.files")
    put(bucket, "parcels/2.csv", csv_of(LINES, list(COLUMNS)[1:]))
    with refuses(DataError, where="parcels/2.csv", found="'id'"):
        check_queries.check(spec, night.include, Cloud().session)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            ["id", "seen_at", "day", "note", "carrier", "distance", "heavy", "late"],
            "columns in another order: id, seen_at",
        ),
        ([name for name in COLUMNS if name != "carrier"], "no column 'carrier'"),
        ([*COLUMNS, "colour"], "a new column 'colour'"),
        (["ident", *list(COLUMNS)[1:]], "no column 'id' and a new column 'ident'"),
    ],
    ids=["reordered", "missing", "new", "renamed"],
)
def test_a_changed_header_is_refused_by_name(make_data_run, bucket, client, columns, message: str) -> None:
    """By the file's address, before anything is loaded."""
    put(bucket, "parcels/1.csv", csv_of(LINES[:100]))
    put(bucket, "parcels/2.csv", csv_of(LINES[100:], columns))
    night = make_data_run(source(bucket))
    night.plan()
    with pytest.raises(AirflowFailException, match=rf"data\.files, gs://{bucket.name}/parcels/2\.csv: {message}"):
        night.snapshot()


def test_a_parquet_file_without_a_column_is_refused(make_data_run, bucket) -> None:
    """BigQuery would fill it with NULL."""
    put(bucket, "parcels/1.parquet", parquet_of(LINES))
    lines = [{k: v for k, v in line.items() if k != "distance"} for line in LINES]
    put(bucket, "parcels/2.parquet", parquet_of(lines))
    night = make_data_run(source(bucket, form="parquet"))
    night.plan()
    with pytest.raises(AirflowFailException, match=r"2\.parquet: no column 'distance'"):
        night.snapshot()


def test_what_is_not_there_or_does_not_fit_is_refused(make_data_run, bucket) -> None:
    """No file; a value that is none of the column's type; a field that the spec does not name."""
    night = make_data_run(source(bucket, "nothing/*.csv"))
    night.plan()
    with pytest.raises(AirflowFailException, match=rf"no file gs://{bucket.name}/nothing/\*\.csv"):
        night.snapshot()
    put(bucket, "bad/1.csv", csv_of([*LINES, {**LINES[0], "distance": "far"}]))
    night = make_data_run(source(bucket, "bad/*"))
    night.plan()
    with pytest.raises(AirflowFailException, match=r"(?s)BigQuery refuses .*far"):
        night.snapshot()
    put(bucket, "strange/1.json", json_of([{**LINES[0], "colour": "red"}]))
    night = make_data_run(source(bucket, "strange/*", "json"))
    night.plan()
    with pytest.raises(AirflowFailException, match=r"BigQuery refuses .*: colour"):
        night.snapshot()


def test_a_file_that_appears_while_others_are_loaded_is_loaded_by_the_next_try(
    make_data_run, bucket, monkeypatch
) -> None:
    """Both have all rows or none: the first try ends, and says why."""
    put(bucket, "parcels/1.csv", csv_of(LINES[:100]))
    night = make_data_run(source(bucket))
    night.plan()
    load_files = Warehouse.load_files

    def load_and_write(*arguments: Any) -> None:
        load_files(*arguments)
        put(bucket, "parcels/2.csv", csv_of(LINES[100:]))

    with monkeypatch.context() as patch:
        patch.setattr(Warehouse, "load_files", load_and_write)
        with refuses(JobError, found="written while", way_out="next try"):
            night.snapshot()
    assert night.snapshot()["rows"] == 240


def test_empty_files_hold_no_rows_and_a_mark_at_the_beginning_is_none_of_the_header(make_data_run, bucket) -> None:
    """A CSV file of a header alone is one; JSON lines need nothing."""
    put(bucket, "csv/1.csv", b"\xef\xbb\xbf" + csv_of(LINES[:100]))
    put(bucket, "csv/2.csv", csv_of([]))
    put(bucket, "csv/3.csv", csv_of(LINES[100:]))
    put(bucket, "gzip/1.csv.gz", gzip.compress(csv_of(LINES)))
    put(bucket, "json/1.json", json_of(LINES))
    put(bucket, "json/2.json", b"")
    for pattern, form in (("csv/*", "csv"), ("gzip/*", "csv"), ("json/*", "json")):
        night = make_data_run(source(bucket, pattern, form))
        night.plan()
        assert night.snapshot()["rows"] == 240, pattern


NO_HEADER = "no header line of UTF-8 text, plain or gzipped"
UNREADABLE = {
    "empty": ("csv", {"1.csv": csv_of(LINES), "2.csv": b""}, rf"2\.csv: {NO_HEADER}"),
    "bzip2": ("csv", {"1.csv": bz2.compress(csv_of(LINES))}, rf"1\.csv: {NO_HEADER}"),
    "gzipped Parquet": ("parquet", {"1.parquet": gzip.compress(parquet_of(LINES))}, r"1\.parquet: no Parquet file"),
    "a mixture": (
        "csv",
        {"1.csv.gz": gzip.compress(csv_of(LINES[:9])), "2.csv": csv_of(LINES[9:])},
        r"gzipped files beside plain ones, gs://[^ ]*1\.csv\.gz and gs://[^ ]*2\.csv\. ",
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_files_that_bigquery_cannot_load_are_refused_by_name(make_data_run, bucket, name: str) -> None:
    """Before a load."""
    form, files, message = UNREADABLE[name]
    for path, content in files.items():
        put(bucket, f"parcels/{path}", content)
    night = make_data_run(source(bucket, form=form))
    night.plan()
    with pytest.raises(AirflowFailException, match=message):
        night.snapshot()


def test_a_file_that_changed_is_another_day(make_data_run, bucket, read) -> None:
    """The next run exports that day anew, and no other."""
    put(bucket, "parcels/1.csv", csv_of(LINES))
    name = f"files_{uuid.uuid4().hex[:12]}"
    first = make_data_run(source(bucket), name)
    before = read(f"{first.plan()['run_uri']}/plan.json")
    first.snapshot()
    put(bucket, "parcels/1.csv", csv_of([{**LINES[0], "distance": 9.5}, *LINES[1:]]))
    second = make_data_run(source(bucket), name, run_id="manual__2")
    again = second.plan(force=True)
    second.snapshot()
    spans = [read(f"{uri}/snapshot.json")["spans"] for uri in (before["run_uri"], again["run_uri"])]
    changed = [new["span"] for old, new in zip(*spans, strict=True) if old["fingerprint"] != new["fingerprint"]]
    assert changed == ["2013-11-09"]


WRITE_TFRECORDS = """
import json, sys
import tensorflow as tf

def feature(value):
    if isinstance(value, str):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
    if isinstance(value, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))

for number, lines in enumerate(json.load(sys.stdin)):
    with tf.io.TFRecordWriter(f"{sys.argv[1]}/{number}.tfrecord", "GZIP" if number else "") as writer:
        for line in lines:
            features = {name: feature(value) for name, value in line.items() if value is not None}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
"""
OF_EXAMPLES = """SELECT id, TIMESTAMP(seen_at) AS seen_at, DATE(day) AS day, carrier, note, distance,
heavy = 1 AS heavy, late FROM files WHERE TIMESTAMP(seen_at) < @window_end"""


def run_trainer(*arguments: str, stdin: str | None = None) -> str:
    """Run Python where TensorFlow is; give what it printed."""
    command = [str(REPOSITORY / ".venv/trainer/bin/python"), *arguments]
    return subprocess.run(command, input=stdin, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
def test_tfrecord_files_are_read_as_the_parquet_files_made_of_them(make_data_run, bucket, read, tmp_path) -> None:
    """By `make tfrecords-to-parquet`, whose columns go into the YAML as they are printed: the rows are the table's."""
    run_trainer("-c", WRITE_TFRECORDS, str(tmp_path), stdin=json.dumps([LINES[:100], LINES[100:]]))
    for path in tmp_path.glob("*.tfrecord"):
        put(bucket, f"old/{path.name}", path.read_bytes())
    old, new = f"gs://{bucket.name}/old/*.tfrecord", f"gs://{bucket.name}/new"
    printed = run_trainer("-m", "trainer.tools.tfrecords", "--from", old, "--to", new)
    files = printed[printed.index("files:") :].rstrip().replace("\n", "\n  ")
    of_table = "SELECT * FROM files_source.parcels WHERE seen_at >= LEAST(@window_start, @window_end, @as_of)"
    fingerprints = {}
    for name, source_yaml, query in (("tfrecords", files, OF_EXAMPLES), ("of_table", "", of_table)):
        night = make_data_run(f"query: {name}/examples.sql\n  {source_yaml}", name, query)
        planned = night.plan()
        assert night.snapshot()["rows"] == 240
        spans = read(f"{planned['run_uri']}/snapshot.json")["spans"]
        fingerprints[name] = [(span["span"], span["fingerprint"]) for span in spans]
    assert fingerprints["tfrecords"] == fingerprints["of_table"]
