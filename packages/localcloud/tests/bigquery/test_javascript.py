"""Functions in JavaScript: documented answers, types, errors and limits.

Facts are from cloud.google.com/bigquery/docs/user-defined-functions#javascript-udf-structure.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from decimal import Decimal
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery, storage

MULTIPLY = '''
CREATE TEMP FUNCTION multiplyInputs(x FLOAT64, y FLOAT64)
RETURNS FLOAT64
LANGUAGE js
AS r"""
  return x*y;
""";
WITH numbers AS
  (SELECT 1 AS x, 5 AS y UNION ALL SELECT 2 AS x, 10 AS y UNION ALL SELECT 3 AS x, 15 AS y)
SELECT x, y, multiplyInputs(x, y) AS product FROM numbers ORDER BY x
'''
SUM_FIELDS = '''
CREATE TEMP FUNCTION SumFieldsNamedFoo(json_row STRING)
RETURNS FLOAT64
LANGUAGE js
AS r"""
  function SumFoo(obj) {
    var sum = 0;
    for (var field in obj) {
      if (obj.hasOwnProperty(field) && obj[field] != null) {
        if (typeof obj[field] == "object") {
          sum += SumFoo(obj[field]);
        } else if (field == "foo") {
          sum += obj[field];
        }
      }
    }
    return sum;
  }
  var row = JSON.parse(json_row);
  return SumFoo(row);
""";
WITH Input AS (
  SELECT STRUCT(1 AS foo, 2 AS bar, STRUCT('foo' AS x, 3.14 AS foo) AS baz) AS s, 10 AS foo
  UNION ALL SELECT NULL, 4 AS foo
  UNION ALL SELECT STRUCT(NULL, 2 AS bar, STRUCT('fizz' AS x, 1.59 AS foo) AS baz) AS s, NULL AS foo
)
SELECT SumFieldsNamedFoo(TO_JSON_STRING(t)) AS foo_sum FROM Input AS t ORDER BY foo_sum
'''
PLUS_ONE = """
CREATE TEMP FUNCTION plusOne(x FLOAT64) RETURNS FLOAT64 LANGUAGE js AS "return x+1;";
SELECT plusOne(val) AS result FROM UNNEST([1, 2, 3, 4, 5]) AS val ORDER BY val
"""
MOMENT = dt.datetime(2020, 1, 2, 3, 4, 5, 678000, tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


@pytest.fixture(scope="module")
def dataset(client) -> str:
    """A dataset."""
    return client.create_dataset(f"js_{uuid.uuid4().hex[:8]}").dataset_id


def run(client: bigquery.Client, script: str) -> list[tuple[Any, ...]]:
    """Return the rows of a script's last statement."""
    return [tuple(row.values()) for row in client.query_and_wait(script, retry=None, job_retry=None)]


def called(signature: str, body: str, *calls: str) -> str:
    """Return a script that makes a function `f` and calls it."""
    listed = ", ".join(f"f({each})" for each in calls)
    return f'CREATE TEMP FUNCTION f{signature} LANGUAGE js AS r"""{body}"""; SELECT {listed}'


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        (MULTIPLY, [(1, 5, 5.0), (2, 10, 20.0), (3, 15, 45.0)]),
        (SUM_FIELDS, [(1.59,), (4.0,), (14.14,)]),
        (PLUS_ONE, [(2.0,), (3.0,), (4.0,), (5.0,), (6.0,)]),
    ],
)
def test_documented_examples(client, script, rows):
    assert run(client, script) == rows


@pytest.mark.parametrize(
    ("signature", "body", "calls", "answers"),
    [
        ("(x FLOAT64) RETURNS FLOAT64 DETERMINISTIC", "return x", ["1", "NULL", "1.5"], (1.0, None, 1.5)),
        ("(x FLOAT64) RETURNS FLOAT64 NOT DETERMINISTIC", "return 1/x", ["CAST('-0' AS FLOAT64)"], (float("-inf"),)),
        ("(x FLOAT64) RETURNS STRING", "return x", ["1", "1.5", "CAST('nan' AS FLOAT64)"], ("1", "1.5", "NaN")),
        ("() RETURNS STRING", "return typeof setTimeout + typeof require + typeof fetch", [""], ("undefined" * 3,)),
        ("(x BOOL) RETURNS BOOL", "return !x", ["TRUE", "NULL"], (False, True)),
        ("(x STRING) RETURNS STRING", r"return x + '\n\u00e9'", ["'a'"], ("a\né",)),
        ("(x STRING) RETURNS INT64", "return x", ["'9007199254740993'"], (9007199254740993,)),
        ("(x FLOAT64) RETURNS INT64", "return x", ["2", "-3.0"], (2, -3)),
        ("(x BYTES) RETURNS STRING", "return x", ["b'abc'"], ("YWJj",)),
        ("(x STRING) RETURNS BYTES", "return x", ["'YWJj'"], (b"abc",)),
        ("(x DATE) RETURNS STRING", "return x.toISOString()", ["DATE '2020-01-02'"], ("2020-01-02T00:00:00.000Z",)),
        ("(x DATE) RETURNS DATE", "return x", ["DATE '1969-12-31'", "'2020-01-02'"],
         (dt.date(1969, 12, 31), dt.date(2020, 1, 2))),
        ("(x TIMESTAMP) RETURNS TIMESTAMP", "return x", ["TIMESTAMP '2020-01-02 03:04:05.678+00'"], (MOMENT,)),
        ("(x NUMERIC) RETURNS STRING", "return typeof x + x", ["NUMERIC '1.50'", "3", "NUMERIC '9007199254740993'"],
         ("string1.5", "number3", "string9007199254740993")),
        ("(x STRING) RETURNS NUMERIC", "return x", ["'0.1'", "'12345678901234567890.123456789'"],
         (Decimal("0.1"), Decimal("12345678901234567890.123456789"))),
        ("(x JSON) RETURNS JSON", "x.n = x.a.length; return x", ["""JSON '{"a": [1, 2]}'"""],
         ({"a": [1, 2], "n": 2},)),
        ("(x ARRAY<FLOAT64>) RETURNS ARRAY<STRING>", "return x.map(String)", ["[1, 2]", "[1.5]"],
         (["1", "2"], ["1.5"])),
        ("(x STRUCT<a FLOAT64, b ARRAY<STRING>>) RETURNS INT64", "return x.a + x.b.length",
         ["STRUCT(2.0 AS a, ['x'] AS b)"], (3,)),
        ("(x STRING) RETURNS STRUCT<a STRING, b STRUCT<c FLOAT64>>", "return {b: {c: 1}, more: x}", ["'x'"],
         ({"a": None, "b": {"c": 1.0}},)),
        ("(x FLOAT64) RETURNS STRING", "return new Promise(r => r('p' + x))", ["1"], ("p1",)),
        ("(x FLOAT64) RETURNS STRING", "await_ = async () => { await 1; return 'later' }; return await_()", ["1"],
         ("later",)),
        ("(x FLOAT64) RETURNS FLOAT64", "return undefined", ["1"], (None,)),
    ],
)  # fmt: skip
def test_values_of_each_type(client, signature, body, calls, answers):
    assert run(client, called(signature, body, *calls)) == [answers]


@pytest.mark.parametrize(
    ("signature", "body", "call", "said"),
    [
        ("(x FLOAT64) RETURNS FLOAT64", "\n  throw new Error('too much')", "1",
         r"Error: too much at f\(FLOAT64\) line 2, columns 9-10"),
        ("(x STRING, y BOOL) RETURNS FLOAT64", "return x.y.z", "'x', TRUE",
         r"TypeError: .* at f\(STRING, BOOL\) line 1, columns 12-13"),
        ("(x FLOAT64) RETURNS FLOAT64", "retrn x", "1", r"SyntaxError: .* at f\(FLOAT64\)"),
        ("(x FLOAT64) RETURNS FLOAT64", "return Promise.reject(new Error('no'))", "1", r"Error: no at f"),
        ("(x FLOAT64) RETURNS FLOAT64", "return new Promise(() => {})", "1", "never settled"),
        ("(x FLOAT64) RETURNS FLOAT64", "return 'a'", "1", 'Failed to coerce output value "a" to type FLOAT64'),
        ("(x FLOAT64) RETURNS INT64", "return x", "1.5", "Failed to coerce output value 1.5 to type INT64"),
        ("(x FLOAT64) RETURNS INT64", "return '9223372036854775808'", "1", "to type INT64"),
        ("(x FLOAT64) RETURNS DATE", "return '2020-01-02'", "1", "to type DATE"),
        ("(x FLOAT64) RETURNS ARRAY<STRING>", "return 'a'", "1", "to type ARRAY<STRING>"),
        ("(x FLOAT64) RETURNS STRUCT<a STRING>", "return 'a'", "1", "to type STRUCT<a STRING>"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_said_with_the_functions_name(client, signature, body, call, said):
    with pytest.raises(exceptions.BadRequest, match=said) as caught:
        run(client, called(signature, body, call))
    assert caught.value.errors[0]["reason"] == "invalidQuery"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (called("(x INT64) RETURNS FLOAT64", "return x", "1"), "parameter x of type INT64"),
        (called("(x ARRAY<INT64>) RETURNS FLOAT64", "return x", "[1]"), "parameter x of type INT64"),
        (called("(x DATETIME) RETURNS FLOAT64", "return x", "NULL"), "parameter x of type DATETIME"),
        (called("(x BIGNUMERIC) RETURNS FLOAT64", "return x", "1"), "parameter x of type BIGNUMERIC"),
        (called("(x FLOAT64) RETURNS GEOGRAPHY", "return x", "1"), "value of type GEOGRAPHY"),
        (called("(x FLOAT64)", "return x", "1"), "without RETURNS"),
        (called("(x FLOAT64) RETURNS FLOAT64", "return x", "'1'"), r"f\(FLOAT64\) for arguments of other types"),
        (called("(x STRING) RETURNS STRING", "return x", "1"), r"f\(STRING\) for arguments of other types"),
        (called("(x ARRAY<FLOAT64>) RETURNS FLOAT64", "return 1", "GENERATE_ARRAY(1, 2)"), "arguments of other types"),
        (called("(x DATE) RETURNS DATE", "return x", "CONCAT('2020-01-0', '2')"), "arguments of other types"),
        (called("(x TIMESTAMP) RETURNS DATE", "return x", "DATE '2020-01-02'"), "arguments of other types"),
        (called("(x FLOAT64) RETURNS ARRAY<STRING>", "return [null]", "1"), "NULL in an array"),
        (called("(x TIMESTAMP) RETURNS TIMESTAMP", "return x", "TIMESTAMP '2020-01-01 00:00:00.000001+00'"),
         "given with microseconds"),
        (called("(x TIMESTAMP) RETURNS FLOAT64", "return x.microsecond", "TIMESTAMP '2020-01-01 00:00:00.001+00'"),
         "field microsecond"),
        ("CREATE TEMP FUNCTION f(x FLOAT64) RETURNS FLOAT64 LANGUAGE python AS 'x'; SELECT 1", "language python"),
        ("CREATE TEMP FUNCTION f(x FLOAT64) RETURNS FLOAT64 LANGUAGE js OPTIONS(strict=1) AS 'x'; SELECT 1", "strict"),
        ("CREATE TEMP AGGREGATE FUNCTION f(x FLOAT64) RETURNS FLOAT64 LANGUAGE js AS 'x'; SELECT 1", "AGGREGATE"),
    ],
)  # fmt: skip
def test_what_is_not_offered_is_named(client, statement, said):
    with pytest.raises(exceptions.MethodNotImplemented, match=said):
        run(client, statement)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("while (true) {}", "UDF timed out"),
        ("const all = []; while (true) all.push(new Array(1000).fill('x'))", "UDF (out of memory|timed out)"),
        ("return 'x'.repeat(2 ** 29 - 30).split('').length", "UDF (out of memory|timed out)"),
    ],
)
def test_what_takes_too_much_ends_and_the_next_function_runs(client, body, said):
    began = time.monotonic()
    with pytest.raises(exceptions.BadRequest, match=said) as caught:
        run(client, called("(x FLOAT64) RETURNS FLOAT64", body, "1"))
    assert caught.value.errors[0]["reason"] == "resourcesExceeded"
    assert time.monotonic() - began < 60
    assert run(client, called("(x FLOAT64) RETURNS FLOAT64", "return x + 1", "1")) == [(2.0,)]


def test_a_function_is_called_for_rows_that_ask_for_it(client):
    script = called("(x FLOAT64) RETURNS STRING", "if (x > 2) throw 'too much'; return x", "1")
    script = script.partition("SELECT")[0] + "SELECT IF(x < 3, f(x), 'no') FROM UNNEST([1, 3]) x ORDER BY x"
    assert run(client, script) == [("1",), ("no",)]


def test_each_row_has_its_call(client):
    script = called("() RETURNS FLOAT64", "return Math.random()", "").partition("SELECT")[0]
    assert run(client, script + "SELECT COUNT(DISTINCT f()) FROM UNNEST(GENERATE_ARRAY(1, 3000))") == [(3000,)]


def test_a_function_of_a_dataset_is_kept_replaced_and_dropped(client, dataset):
    name = f"{dataset}.twice"
    head = f"CREATE OR REPLACE FUNCTION {name}(x FLOAT64) RETURNS FLOAT64 DETERMINISTIC LANGUAGE js"
    run(client, f"{head} OPTIONS(description='Twice.') AS 'return x * 2'")
    routine = client.get_routine(name)
    assert (routine.language, routine.description, routine.determinism_level, routine.body) == (
        "JAVASCRIPT", "Twice.", "DETERMINISTIC", "return x * 2",
    )  # fmt: skip
    assert run(client, f"SELECT {name}(x), {name}(2.5) FROM UNNEST([1, 2]) x ORDER BY x") == [(2.0, 5.0), (4.0, 5.0)]
    run(client, f"{head} AS 'return x * 3'")
    assert run(client, f"SELECT {name}(1)") == [(3.0,)]
    run(client, f"DROP FUNCTION {name}")
    with pytest.raises(exceptions.BadRequest, match="Function not found"):
        run(client, f"SELECT {name}(1)")


def test_a_refused_function_is_not_kept(client, dataset):
    with pytest.raises(exceptions.MethodNotImplemented, match="INT64"):
        run(client, f"CREATE FUNCTION {dataset}.refused(x INT64) RETURNS FLOAT64 LANGUAGE js AS 'return x'")
    assert "refused" not in [each.routine_id for each in client.list_routines(dataset)]


def test_a_routine_of_the_api_reads_its_libraries(client, dataset, local_cloud):
    bucket = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket)
    library = bucket.blob(f"js/{dataset}.js")
    library.upload_from_string("function maxValue(all) { return Math.max(...all); }")
    kinds = bigquery.StandardSqlTypeNames
    floats = bigquery.StandardSqlDataType(kinds.FLOAT64)
    routine = bigquery.Routine(f"{client.project}.{dataset}.largest")
    routine.language, routine.type_, routine.body = "JAVASCRIPT", "SCALAR_FUNCTION", "return maxValue(x)"
    routine.return_type = floats
    routine.arguments = [
        bigquery.RoutineArgument(
            name="x", data_type=bigquery.StandardSqlDataType(kinds.ARRAY, array_element_type=floats)
        )
    ]
    routine.imported_libraries = [f"gs://{bucket.name}/{library.name}"]
    made = client.create_routine(routine)
    assert made.imported_libraries == routine.imported_libraries
    asked = f"SELECT {dataset}.largest([-1.23, 4.56, 7.89])"
    assert run(client, asked) == [(7.89,)]
    library.upload_from_string("function maxValue(all) { return all.length; }")
    assert run(client, asked) == [(3.0,)]
    library.delete()
    with pytest.raises(exceptions.NotFound, match=library.name):
        run(client, asked)


def test_a_temporary_function_reads_its_libraries(client, local_cloud):
    blob = storage.Client(project=local_cloud.project).bucket(local_cloud.bucket).blob(f"js/{uuid.uuid4().hex}.js")
    blob.upload_from_string("const shown = x => `<${x}>`;")
    head = "CREATE TEMP FUNCTION f(a FLOAT64, b STRING) RETURNS STRING LANGUAGE js"
    option = f"OPTIONS (library=['gs://{local_cloud.bucket}/{blob.name}'])"
    for statement in (f"{head} {option} AS r'return shown(a + b)'", f"{head} AS r'return shown(a + b)' {option}"):
        assert run(client, f"{statement}; SELECT f(3.14, 'foo')") == [("<3.14foo>",)]
