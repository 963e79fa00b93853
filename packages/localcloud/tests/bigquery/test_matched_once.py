"""UPDATE … FROM and MERGE: no row of the target takes values of two rows of the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

SOURCE = "UNNEST([STRUCT(1 AS k, 'p' AS v), STRUCT(1 AS k, 'q' AS v), STRUCT(3 AS k, 'r' AS v)])"
REFUSED = (
    f"UPDATE $t t SET s = u.v FROM {SOURCE} u WHERE t.id = u.k",
    f"UPDATE $t t SET s = u.v FROM (SELECT * FROM {SOURCE}) u, UNNEST([1]) n WHERE t.id = u.k AND n = 1",
    f"MERGE $t t USING (SELECT * FROM {SOURCE}) u ON t.id = u.k WHEN MATCHED THEN UPDATE SET s = 'x'",
    f"MERGE $t t USING (SELECT * FROM {SOURCE}) u ON t.id = u.k WHEN MATCHED AND v > 'a' THEN DELETE",
    (
        f"MERGE $t t USING (SELECT * FROM {SOURCE}) u ON t.id = u.k"
        " WHEN MATCHED AND v = 'p' THEN UPDATE SET s = 'x' WHEN MATCHED AND v = 'q' THEN DELETE"
    ),
    f"DECLARE k INT64 DEFAULT 1; UPDATE $t t SET s = u.v FROM {SOURCE} u WHERE t.id = u.k AND t.id = k",
)
TAKEN = (
    (f"UPDATE $t t SET s = u.v FROM {SOURCE} u WHERE t.id = u.k AND u.v != 'p'", ["b", "q"]),
    (f"UPDATE $t t SET s = 'x' WHERE id IN (SELECT k FROM {SOURCE})", ["b", "x"]),
    (
        (
            f"MERGE $t t USING (SELECT * FROM {SOURCE}) u ON t.id = u.k"
            " WHEN MATCHED AND v = 'p' THEN UPDATE SET s = v WHEN NOT MATCHED THEN INSERT (id, s) VALUES (k, v)"
        ),
        ["b", "p", "r"],
    ),
    (f"MERGE $t USING (SELECT * FROM {SOURCE}) ON FALSE WHEN NOT MATCHED BY SOURCE AND id = 1 THEN DELETE", ["b"]),
)


@pytest.fixture
def play(local_cloud: Any, request: pytest.FixtureRequest) -> Callable[..., list[str]]:
    """Plays a statement on a table of two rows; gives its texts."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("matched", exists_ok=True)
    name = f"matched.t{abs(hash(request.node.name))}"
    client.query_and_wait(f"CREATE OR REPLACE TABLE {name} AS SELECT 1 AS id, 'a' AS s UNION ALL SELECT 2, 'b'")

    def played(statement: str, *values: Any) -> list[str]:
        given = [bigquery.ScalarQueryParameter(None, "INT64", value) for value in values]
        config = bigquery.QueryJobConfig(query_parameters=given)
        client.query_and_wait(statement.replace("$t", name), job_config=config, retry=None, job_retry=None)
        return [row["s"] for row in client.query_and_wait(f"SELECT s FROM {name} ORDER BY s")]

    return played


@pytest.mark.parametrize("statement", REFUSED)
def test_two_rows_of_the_source_are_refused(play: Callable[..., list[str]], statement: str) -> None:
    """And nothing is changed."""
    with pytest.raises(exceptions.BadRequest, match="must match at most one source row for each target row"):
        play(statement)
    assert play("SELECT 1") == ["a", "b"]


@pytest.mark.parametrize(("statement", "expected"), TAKEN)
def test_one_row_of_the_source_is_taken(play: Callable[..., list[str]], statement: str, expected: list[str]) -> None:
    """However many there are that no change is for."""
    assert play(statement) == expected


def test_parameters_are_those_of_their_places(play: Callable[..., list[str]]) -> None:
    """Of which the look needs some only."""
    statement = f"UPDATE $t t SET s = CONCAT(u.v, CAST(? AS STRING)) FROM {SOURCE} u WHERE t.id = u.k AND u.k + ? = ?"
    with pytest.raises(exceptions.BadRequest, match="at most one source row"):
        play(statement, 5, 1, 2)
    assert play(statement, 5, 1, 4) == ["a", "b"]
