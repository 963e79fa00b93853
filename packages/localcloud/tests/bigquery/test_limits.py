"""One statement takes what it may, and the others go on."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT REPEAT('x', 2000000000) AS v",
        "SELECT LENGTH(REPEAT(s, 2000000000)) AS v FROM UNNEST(['x']) s",
        "SELECT REPEAT(b'x', 2000000000) AS v",
        "SELECT LENGTH(LPAD('x', 2000000000, 'y')) AS v",
        "SELECT LENGTH(RPAD('x', 2000000000)) AS v",
        "CREATE OR REPLACE TABLE limits.long AS SELECT REPEAT('x', 2000000000) AS v",
        "SELECT REPEAT('x', 1000000) AS v, n FROM UNNEST(GENERATE_ARRAY(1, 1000)) n",
        "SELECT LENGTH(STRING_AGG(REPEAT('x', 1000000))) AS v FROM UNNEST(GENERATE_ARRAY(1, 3000)) n",
    ],
)
def test_a_statement_that_takes_too_much_is_refused_by_name(local_cloud, sql):
    """As `resourcesExceeded`, and the server is not larger afterwards than its limits."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("limits", exists_ok=True)
    with pytest.raises(exceptions.GoogleAPICallError, match="Resources exceeded") as refused:
        client.query(sql, retry=None, job_retry=None).result(retry=None, job_retry=None)
    assert refused.value.errors[0]["reason"] == "resourcesExceeded"
    assert [row.v for row in client.query_and_wait("SELECT LENGTH(REPEAT('ab', 3)) AS v")] == [6]


def test_what_a_text_may_hold_is_made(local_cloud):
    """Up to the size of a row; also of bytes, of nothing and in a table."""
    client = bigquery.Client(project=local_cloud.project)
    sql = (
        "SELECT LENGTH(REPEAT('ab', 1000000)) a, REPEAT(b'x', 2) b, REPEAT('x', 0) c, REPEAT(NULL, 3) d,"
        " LPAD('x', 3, 'y') e, RPAD('x', 3) f, LPAD('abc', 2) g"
    )
    assert [tuple(row.values()) for row in client.query_and_wait(sql)] == [
        (2_000_000, b"xx", "", None, "yyx", "x  ", "ab")
    ]
