"""`make check-models` with a project at hand: BigQuery is asked, and the columns are held against the spec."""

from __future__ import annotations

import re

import pytest

from retraining.__main__ import main
from tests.support.parcels import SPEC, WHERE, write_parcels


@pytest.fixture(scope="module")
def table(own_cloud):
    """A table with columns of several types."""
    from retraining.core.data.sql import Query

    name = f"{own_cloud.settings.project}.{own_cloud.settings.dataset}.check_queries"
    columns = (
        "'a' AS id, TIMESTAMP '2024-01-01' AS happened, 'AA' AS carrier, "
        "DATE '2024-01-01' AS day, 1.5 AS weight, 1 AS late"
    )
    own_cloud.warehouse.run_query(
        Query(sql=f"CREATE OR REPLACE TABLE `{name}` AS SELECT {columns}"), "check_queries_table", "test"
    )
    return name


def run(tmp_path, own_cloud, sql, spec=SPEC):
    write_parcels(tmp_path, sql, spec)
    settings = own_cloud.settings
    return main(
        ["check-queries", "--project", settings.project, "--region", settings.region, "--include", str(tmp_path)]
    )


def test_a_query_that_fits_is_taken(tmp_path, own_cloud, table, capsys):
    assert run(tmp_path, own_cloud, f"SELECT id, happened, carrier, weight, late FROM `{table}` {WHERE}") == 0
    assert capsys.readouterr().out == "parcels: BigQuery takes its queries, and their columns fit\n"


@pytest.mark.parametrize(
    ("columns", "source", "words"),
    [
        ("id, happened, carrier, weight, late", "{table}_gone", "check_queries_gone"),
        ("id, happened, carrier, wieght, late", "{table}", "wieght"),
        ("id, happened, carrier, weight AS wieght, late", "{table}", "no column 'weight'.*Did you mean 'wieght'"),
        (
            "id, happened, day AS carrier, weight, late",
            "{table}",
            "column 'carrier': DATE.*cannot be a categorical feature",
        ),
    ],
    ids=["unknown table", "unknown column", "missing column", "wrong type"],
)
def test_what_only_a_run_would_find_is_found(tmp_path, own_cloud, table, capsys, columns, source, words):
    sql = f"SELECT {columns} FROM `{source.format(table=table)}` {WHERE}"
    assert run(tmp_path, own_cloud, sql) == 1
    said = capsys.readouterr().err
    assert said.startswith("parcels/examples.sql: ")

    assert re.search(words, said), said


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("SELECT id FROM examples WHERE weight > 9", None),
        ("SELECT id FROM examples WHERE wieght > 9", "wieght"),
        ("SELECT id FROM `{table}_gone`", "check_queries_gone"),
    ],
    ids=["fits", "unknown column", "unknown table"],
)
def test_the_models_own_checks_are_asked_too(tmp_path, own_cloud, table, capsys, asked, words):
    """Else `plan` is the first to find out."""
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "no_heavy.sql").write_text(asked.format(table=table), encoding="utf-8")
    spec = SPEC.replace("event_time: happened", "event_time: happened, assertions: [{name: a, query: no_heavy.sql}]")
    sql = f"SELECT id, happened, carrier, weight, late FROM `{table}` {WHERE}"
    assert run(tmp_path, own_cloud, sql, spec) == int(words is not None)
    if words is not None:
        said = capsys.readouterr().err
        assert said.startswith("parcels.yaml, data.assertions, a: ")
        assert re.search(words, said), said


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("SELECT id, late FROM `{table}` WHERE happened < @as_of", None),
        ("SELECT id, lateness FROM `{table}`", "lateness"),
        ("SELECT day, late FROM `{table}`", "no column 'id'.*the key 'id' and the label 'late'"),
    ],
    ids=["fits", "unknown column", "no key"],
)
def test_the_query_of_labels_is_asked_too(tmp_path, own_cloud, table, capsys, labels, words):
    """Else the monitor is the first to find out, and judges nothing."""
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "labels.sql").write_text(labels.format(table=table), encoding="utf-8")
    sql = f"SELECT id, happened, carrier, weight, late FROM `{table}` {WHERE}"
    spec = f"{SPEC}monitoring: {{performance: {{labels_query: labels.sql}}}}\ndeployment: {{key_input: true}}\n"
    assert run(tmp_path, own_cloud, sql, spec) == int(words is not None)
    if words is not None:
        said = capsys.readouterr().err
        assert said.startswith("labels.sql: ")
        assert re.search(words, said), said
