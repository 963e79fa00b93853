"""`make new-model` against the local BigQuery, as a program of its own would run it."""

from __future__ import annotations

import re

import pytest
from google.cloud import storage

from retraining.__main__ import main
from retraining.commands.preview import make_plan, preview
from retraining.core.data.sql import Query
from retraining.core.spec.files import load_spec


@pytest.fixture(scope="module")
def table(own_cloud):
    """Parcels of 40 days: some late, some without a weight, one column of each kind."""
    name = f"{own_cloud.settings.dataset}.new_model"
    sql = f"""
CREATE OR REPLACE TABLE `{own_cloud.settings.project}.{name}` AS
SELECT
  CONCAT('p', CAST(number AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2024-01-01 00:00:00', INTERVAL number HOUR) AS sent,
  IF(MOD(number, 3) = 0, 'AA', 'BB') AS carrier,
  IF(MOD(number, 5) = 0, NULL, number / 7) AS weight,
  CONCAT('note ', CAST(number AS STRING)) AS note,
  MOD(number, 4) = 0 AS late
FROM UNNEST(GENERATE_ARRAY(0, 959)) AS number
"""
    own_cloud.warehouse.run_query(Query(sql=sql), "new_model_table", "test")
    return name


def run(tmp_path, own_cloud, of, **changes):
    (tmp_path / "models").mkdir(exist_ok=True)
    given = {
        "name": "parcels",
        "table": of,
        "label": "late",
        "key": "id",
        "time": "sent",
        "project": own_cloud.settings.project,
        "region": own_cloud.settings.region,
        "include": str(tmp_path),
    } | changes
    return main(["new-model", *(word for name, value in given.items() for word in (f"--{name}", value))])


def test_a_look_at_the_table_makes_a_valid_model(tmp_path, own_cloud, table, capsys):
    assert run(tmp_path, own_cloud, table) == 0
    assert "parcels: BigQuery takes its queries, and their columns fit" in capsys.readouterr().out
    assert main(["check-models", "--include", str(tmp_path)]) == 0
    yaml = (tmp_path / "models" / "parcels.yaml").read_text(encoding="utf-8")
    assert "- {name: carrier, kind: categorical}\n  - {name: weight, kind: numeric}\n  # left out: note" in yaml
    assert "label: {name: late, kind: binary}" in yaml
    assert "960 rows from 2024-01-01 to 2024-02-09" in yaml


def test_a_table_without_a_time_makes_a_valid_model_too(tmp_path, own_cloud, table, capsys):
    assert run(tmp_path, own_cloud, table, time="") == 0
    assert "parcels: BigQuery takes its queries, and their columns fit" in capsys.readouterr().out
    assert "split: hash" in (tmp_path / "models" / "parcels.yaml").read_text(encoding="utf-8")


SHAPES = {
    "no key": (
        """SELECT MOD(i, 7) / 7 AS x, 'b' AS Kind, i AS TVnews, MOD(i, 3) AS y
        FROM UNNEST(GENERATE_ARRAY(1, 400)) AS i""",
        {"label": "y", "key": "", "time": ""},
    ),
    "equal rows": (
        "SELECT MOD(i, 200) AS x, MOD(MOD(i, 200), 2) AS y FROM UNNEST(GENERATE_ARRAY(1, 400)) AS i",
        {"label": "y", "key": "", "time": ""},
    ),
    "the key is the time, and ended": (
        """SELECT DATE_ADD(DATE '2012-01-01', INTERVAL i DAY) AS date, SIN(i) AS wind,
          IF(MOD(i, 3) = 0, 'rain', 'sun') AS weather
        FROM UNNEST(GENERATE_ARRAY(0, 399)) AS i""",
        {"label": "weather", "key": "date", "time": "date"},
    ),
    "months, and two columns are the key": (
        """SELECT s AS symbol, DATE_ADD(DATE '2000-01-01', INTERVAL m MONTH) AS date, m + LENGTH(s) / 7 AS price,
          COS(m) AS x
        FROM UNNEST(GENERATE_ARRAY(0, 119)) AS m, UNNEST(['A', 'BB', 'CCC']) AS s""",
        {"label": "price", "key": "symbol,date", "time": "date"},
    ),
    "years": (
        """SELECT DATETIME(DATE(1970 + MOD(i, 40), 1, 1)) AS at, i AS id, SIN(i) AS x, i / 3 AS y
        FROM UNNEST(GENERATE_ARRAY(1, 1200)) AS i""",
        {"label": "y", "key": "id", "time": "at"},
    ),
    "texts and names with signs": (
        r"""SELECT i AS id, SIN(i) AS `mean radius`, IF(MOD(i, 3) = 0, 'it\'s \\ so', 'none -- of it') AS `the kind`
        FROM UNNEST(GENERATE_ARRAY(1, 300)) AS i""",
        {"label": "the kind", "key": "id", "time": ""},
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_each_shape_of_table_can_be_looked_at_as_printed(tmp_path, own_cloud, unique, capsys, shape):
    """New-model, check-models, and then the preview that it prints: the data is fit to train on, and no split empty."""
    sql, given = SHAPES[shape]
    table = f"{own_cloud.settings.dataset}.{unique}"
    made = f"CREATE TABLE `{own_cloud.settings.project}.{table}` AS {sql}"
    own_cloud.warehouse.run_query(Query(sql=made), unique, "test")
    include = tmp_path / "include"
    (include / "models").mkdir(parents=True)
    assert run(include, own_cloud, table, **given) == 0
    printed = re.search(r"^next: make preview MODEL=parcels(?: AS_OF=(\S+))?$", capsys.readouterr().out, re.MULTILINE)
    assert printed
    assert main(["check-models", "--include", str(include)]) == 0
    planned = make_plan(load_spec(include / "models" / "parcels.yaml"), printed[1] or "", own_cloud, include)
    lines, passed = preview(planned, own_cloud, include)
    assert passed, lines
    rows = {line.split()[0]: int(line.split()[1].replace(",", "")) for line in lines if " rows" in line[:25]}
    assert sum(rows[split] for split in ("train", "validation", "test")) >= 195
    assert min(rows.values()) >= 10


def test_nothing_is_written_over(tmp_path, own_cloud, table, capsys):
    (tmp_path / "models").mkdir()
    path = tmp_path / "models" / "parcels.yaml"
    path.write_text("name: mine\n", encoding="utf-8")
    assert run(tmp_path, own_cloud, table) == 1
    assert "not written over" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "name: mine\n"
    assert not (tmp_path / "sql").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": "nowhere.parcels"}, "TABLE: no table"),
        (
            {"label": "lat"},
            "no column 'lat'. Expected one of: id, sent, carrier, weight, note, late. Did you mean 'late'?",
        ),
        ({"label": "note"}, "960 texts in 960 rows. Expected at most 100 texts"),
        ({"project": ""}, "RETRAINING_PROJECT: not set"),
        ({"name": "Parcels"}, "NAME: 'Parcels'"),
    ],
    ids=["no table", "no column", "a label that is none", "no project", "no name"],
)
def test_what_cannot_be_is_refused_by_name(tmp_path, own_cloud, table, capsys, changes, message):
    assert run(tmp_path, own_cloud, table, **changes) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "sql").exists()


@pytest.fixture
def bucket(local_cloud, unique) -> storage.Bucket:
    """A bucket of the user's own."""
    return storage.Client(project=local_cloud.project).create_bucket(f"parcels-{unique}", location="us-central1")


HEADER = "id,sent,carrier,weight,late\n"


def lines(first: int, last: int) -> str:
    """Rows of a CSV file: one an hour."""
    return "".join(
        f"p{i},2024-01-{1 + i // 24:02d} {i % 24:02d}:00:00 UTC,{'AB'[i % 3 == 0]},{i / 7},{i % 4 // 3}\n"
        for i in range(first, last)
    )


def test_a_look_at_files_makes_a_valid_model(tmp_path, own_cloud, bucket, capsys):
    """Their columns and types are pinned, and the table that they were loaded into is gone."""
    for name, (first, last) in {"a.csv": (0, 300), "b.csv": (300, 600)}.items():
        bucket.blob(f"visits/{name}").upload_from_string(HEADER + lines(first, last))
    uri = f"gs://{bucket.name}/visits/*.csv"
    assert run(tmp_path, own_cloud, "", files=uri, dataset=own_cloud.settings.dataset) == 0
    said = capsys.readouterr().out
    assert "parcels: BigQuery takes its queries, and their columns fit; 2 files of" in said
    assert main(["check-models", "--include", str(tmp_path)]) == 0
    spec = load_spec(tmp_path / "models" / "parcels.yaml")
    assert [(column.name, column.type) for column in spec.data.files.columns] == [
        ("id", "STRING"),
        ("sent", "TIMESTAMP"),
        ("carrier", "STRING"),
        ("weight", "FLOAT64"),
        ("late", "INT64"),
    ]
    assert (spec.data.files.uris, spec.data.files.format, spec.data.window_days) == ((uri,), "csv", 25)
    yaml = (tmp_path / "models" / "parcels.yaml").read_text(encoding="utf-8")
    assert "columns:  # guess: the types that BigQuery found" in yaml
    assert f"from {uri}: 600 rows from 2024-01-01 to 2024-01-25" in yaml
    assert not [
        table for table in own_cloud.warehouse.list_tables(own_cloud.settings.dataset) if ".new_model_" in table.name
    ]


@pytest.mark.parametrize(
    ("content", "changes", "message"),
    [
        (b"", {"files": "gs://BUCKET/none/*.csv"}, "no file gs://"),
        (b"", {"files": "gs://BUCKET/*.txt"}, "FILES: 'gs://"),
        (b"", {"files": "gs://BUCKET/*.tfrecord"}, "make tfrecords-to-parquet FROM="),
        (b"", {"table": "shop.parcels"}, "FILES: TABLE beside it"),
        (b"", {"dataset": ""}, "RETRAINING_DATASET: not set"),
        (b"", {}, "1 files, all empty"),
        (HEADER.replace("id", "parcel").encode() + lines(0, 9).encode(), {}, "KEY of gs://"),
        (HEADER.encode() + lines(0, 9).encode() + b"p,never,A,1,1\n", {}, "'sent' is STRING"),
    ],
    ids=["no file", "ending", "TFRecord", "table too", "no dataset", "empty", "no key", "not a time"],
)
def test_files_that_make_no_model_are_refused(tmp_path, own_cloud, bucket, capsys, content, changes, message):
    """By name; no file is written, and no table left."""
    given = {"files": "gs://BUCKET/*.csv", "dataset": own_cloud.settings.dataset} | changes
    given["files"] = given["files"].replace("BUCKET", bucket.name)
    bucket.blob("a" + given["files"][given["files"].rindex(".") :]).upload_from_string(content)
    assert run(tmp_path, own_cloud, given.pop("table", ""), **given) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "sql").exists()
    assert not [
        table for table in own_cloud.warehouse.list_tables(own_cloud.settings.dataset) if ".new_model_" in table.name
    ]
