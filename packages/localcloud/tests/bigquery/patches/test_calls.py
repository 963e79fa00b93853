"""Calls within calls: what a macro names often is not bound as often, which would take minutes here."""

from __future__ import annotations

import pytest
from google.cloud import bigquery

DEEP = 6


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


@pytest.mark.parametrize(
    ("innermost", "around", "expected"),
    [
        ("SUBSTR(s, IF(n > 1, n, 2))", "CONCAT({0}, '-')", "bc" + "-" * DEEP),
        ("s", "UPPER(CONCAT({0}, '-'))", "ABC" + "-" * DEEP),
        ("n", "CAST(CAST({0} AS STRING) AS INT64)", 1),
        ("s", "SUBSTR({0}, n - 1, 1 + n)", "ab"),
        ("n", "CAST(CAST({0} AS FLOAT64) AS NUMERIC)", 1),
        ("s", "LTRIM(FORMAT('%5s', {0}))", "abc"),
        ("n", "MOD({0} + 1, n + 9)", 1 + DEEP),
        ("s", "CAST(CONCAT('2020-01-0', n, SUBSTR({0}, 11)) AS STRING)", "2020-01-01"),
    ],
)
def test_calls_within_calls(client, innermost, around, expected):
    expression = innermost
    for _ in range(DEEP):
        expression = around.format(expression)
    (row,) = client.query_and_wait(f"SELECT {expression} AS v FROM (SELECT 'abc' AS s, 1 AS n)")
    assert row.v == expected
