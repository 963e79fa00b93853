"""`make preview` against the local cloud, as a program of its own would run it."""

from __future__ import annotations

import uuid

import pytest
from google.cloud import bigquery, storage

from retraining.__main__ import main
from retraining.commands.shell import Shell

SPEC = """
name: {name}
description: Late?
data:
  query: {name}/examples.sql
  key: id
  event_time: sent
  window_days: 20
  test_days: 4
  checks: {{min_rows: {min_rows}}}
features: [{{name: carrier, kind: categorical}}, {{name: weight, kind: numeric}}, {{name: same, kind: numeric}}]
label: {{name: late, kind: binary}}
training: {{{training}}}
evaluation: {{metric: auc, min_value: 0.6}}
"""
SQL = """
SELECT id, sent, carrier, weight, 1 AS same, {late} AS late FROM preview_source.parcels
WHERE sent >= @window_start AND sent < LEAST(@window_end, @as_of)
"""
TABLE = """
CREATE OR REPLACE TABLE preview_source.parcels AS
SELECT
  CONCAT('p', CAST(number AS STRING)) AS id,
  TIMESTAMP_ADD(TIMESTAMP '2024-01-01 00:00:00', INTERVAL number HOUR) AS sent,
  IF(MOD(number, 3) = 0, 'AA', 'BB') AS carrier,
  number / 7 AS weight,
  CAST(MOD(number, 4) = 0 AS INT64) AS late
FROM UNNEST(GENERATE_ARRAY(0, 959)) AS number
"""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """BigQuery, with parcels of 40 days."""
    client = bigquery.Client(project=local_cloud.project)
    for dataset in ("preview_source", local_cloud.dataset):
        client.create_dataset(dataset, exists_ok=True)
    client.query_and_wait(TABLE)
    return client


@pytest.fixture
def ask(client, local_cloud, tmp_path, capsys):
    """Writes a model of the test's own and previews it; returns the exit code, output and errors."""
    name = f"preview_{uuid.uuid4().hex[:10]}"

    def run(
        *,
        model: str = name,
        late: str = "late",
        min_rows: int = 100,
        as_of: str = "2024-02-01T06:00:00Z",
        training: str = "model: wide_deep",
        assertions: tuple[str, str] | None = None,
    ):
        (tmp_path / "models").mkdir()
        (tmp_path / "sql" / name).mkdir(parents=True)
        spec = SPEC.format(name=name, min_rows=min_rows, training=training)
        if assertions:
            (tmp_path / "sql" / name / "own.sql").write_text(assertions[0], encoding="utf-8")
            asked = f"  assertions: [{{name: own, query: {name}/own.sql, severity: {assertions[1]}}}]\n"
            spec = spec.replace("features:", f"{asked}features:")
        (tmp_path / "models" / f"{name}.yaml").write_text(spec, encoding="utf-8")
        (tmp_path / "sql" / name / "examples.sql").write_text(SQL.format(late=late), encoding="utf-8")
        code = main(["preview", model, "--as-of", as_of], Shell(find_include=lambda: tmp_path))
        left = [table.table_id for table in client.list_tables(local_cloud.dataset) if name in table.table_id]
        assert not left, "the run table stays"
        bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
        assert not list(bucket.list_blobs(prefix=f"{name}/")), "something was written"
        return code, *capsys.readouterr()

    return run


def test_it_says_what_a_run_would_train_on(ask):
    code, out, _ = ask()
    assert code == 0
    assert "window    2024-01-11 to 2024-01-31 (exclusive), test days from 2024-01-27" in out
    assert "test      96 rows, mean label 0.25" in out
    assert "export    480 rows of 20 of 20 days" in out
    assert "warn      constant: " in out
    assert "data      fit to train on" in out
    assert "MB read: 0.0001 USD at list prices, each run" in out
    assert "run       at most " in out


def test_the_models_own_checks_are_asked_and_priced(ask):
    code, out, _ = ask(assertions=("SELECT id FROM examples WHERE weight > 100", "block"))
    assert code == 1
    assert "block     assertions.own: own finds 19 rows, id p701, p702, p703, p704, p705, …: correct the source" in out
    assert "assertion own: 19 violations, 0.0 MB read: 0.0001 USD at list prices, each run" in out


def test_data_that_is_not_fit_is_said_with_every_finding(ask):
    code, out, _ = ask(min_rows=1000)
    assert code == 1
    assert "block     min_rows: " in out
    assert "data      NOT fit" in out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"late": "lat"}, "lat"),
        ({"as_of": "tomorrow"}, "Param as_of: 'tomorrow'. Expected a time"),
        ({"as_of": "2034-01-01"}, "after the run's own time"),
        ({"model": "nothing"}, "MODEL: no model 'nothing'. Expected one of: preview_"),
        ({"as_of": "2020-01-01"}, "no example between 2019-12-11 and 2019-12-31"),
        (
            {"training": "model: wide_deep, runtime: {framework: '2.15'}", "as_of": "2026-01-01"},
            "2.15: its pre-built container ended on 2025-11-14, and the run is of 2026-01-01",
        ),
    ],
    ids=["a wrong query", "no time", "a time to come", "no model", "no data", "an ended container"],
)
def test_what_would_end_a_run_is_refused(ask, changes, message):
    code, _, err = ask(**changes)
    assert code == 1
    assert message in err
