"""Columns of NUMERIC(p, s): their digits are told, kept by what alters the table, and not by what is made of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `digits.t`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("digits", exists_ok=True)
    made.query_and_wait(
        "CREATE OR REPLACE TABLE digits.t (a NUMERIC(11, 2) NOT NULL, b NUMERIC(5), c NUMERIC, s STRING(5))"
    )
    made.query_and_wait("INSERT digits.t (a, b) VALUES (1.239, 2)")
    return made


def rows_of(client: bigquery.Client, sql: str) -> list[tuple[Any, ...]]:
    """Return a statement's rows."""
    return [tuple(row.values()) for row in client.query_and_wait(sql, retry=None, job_retry=None)]


def kinds(client: bigquery.Client, table: str) -> list[str]:
    """The types of a table's columns, with their digits."""
    found = client.get_table(table).schema
    digits = (", ".join(str(each) for each in (field.precision, field.scale) if each) for field in found)
    return [f"{field.field_type}({of})" if of else field.field_type for field, of in zip(found, digits, strict=True)]


def test_they_are_told_and_outlast_a_change(client):
    rows_of(client, "CREATE OR REPLACE TABLE digits.altered (a NUMERIC(11, 2) NOT NULL, b NUMERIC(5), c NUMERIC)")
    assert kinds(client, "digits.altered") == ["NUMERIC(11, 2)", "NUMERIC(5)", "NUMERIC"]
    rows_of(client, "ALTER TABLE digits.altered ALTER COLUMN a DROP NOT NULL")
    assert kinds(client, "digits.altered") == ["NUMERIC(11, 2)", "NUMERIC(5)", "NUMERIC"]
    assert client.get_table("digits.altered").schema[0].mode == "NULLABLE"


def test_they_hold(client):
    assert rows_of(client, "SELECT a FROM digits.t") == [(Decimal("1.24"),)]
    with pytest.raises(exceptions.BadRequest):
        rows_of(client, "INSERT digits.t (a) VALUES (12345678901.5)")


def test_what_is_made_of_them_has_none(client):
    """A query's columns have no digits: what is put into the copy is not rounded to those of the first table."""
    rows_of(
        client, "CREATE OR REPLACE TABLE digits.copied AS SELECT a, b, CAST(1.5 AS NUMERIC(3, 1)) AS x FROM digits.t"
    )
    assert kinds(client, "digits.copied") == ["NUMERIC", "NUMERIC", "NUMERIC"]
    rows_of(client, "INSERT digits.copied (a, b) VALUES (NUMERIC '12345678901.239', 1.5)")
    assert rows_of(client, "SELECT a, b FROM digits.copied ORDER BY a") == [
        (Decimal("1.24"), Decimal(2)),
        (Decimal("12345678901.239"), Decimal("1.5")),
    ]


def test_what_is_declared_for_a_query_has_them(client):
    rows_of(
        client,
        "CREATE OR REPLACE TABLE digits.declared (a NUMERIC(4, 1) NOT NULL, b NUMERIC) AS SELECT a, b FROM digits.t",
    )
    assert kinds(client, "digits.declared") == ["NUMERIC(4, 1)", "NUMERIC"]
    assert client.get_table("digits.declared").schema[0].mode == "REQUIRED"
    assert rows_of(client, "SELECT a FROM digits.declared") == [(Decimal("1.2"),)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT digits.exact (a, d) VALUES (1.005, 1e2)",
        "INSERT digits.exact VALUES (1.005, 1e2)",
        "INSERT digits.exact (d, a) SELECT 1e2, 1.005",
        "MERGE digits.exact USING (SELECT 1) ON FALSE WHEN NOT MATCHED THEN INSERT (a, d) VALUES (1.005, 1e2)",
        "BEGIN INSERT digits.exact (a, d) VALUES (0, 1e2); UPDATE digits.exact SET a = 1.005 WHERE TRUE; END",
    ],
)
def test_a_written_number_is_rounded_by_its_own_digits(client, statement):
    """Half away from zero, as it stands there: the nearest FLOAT64 is below the half."""
    rows_of(client, "CREATE OR REPLACE TABLE digits.exact (a NUMERIC(5, 2), d BIGNUMERIC)")
    rows_of(client, statement)
    assert rows_of(client, "SELECT a, d FROM digits.exact") == [(Decimal("1.01"), Decimal(100))]
