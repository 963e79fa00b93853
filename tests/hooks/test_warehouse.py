"""Statements on BigQuery: typed parameters, one job per id, errors in BigQuery's words."""

from __future__ import annotations

import pytest

from retraining.core.data.sql import Parameter, Query, query_failure
from retraining.core.errors import DataError
from retraining.hooks import warehouse
from tests.support.refusals import refuses


def test_parameters_keep_their_types(cloud, unique) -> None:
    """Scalars and arrays arrive as what they are."""
    query = Query(
        sql="SELECT @day AS day, @moment AS moment, @number + 1 AS number, @text AS text, ARRAY_LENGTH(@edges) AS n",
        parameters=(
            Parameter(name="day", type="DATE", value="2013-11-20"),
            Parameter(name="moment", type="TIMESTAMP", value="2013-11-20T03:00:00Z"),
            Parameter(name="number", type="INT64", value=41),
            Parameter(name="text", type="STRING", value="'; DROP TABLE x"),
            Parameter(name="edges", type="FLOAT64", value=(1.5, 2.5)),
        ),
    )
    (row,) = cloud.warehouse.run_query(query, unique, "test").rows
    assert (row["day"].isoformat(), row["moment"].isoformat()) == ("2013-11-20", "2013-11-20T03:00:00+00:00")
    assert (row["number"], row["text"], row["n"]) == (42, "'; DROP TABLE x", 2)


def test_the_same_id_is_the_same_job(cloud, unique) -> None:
    """A retry joins its job instead of running it again."""
    table = f"{cloud.settings.project}.{cloud.settings.dataset}.{unique}"
    cloud.warehouse.run_query(Query(sql=f"CREATE TABLE `{table}` AS SELECT 0 AS n"), f"{unique}a", "test")
    insert = Query(sql=f"INSERT INTO `{table}` VALUES (1)")
    for _ in range(2):
        cloud.warehouse.run_query(insert, f"{unique}b", "test")
    count = Query(sql=f"SELECT COUNT(*) AS n FROM `{table}`")
    counted = cloud.warehouse.run_query(count, f"{unique}c", "test")
    assert counted.rows == [{"n": 2}]
    assert cloud.warehouse.table_schema(table) == [{"name": "n", "type": "INTEGER", "mode": "NULLABLE", "fields": []}]


def test_a_wrong_statement_says_what_bigquery_says(cloud, unique) -> None:
    """Dry or not: one DataError, with the place and the message."""
    query = Query(sql="SELECT nothing FROM nowhere.at_all")
    with pytest.raises(DataError, match=r"examples\.sql: BigQuery refuses.*(nowhere|at_all)"):
        cloud.warehouse.dry_run(query, "examples.sql")
    for _ in range(2):  # the second time the failed job is met
        with pytest.raises(DataError, match=r"examples\.sql: BigQuery refuses"):
            cloud.warehouse.run_query(query, unique, "examples.sql")


@pytest.mark.parametrize(
    ("limit", "sql"),
    [
        ("MAX_ROWS", "SELECT n FROM UNNEST(GENERATE_ARRAY(1, 11)) AS n"),
        ("MAX_RESULT_BYTES", "SELECT REPEAT('x', 5) AS text, ['a', REPEAT('y', 5)] AS more"),
    ],
)
def test_an_answer_that_is_too_large_is_refused_with_what_to_do(cloud, unique, monkeypatch, limit, sql) -> None:
    """One row or byte less is taken."""
    monkeypatch.setattr(warehouse, limit, 10)
    with refuses(DataError, where="examples.sql", way_out="data.window_days"):
        cloud.warehouse.run_query(Query(sql=sql), unique, "examples.sql")
    monkeypatch.setattr(warehouse, limit, 11)
    assert cloud.warehouse.run_query(Query(sql=sql), unique, "examples.sql").rows


def test_a_statement_may_read_so_many_bytes_and_no_more(cloud, unique, monkeypatch) -> None:
    """BigQuery is told, and what it says of a larger one names the setting; the local one counts no bytes."""
    asked, client = [], cloud.warehouse._client
    real = client.query
    monkeypatch.setattr(client, "query", lambda *args, **kwargs: (asked.append(kwargs), real(*args, **kwargs))[1])
    cloud.warehouse.run_query(Query(sql="SELECT 1 AS n"), unique, "test")
    sent = asked[0]["job_config"].to_api_repr()["query"]["maximumBytesBilled"]
    assert int(sent) == cloud.settings.max_bytes_billed == 10**13
    words = {"reason": "bytesBilledLimitExceeded", "message": "Query exceeded limit for bytes billed: 1."}
    error = query_failure("examples.sql", words)
    assert isinstance(error, DataError)
    assert "RETRAINING_MAX_BYTES_BILLED" in str(error)
    assert "raise that setting" in str(error)
