"""What drivers and libraries send to BigQuery, beside what the console would: names, parameters, counts, results."""

from __future__ import annotations

import base64
import datetime as dt
import uuid
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery
from google.cloud.bigquery import dbapi


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `drivers.t_1` of two rows."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("drivers", exists_ok=True)
    made.query_and_wait(
        "CREATE OR REPLACE TABLE drivers.t_1 AS SELECT n, [STRUCT(n * 10 AS x)] AS parts FROM UNNEST([1, 2]) AS n"
    )
    return made


def rows_of(client: bigquery.Client, sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Return a statement's rows; it has parameters."""
    config = bigquery.QueryJobConfig(query_parameters=list(parameters))
    return [tuple(row.values()) for row in client.query_and_wait(sql, job_config=config, retry=None, job_retry=None)]


def scalar(name: str, kind: str, value: Any) -> bigquery.ScalarQueryParameter:
    """Return a parameter of a name, a type and a value."""
    return bigquery.ScalarQueryParameter(name, kind, value)


def test_a_project_with_dashes_needs_no_backticks(client):
    assert "-" in client.project
    path = f"{client.project}.drivers.t_1"
    assert rows_of(client, f"SELECT SUM(n) FROM {path}") == [(3,)]
    assert rows_of(client, f"SELECT a.n - b.n FROM {path} a, {path} AS b WHERE a.n > b.n") == [(1,)]
    client.query_and_wait(f"CREATE OR REPLACE TABLE {client.project}.drivers.copied AS SELECT n FROM {path}")
    client.query_and_wait(f"DELETE FROM {client.project}.drivers.copied WHERE n = 1")
    assert rows_of(client, f"SELECT n FROM {client.project}.drivers.copied") == [(2,)]
    dry = client.query(f"SELECT n FROM {path}", job_config=bigquery.QueryJobConfig(dry_run=True))
    assert (dry.total_bytes_processed, [field.name for field in dry.schema]) == (16, ["n"])
    with pytest.raises(exceptions.NotFound, match="missing"):
        rows_of(client, f"SELECT 1 FROM {client.project}.drivers.missing")


def test_an_alias_may_have_dots(client):
    """SQLAlchemy names a table's alias by the path of the table."""
    sql = "SELECT `a.t_2`.`n`, part.x FROM `drivers.t_1` AS `a.t_2`, UNNEST(`a.t_2`.`parts`) AS part ORDER BY 1"
    assert rows_of(client, sql) == [(1, 10), (2, 20)]


@pytest.mark.parametrize("name", ["1param", "42", "1col:on", "a b"])
def test_a_name_of_a_parameter_in_backticks(client, name: str):
    """It may begin with a digit; SQLAlchemy calls parameters as the columns are."""
    sql = f"SELECT @`{name}`, '@`{name}`' /* @`{name}` */"
    assert rows_of(client, sql, scalar(name, "INT64", 7)) == [(7, f"@`{name}`")]
    listed = bigquery.ArrayQueryParameter(name, "INT64", [2, 3])
    assert rows_of(client, f"SELECT n FROM drivers.t_1 WHERE n IN UNNEST(@`{name}`)", listed) == [(2,)]


def test_a_parameter_of_json_is_json(client):
    rows = client.query_and_wait(
        "SELECT @j AS j, JSON_VALUE(@j, '$.a') AS a",
        job_config=bigquery.QueryJobConfig(query_parameters=[scalar("j", "JSON", {"a": [1]})]),
    )
    assert [field.field_type for field in rows.schema] == ["JSON", "STRING"]
    assert rows_of(client, "SELECT @j, INT64(@j.a)", scalar("j", "JSON", {"a": 1})) == [({"a": 1}, 1)]
    assert rows_of(client, "SELECT @j", scalar("j", "JSON", None)) == [(None,)]


def test_a_year_of_few_digits(client):
    """Python's `strftime` leaves the zeros out."""
    early = dt.datetime(1, 3, 4, 5, 6, 7)
    parameters = scalar("t", "DATETIME", "1-03-04T05:06:07.000000"), scalar("d", "DATE", "99-03-04")
    assert rows_of(client, "SELECT @t, @d", *parameters) == [(early, dt.date(99, 3, 4))]
    with pytest.raises(exceptions.BadRequest):
        rows_of(client, "SELECT @d", scalar("d", "DATE", "soon"))


def test_rowcount_of_changes(client):
    """However the driver starts a statement: with a job's id it is jobs.insert, without one jobs.query."""
    client.query_and_wait("CREATE OR REPLACE TABLE drivers.changed AS SELECT n FROM UNNEST([1, 2, 3]) AS n")
    cursor = dbapi.connect(client).cursor()
    for statement, expected in (
        ("UPDATE drivers.changed SET n = n + 1 WHERE n > 1", 2),
        ("DELETE FROM drivers.changed WHERE n > 9", 0),
        ("INSERT INTO drivers.changed (n) VALUES (8), (9)", 2),
        ("SELECT n FROM drivers.changed", 5),
    ):
        cursor.execute(statement, job_id=None if expected == 0 else f"rowcount-{uuid.uuid4().hex}")
        assert (statement, cursor.rowcount) == (statement, expected)


def test_pages_of_results_are_asked_for_by_numbers(client, local_cloud):
    job = client.query("SELECT n FROM UNNEST([1, 2, 3]) AS n ORDER BY n")
    assert [row.n for row in job.result(page_size=2)] == [1, 2, 3]
    url = f"https://bigquery.googleapis.com/bigquery/v2/projects/{client.project}/queries/{job.job_id}"
    page = local_cloud.http.get(url, params={"maxResults": "1", "startIndex": "1"}, timeout=30).json()
    assert (page["rows"], page["totalRows"], page["pageToken"]) == ([{"f": [{"v": "2"}]}], "3", "2")
    answer = local_cloud.http.get(url, params={"maxResults": "many"}, timeout=30)
    assert (answer.status_code, "maxResults" in answer.text) == (400, True)
    assert "numDmlAffectedRows" not in local_cloud.http.get(url, timeout=30).json()


def test_fields_without_names(client):
    """A struct's field that has no name is called by its place."""
    rows = client.query_and_wait("SELECT (1, 'a') AS one, [STRUCT(1.5, (TRUE, 'b'))] AS many")
    assert [[field.name for field in column.fields] for column in rows.schema] == [
        ["_field_1", "_field_2"],
        ["_field_1", "_field_2"],
    ]
    nested = {"_field_1": True, "_field_2": "b"}
    expected = ({"_field_1": 1, "_field_2": "a"}, [{"_field_1": 1.5, "_field_2": nested}])
    assert [tuple(row.values()) for row in rows] == [expected]
    asked = bigquery.StructQueryParameter("s", scalar("x", "STRING", "a"), scalar("y", "INT64", 42))
    assert rows_of(client, "SELECT (@s.x, @s.y)", asked) == [({"_field_1": "a", "_field_2": 42},)]
    assert rows_of(client, "SELECT IF(n > 1, (1, n), NULL) FROM UNNEST([1]) AS n") == [(None,)]


def test_a_star_of_structs(client):
    """Their fields are the columns."""
    for sql, names, expected in (
        ("SELECT * FROM UNNEST([(1, 'a'), (2, 'b')])", ["f0_", "f1_"], [(1, "a"), (2, "b")]),
        ("SELECT * FROM UNNEST([STRUCT(1 AS a, 2 AS b)]) AS x WHERE x.a = 1", ["a", "b"], [(1, 2)]),
        ("SELECT * FROM UNNEST([1, 2]) AS n", ["n"], [(1,), (2,)]),
        ("SELECT x FROM UNNEST([(1, 2)]) AS x", ["x"], [({"_field_1": 1, "_field_2": 2},)]),
    ):
        rows = client.query_and_wait(sql)
        assert ([field.name for field in rows.schema], sorted(row.values() for row in rows)) == (names, expected), sql


def test_texts_of_geography(client):
    shapes = {
        "POINT(1 2)": "POINT(1 2)",
        "LINESTRING (1 1, 2 2)": "LINESTRING(1 1, 2 2)",
        "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(1 1, 2 2))": "GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(1 1, 2 2))",
    }
    for written, expected in shapes.items():
        assert rows_of(client, f"SELECT ST_GEOGFROMTEXT('{written}')") == [(expected,)]
    assert rows_of(client, "SELECT [ST_GEOGPOINT(1, 2)]") == [(["POINT(1 2)"],)]


def test_a_cast_with_a_format(client):
    """pandas-gbq writes BYTES so."""
    written = base64.b64encode(b"\xf1\xac").decode()
    sql = f"SELECT CAST(s AS BYTES FORMAT 'HEX'), CAST('{written}' AS BYTES FORMAT 'BASE64') FROM UNNEST(['F1aC']) AS s"
    assert rows_of(client, sql) == [(b"\xf1\xac", b"\xf1\xac")]
    with pytest.raises(exceptions.MethodNotImplemented, match="no CAST to STRING with FORMAT 'YYYY TZH'"):
        rows_of(client, "SELECT CAST(CURRENT_DATE() AS STRING FORMAT 'YYYY TZH')")


def test_a_merge_inserts_rows_as_the_source_has_them(client):
    """By place, not by name; also behind a condition, and in a script."""
    client.query_and_wait("CREATE OR REPLACE TABLE drivers.merged AS SELECT 1 AS n, 'old' AS said")
    merge = """MERGE drivers.merged AS t
    USING (SELECT number, CONCAT('INSERT ROW ', CAST(number AS STRING)) FROM UNNEST([1, 2, 3]) AS number) AS s
    ON t.n = s.number
    WHEN MATCHED THEN UPDATE SET said = 'then insert row'
    WHEN NOT MATCHED BY TARGET AND s.number < 3 THEN INSERT ROW"""
    job = client.query(merge)
    job.result()
    assert (job.num_dml_affected_rows, job.dml_stats.inserted_row_count, job.dml_stats.updated_row_count) == (2, 1, 1)
    assert rows_of(client, "SELECT n, said FROM drivers.merged ORDER BY n") == [
        (1, "then insert row"),
        (2, "INSERT ROW 2"),
    ]
    client.query_and_wait(
        "BEGIN MERGE drivers.merged t USING (SELECT 9, 'nine') s ON FALSE WHEN NOT MATCHED THEN INSERT ROW; END"
    )
    assert rows_of(client, "SELECT said FROM drivers.merged WHERE n = 9") == [("nine",)]
    with pytest.raises(exceptions.BadRequest, match=r"(?i)column"):
        client.query_and_wait(
            "MERGE drivers.merged t USING (SELECT 5 AS n) s ON FALSE WHEN NOT MATCHED THEN INSERT ROW", job_retry=None
        )
    with pytest.raises(exceptions.BadRequest):
        client.query_and_wait(
            "MERGE drivers.merged t USING (SELECT 'x' AS n, 5 AS said) s ON FALSE WHEN NOT MATCHED THEN INSERT ROW",
            job_retry=None,
        )
    assert rows_of(client, "SELECT COUNT(*) FROM drivers.merged") == [(3,)]


def test_a_script_takes_structs_without_names(client):
    assert rows_of(client, "DECLARE a, b INT64; SET (a, b) = (CAST(2.5 AS INT64), 1); SELECT a, b") == [(3, 1)]
    assert rows_of(client, "BEGIN SELECT (1, 'x') AS pair; END") == [({"_field_1": 1, "_field_2": "x"},)]
    assert rows_of(client, "DECLARE st STRUCT<a INT64, b STRING> DEFAULT (1, 'x'); SELECT st IS NULL") == [(False,)]
