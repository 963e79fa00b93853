"""Subscripts of arrays and JSON, and what MAX_BY gives.

https://cloud.google.com/bigquery/docs/reference/standard-sql/operators#json_subscript_operator
"""

from __future__ import annotations

import pytest
from google.api_core.exceptions import BadRequest
from google.cloud import bigquery

SOURCE = (
    "(SELECT JSON '[42, 47, 55]' AS js, JSON '{\"a\": [1, {\"b\": [7]}]}' AS o, [42, 47, 55] AS a,"
    " [STRUCT([5, 6] AS b)] AS s, 1 AS n, 'a' AS k) AS t"
)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("js[1]", 47), ("t.js[0]", 42), ("js[n]", 47), ("js[n + 1]", 55), ("js[9]", None), ("js[-1]", None),
        ("INT64(js[2])", 55), ("JSON_VALUE(js[1])", "47"), ("o.a[0]", 1), ("o['a'][0]", 1), ("o.a[1].b[0]", 7),
        ("o['a'][n]['b'][0]", 7), ("a[0]", 42), ("a[n]", 47), ("a[n + 1]", 55), ("a[OFFSET(n)]", 47),
        ("o[k][0]", 1), ("o[CONCAT(k, '')][n].b[0]", 7), ("a[ORDINAL(n)]", 42),
        ("s[0].b[1]", 6), ("a[SAFE_OFFSET(9)]", None),
    ],
)  # fmt: skip
def test_elements(client, expression, value):
    (row,) = client.query_and_wait(f"SELECT {expression} AS v FROM {SOURCE}")
    assert row.v == value


@pytest.mark.parametrize("expression", ["a[3]", "a[-1]", "a[n + 9]"])
def test_an_array_has_bounds(client, expression):
    with pytest.raises(BadRequest, match="out of bounds"):
        client.query_and_wait(f"SELECT {expression} FROM {SOURCE}", retry=None, job_retry=None)


@pytest.mark.parametrize("window", ["", " OVER ()"])
def test_the_greatest_ones_value_may_be_null(client, window):
    rows = "UNNEST([STRUCT(CAST(NULL AS INT64) AS x, 3 AS y), (1, 2), (2, 1), (3, NULL)])"
    query = f"SELECT MAX_BY(x, y){window} AS m, MIN_BY(x, y){window} AS l FROM {rows} LIMIT 1"
    (row,) = client.query_and_wait(query)
    assert (row.m, row.l) == (None, 2)
