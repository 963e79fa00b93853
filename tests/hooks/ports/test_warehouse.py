"""Statements, each a job; tables and their columns."""

from __future__ import annotations

from retraining.core.data.sql import Query


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
