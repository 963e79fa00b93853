"""What a failed statement says is BigQuery's, not DuckDB's."""

from __future__ import annotations

import pytest

from localcloud.bigquery.patches.error_words import words_of


@pytest.mark.parametrize(
    ("duckdb", "bigquery"),
    [
        ("Constraint Error: NOT NULL constraint failed: t.a", "Required field a cannot be null"),
        ('Binder Error: Referenced column "x" not found in FROM clause!', "Unrecognized name: x"),
        ("Catalog Error: Scalar Function with name nosuch does not exist!", "Function not found: nosuch"),
        ("Conversion Error: Could not cast", None),
        ("Conversion Error: Could not convert string 'abc' to INT64", None),
        ("Conversion Error: Could not convert string 'Bad int64 value: it's' to INT64 when", "Bad int64 value: it's"),
        (
            "(DuckDB: Could not convert string 'The local cloud has no SQRT of NUMERIC: cast it to FLOAT64' to INT64)",
            "The local cloud has no SQRT of NUMERIC: cast it to FLOAT64",
        ),
    ],
)
def test_the_words_are_the_services(duckdb, bigquery) -> None:
    """Where it has its own."""
    assert words_of(f"Query execution failed: {duckdb}") == bigquery
