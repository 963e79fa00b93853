"""Elements that are called as their array: an alias comes before a column.

https://cloud.google.com/bigquery/docs/reference/standard-sql/query-syntax#using_aliases
"""

from __future__ import annotations

import pytest
from google.api_core.exceptions import BadRequest
from google.cloud import bigquery

NUMBERS = "(SELECT [1, 2, 2] AS x) AS t"
STRUCTS = "(SELECT [STRUCT(1 AS a, [5, 6] AS ps), (2, [7])] AS x) AS t"


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (f"SELECT x FROM {NUMBERS}, UNNEST(t.x) AS x ORDER BY x", [(1,), (2,), (2,)]),
        (f"SELECT x FROM {NUMBERS} CROSS JOIN t.x AS x ORDER BY x DESC", [(2,), (2,), (1,)]),
        (f"SELECT x AS y FROM {NUMBERS}, UNNEST(x) AS x WHERE x > 1", [(2,), (2,)]),
        (f"SELECT x + 1 AS x FROM {NUMBERS}, UNNEST(x) AS x ORDER BY x DESC LIMIT 1", [(3,)]),
        (f"SELECT DISTINCT x FROM {NUMBERS}, UNNEST(x) AS x ORDER BY x", [(1,), (2,)]),
        (f"SELECT x, COUNT(*) AS n FROM {NUMBERS}, UNNEST(x) AS x GROUP BY x ORDER BY x", [(1, 1), (2, 2)]),
        (f"SELECT x, COUNT(*) FROM {NUMBERS}, UNNEST(x) AS x GROUP BY 1 HAVING x > 1", [(2, 2)]),
        ((f"SELECT SUM(x) OVER () AS s FROM {NUMBERS}, UNNEST(x) AS x"
         " QUALIFY ROW_NUMBER() OVER (ORDER BY x) = 1"), [(5,)]),
        (f"SELECT o, x FROM {NUMBERS}, UNNEST(t.x) AS x WITH OFFSET AS o ORDER BY o", [(0, 1), (1, 2), (2, 2)]),
        (f"SELECT x FROM {NUMBERS} LEFT JOIN UNNEST(t.x) AS x ON x > 2", [(None,)]),
        (f"SELECT (SELECT MAX(x + y) FROM UNNEST([1, 2]) AS y) AS m FROM {NUMBERS}, UNNEST(t.x) AS x ORDER BY m",
         [(3,), (4,), (4,)]),
        (f"SELECT ARRAY(SELECT x * 2 FROM UNNEST(x) AS x) FROM {NUMBERS}", [([2, 4, 4],)]),
        (f"SELECT x.a FROM {STRUCTS}, UNNEST(t.x) AS x ORDER BY x.a", [(1,), (2,)]),
        (f"SELECT x.a, p FROM {STRUCTS}, UNNEST(t.x) AS x, UNNEST(x.ps) AS p ORDER BY p", [(1, 5), (1, 6), (2, 7)]),
        (f"SELECT ARRAY(SELECT AS STRUCT x.a FROM UNNEST(x) AS x WHERE x.a > 1) FROM {STRUCTS}", [([{"a": 2}],)]),
        (f"SELECT t.x FROM {NUMBERS}, UNNEST(x) AS x LIMIT 1", [([1, 2, 2],)]),
    ],
)  # fmt: skip
def test_the_element_is_meant(client, query, rows):
    assert [tuple(row.values()) for row in client.query_and_wait(query)] == rows


@pytest.mark.parametrize(
    "value", ["[1, NULL]", "STRUCT([STRUCT([1, NULL] AS x)] AS y)", "ARRAY(SELECT CAST(NULL AS DATE))"]
)
def test_no_result_has_an_array_with_null(client, value):
    with pytest.raises(BadRequest, match="Array cannot have a null element; error in writing field a"):
        client.query_and_wait(f"SELECT {value} AS a", retry=None, job_retry=None)


def test_within_a_query_an_array_may_have_null(client):
    query = (
        "SELECT ARRAY_LENGTH([1, NULL]) AS n, [STRUCT(CAST(NULL AS INT64) AS x)] AS l, CAST(NULL AS ARRAY<INT64>) AS e"
    )
    (row,) = client.query_and_wait(query)
    assert (row.n, row.l, row.e) == (2, [{"x": None}], [])


def test_intervals_are_made(client):
    later = "TIMESTAMP '2020-01-01' + MAKE_INTERVAL(hour => n, day => n)"
    query = f"SELECT {later} AS t, MAKE_INTERVAL() = MAKE_INTERVAL(0) AS e FROM UNNEST([2]) AS n"
    (row,) = client.query_and_wait(query)
    assert (row.t.isoformat(), row.e) == ("2020-01-03T02:00:00+00:00", True)
