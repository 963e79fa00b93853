"""Statements, each a job; tables and their columns."""

from __future__ import annotations

import gzip
import io

from retraining.core.data.source_files import Load
from retraining.core.data.sql import Query
from retraining.core.errors import DataError
from retraining.core.spec.source_files import SourceFiles
from tests.support.refusals import refuses


def files_of(uri: str) -> SourceFiles:
    """A column of integers."""
    return SourceFiles.model_validate({"uris": uri, "format": "csv", "columns": [{"name": "n", "type": "INT64"}]})


def test_the_same_id_is_the_same_job(stage, cloud, unique) -> None:
    """A retry joins its job and gets its answer, whatever the statement would find by now."""
    stage.prepare("test", [{"n": 1}])
    first = cloud.warehouse.run_query(Query(sql="SELECT 1 AS n"), unique, "test")
    stage.prepare("test", [{"n": 2}])
    again = cloud.warehouse.run_query(Query(sql="SELECT 2 AS n"), unique, "test")
    other = cloud.warehouse.run_query(Query(sql="SELECT 2 AS n"), f"{unique}-other", "test")
    assert [answer.rows for answer in (first, again, other)] == [[{"n": 1}], [{"n": 1}], [{"n": 2}]]


def test_a_dry_run_takes_no_id(stage, cloud, unique) -> None:
    """And finds no rows."""
    stage.prepare("test", [{"n": 1}])
    assert cloud.warehouse.dry_run(Query(sql="SELECT 1 AS n"), "test").rows == []
    assert cloud.warehouse.run_query(Query(sql="SELECT 1 AS n"), unique, "test").rows == [{"n": 1}]


def test_a_dry_run_names_the_tables_that_are_read(stage, cloud, unique) -> None:
    """By their full names, each once; their columns can be looked at."""
    name = stage.make_table(unique)
    query = Query(sql=f"SELECT a.n FROM `{name}` a JOIN `{name}` b ON a.n = b.n")
    assert cloud.warehouse.dry_run(query, "test").tables == (name,)
    assert cloud.warehouse.visible_columns(name) == cloud.warehouse.table_schema(name)
    assert cloud.warehouse.visible_columns(f"{name}_gone") == []
    assert cloud.warehouse.table_changed(name).tzinfo is not None
    assert cloud.warehouse.table_changed(f"{name}_gone") is None


def test_a_table_has_columns_and_is_listed(stage, cloud, unique) -> None:
    """By its full name, with its end."""
    assert cloud.warehouse.table_schema(f"{cloud.settings.project}.{cloud.settings.dataset}.{unique}") is None
    name = stage.make_table(unique)
    assert cloud.warehouse.table_schema(name) == [{"name": "n", "type": "INTEGER", "mode": "NULLABLE", "fields": []}]
    (listed,) = [table for table in cloud.warehouse.list_tables(cloud.settings.dataset) if table.name == name]
    assert listed.expires is None


def test_a_deleted_table_is_gone(stage, cloud, unique) -> None:
    """Once and again."""
    name = stage.make_table(unique)
    for _ in range(2):
        cloud.warehouse.delete_table(name)
        assert cloud.warehouse.table_schema(name) is None


def test_no_dataset_has_no_tables(cloud) -> None:
    """None is an answer."""
    assert cloud.warehouse.list_tables("no_such_dataset") == []
    assert cloud.warehouse.table_schema(f"{cloud.settings.project}.no_such_dataset.t") is None


def test_rows_of_files_are_appended_once(stage, cloud, folder, unique) -> None:
    """A retry joins its job."""
    table = stage.make_table(unique)
    cloud.artifacts.write_once(f"{folder}/1.csv", b"n\n1\n2\n")
    for _ in range(2):
        cloud.warehouse.load_files(Load(table=table, files=files_of(f"{folder}/*.csv")), unique, "files")
    stage.prepare("test", [{"n": 2}])
    counted = Query(sql=f"SELECT COUNT(*) AS n FROM `{table}`")
    assert cloud.warehouse.run_query(counted, f"{unique}-count", "test").rows == [{"n": 2}]


def test_files_that_are_not_there_are_refused(stage, cloud, folder, unique) -> None:
    """By BigQuery, whose message names them."""
    table = stage.make_table(unique)
    with refuses(DataError, found="none.csv"):
        cloud.warehouse.load_files(Load(table=table, files=files_of(f"{folder}/none.csv")), unique, "files")


def test_lines_are_appended_once(stage, cloud, unique) -> None:
    """Compressed JSON lines that are sent; a retry, also of what was sent already, joins its job."""
    table = stage.make_table(unique)
    for _ in range(2):
        lines = io.BytesIO(gzip.compress(b'{"n": 1}\n{"n": 2}\n'))
        lines.seek(0, io.SEEK_END)  # as whoever wrote them leaves it
        cloud.warehouse.load_lines(lines, table, unique, "lines")
    stage.prepare("test", [{"n": 2}])
    counted = Query(sql=f"SELECT COUNT(*) AS n FROM `{table}`")
    assert cloud.warehouse.run_query(counted, f"{unique}-count", "test").rows == [{"n": 2}]
