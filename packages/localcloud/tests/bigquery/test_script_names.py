"""What names mean in scripts: columns go before variables, and EXECUTE IMMEDIATE sees what USING gives it."""

from __future__ import annotations

import pytest
from google.api_core import exceptions
from google.cloud import bigquery

N = "DECLARE n INT64 DEFAULT 100; "
TABLE = f"{N}CREATE TEMP TABLE t AS SELECT 5 AS n, [STRUCT(7 AS k)] AS parts; "


@pytest.fixture(scope="module")
def client(local_cloud):
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


def run(client, script):
    """Return the rows of a script's last statement."""
    return [tuple(row.values()) for row in client.query_and_wait(script, retry=None, job_retry=None)]


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        pytest.param(f"{N}SELECT n FROM (SELECT 1 AS n)", [(1,)], id="a query's column"),
        pytest.param(f"{TABLE}SELECT n FROM t", [(5,)], id="a table's column"),
        pytest.param(f"{TABLE}SELECT x.n, n FROM t AS x", [(5, 5)], id="a table with an alias"),
        pytest.param(f"{TABLE}SELECT n FROM (SELECT * FROM t)", [(5,)], id="behind a star"),
        pytest.param(f"{TABLE}SELECT n FROM (SELECT * EXCEPT (n) FROM t)", [(100,)], id="left out of a star"),
        pytest.param(f"{N}SELECT n FROM UNNEST([1, 2]) AS n ORDER BY n", [(1,), (2,)], id="an element"),
        pytest.param(f"{N}SELECT n FROM UNNEST([STRUCT(3 AS n)])", [(3,)], id="a field of elements"),
        pytest.param(
            "DECLARE k INT64 DEFAULT 1; WITH u AS (SELECT [STRUCT(7 AS k)] AS parts) SELECT k FROM u, UNNEST(u.parts)",
            [(7,)],
            id="a field of a column's elements",
        ),
        pytest.param(
            "DECLARE k INT64 DEFAULT 1; WITH u AS (SELECT ARRAY_AGG(STRUCT(x AS k)) AS parts FROM UNNEST([8]) AS x),"
            " v AS (SELECT * FROM u) SELECT part.k, k FROM v, UNNEST(parts) AS part",
            [(8, 8)],
            id="a field of a column's elements, behind a star",
        ),
        pytest.param(f"{N}WITH t AS (SELECT 1 AS n) SELECT n FROM t", [(1,)], id="a query of WITH"),
        pytest.param(f"{N}WITH t AS (SELECT n AS m) SELECT m, n FROM t", [(100, 100)], id="inside of WITH"),
        pytest.param(f"{N}SELECT * FROM (SELECT n AS k) WHERE k = n", [(100,)], id="inside of FROM"),
        pytest.param(f"{N}SELECT (SELECT n FROM UNNEST([5]) AS k) FROM (SELECT 1 AS n)", [(1,)], id="from around"),
        pytest.param(f"{N}SELECT (SELECT x + n) FROM UNNEST([1]) AS x", [(101,)], id="of no column"),
        pytest.param(
            f"{N}SELECT x AS n, COUNT(*) FROM UNNEST([1, 1, 2]) AS x GROUP BY n ORDER BY n",
            [(1, 2), (2, 1)],
            id="a name of the result",
        ),
        pytest.param("DECLARE n ARRAY<INT64> DEFAULT [2]; SELECT n FROM UNNEST(n) AS n", [(2,)], id="what is unnested"),
        pytest.param(f"{TABLE}UPDATE t SET n = n + 2 WHERE n = 5; SELECT n FROM t", [(7,)], id="updated"),
        pytest.param(f"{TABLE}DELETE FROM t WHERE n = 5; SELECT COUNT(*) FROM t", [(0,)], id="deleted"),
        pytest.param(
            f"{TABLE}MERGE t USING (SELECT 5 AS k) AS s ON n = k WHEN MATCHED THEN UPDATE SET n = 6; SELECT n FROM t",
            [(6,)],
            id="merged",
        ),
        pytest.param(f"{TABLE}INSERT INTO t (n) VALUES (n); SELECT MAX(n) FROM t", [(100,)], id="inserted"),
        pytest.param(
            "DECLARE s STRUCT<a INT64> DEFAULT STRUCT(1); SELECT s.a, (SELECT s.a FROM (SELECT 2 AS a) AS s)",
            [(1, 2)],
            id="a struct and a table",
        ),
        pytest.param(
            "DECLARE s STRUCT<a INT64> DEFAULT STRUCT(1); SELECT s.a FROM (SELECT STRUCT(2 AS a) AS s)",
            [(2,)],
            id="a struct and a column",
        ),
    ],
)
def test_a_column_goes_before_a_variable(client, script, rows):
    assert run(client, script) == rows


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        ("DECLARE v INT64 DEFAULT 1; EXECUTE IMMEDIATE 'SELECT ? - ?' USING v, 2", [(-1,)]),
        ("EXECUTE IMMEDIATE 'SELECT @x - @Y, @x' USING 2 AS y, 3 AS x", [(1, 3)]),
        ("EXECUTE IMMEDIATE \"SELECT '?@x', ?\" USING 'a'", [("?@x", "a")]),
        ("EXECUTE IMMEDIATE 'SELECT SUM(x) + ? FROM UNNEST(?) AS x' USING 10, [1, 2]", [(13,)]),
        ("DECLARE s STRUCT<a INT64> DEFAULT STRUCT(4); EXECUTE IMMEDIATE 'SELECT @s.a' USING s AS s", [(4,)]),
        ("DECLARE y INT64; EXECUTE IMMEDIATE 'SELECT ? * (? + 2)' INTO y USING 1, 3; SELECT y", [(5,)]),
        ("DECLARE y INT64; EXECUTE IMMEDIATE 'SELECT @a * (@b + 2)' INTO y USING 1 as a, 3 as b; SELECT y", [(5,)]),
        (
            "DECLARE y INT64 DEFAULT 1; EXECUTE IMMEDIATE 'SELECT 2 FROM UNNEST([1]) WHERE FALSE' INTO y; SELECT y",
            [(None,)],
        ),
        ("EXECUTE IMMEDIATE 'CREATE TEMP TABLE made AS SELECT ? AS n' USING 7; SELECT n FROM made", [(7,)]),
    ],
)
def test_a_statement_sees_what_using_gives(client, script, rows):
    assert run(client, script) == rows


def test_its_columns_are_named_as_without_parameters(client):
    found = client.query_and_wait("EXECUTE IMMEDIATE 'SELECT ?, 1 + ?' USING 1, 2", retry=None)
    assert [field.name for field in found.schema] == ["f0_", "f1_"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("DECLARE v INT64 DEFAULT 1; EXECUTE IMMEDIATE 'SELECT v'", "v"),
        ("EXECUTE IMMEDIATE 'SELECT ?, ?' USING 1", "1 given, 2 asked for"),
        ("EXECUTE IMMEDIATE 'SELECT ?' USING 1, 2", "2 given, 1 asked for"),
        ("EXECUTE IMMEDIATE 'SELECT @z' USING 1 AS x", "'z' not found"),
        ("EXECUTE IMMEDIATE 'SELECT ?, ?' USING 1 AS x, 2", "mix"),
        ("DECLARE a, b INT64; EXECUTE IMMEDIATE 'SELECT 1' INTO a, b", "2 variables"),
        ("DECLARE a INT64; EXECUTE IMMEDIATE 'SELECT 1 UNION ALL SELECT 2' INTO a", "more than one row"),
    ],
)
def test_what_does_not_fit_is_refused(client, script, message):
    with pytest.raises(exceptions.BadRequest, match=message):
        run(client, script)


@pytest.mark.parametrize(
    "function",
    [
        "TABLE FUNCTION named.f(n INT64) AS (SELECT n FROM named.t)",
        "TABLE FUNCTION named.f(N INT64) AS SELECT k FROM (SELECT * FROM named.t) WHERE n > 1",
        "FUNCTION named.f(x INT64) AS ((SELECT MAX(x) FROM UNNEST([1]) AS x))",
    ],
)
def test_a_function_whose_parameter_has_a_columns_name_is_refused(client, function):
    """BigQuery takes the column, the engine behind the local cloud the parameter."""
    client.create_dataset("named", exists_ok=True)
    client.query_and_wait("CREATE OR REPLACE TABLE named.t AS SELECT 1 AS n, 2 AS k", retry=None)
    with pytest.raises(exceptions.MethodNotImplemented, match=r"parameter [nx]"):
        client.query_and_wait(f"CREATE OR REPLACE {function}", retry=None, job_retry=None)
    other = (
        function.replace("(n INT64)", "(p INT64)").replace("(N INT64)", "(p INT64)").replace("(x INT64)", "(p INT64)")
    )
    client.query_and_wait(f"CREATE OR REPLACE {other}", retry=None, job_retry=None)
