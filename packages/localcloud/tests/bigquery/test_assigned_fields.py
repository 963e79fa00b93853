"""UPDATE and MERGE that assign to fields of structs, to columns with their table's name, and DEFAULT.

https://cloud.google.com/bigquery/docs/reference/standard-sql/dml-syntax#update_statement
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest
from google.cloud import bigquery

STORED = {"x": 1, "Y": "a", "deep": {"k": dt.date(2020, 1, 2), "m": [1, 2]}}
TABLE = (
    "CREATE OR REPLACE TABLE assigned.t (i INT64 DEFAULT 5, s STRING DEFAULT 'given', day DATE,"
    " st STRUCT<x INT64, Y STRING, deep STRUCT<k DATE, m ARRAY<INT64>>>, a ARRAY<STRUCT<u INT64>>)"
)
ROW = (
    "INSERT assigned.t (i, s, st) VALUES (1, 's',"
    " STRUCT(1 AS x, 'a' AS Y, STRUCT(DATE '2020-01-02' AS k, [1, 2] AS m) AS deep))"
)
MERGE_BOTH = (
    "MERGE assigned.t USING (SELECT 99 AS k) ON i = k WHEN NOT MATCHED THEN INSERT (i, s) VALUES (k, DEFAULT)"
    " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET st.x = 4"
)


@pytest.fixture
def client(local_cloud) -> bigquery.Client:
    """Google's client, with a table of one row."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("assigned", exists_ok=True)
    made.query_and_wait(TABLE)
    made.query_and_wait(ROW)
    return made


def changed(client: bigquery.Client, statement: str, **settings: Any) -> dict[str, Any]:
    """Run a statement; return the row."""
    config = bigquery.QueryJobConfig(**settings)
    client.query(statement, job_config=config, retry=None, job_retry=None).result(retry=None)
    (row,) = client.query_and_wait("SELECT i, s, day, st FROM assigned.t WHERE i != 99")
    return dict(row)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("UPDATE assigned.t SET st.x = 2 WHERE TRUE", {"st": {**STORED, "x": 2}}),
        ("UPDATE assigned.t SET ST.y = CONCAT(st.Y, s) WHERE TRUE", {"st": {**STORED, "Y": "as"}}),
        (
            "UPDATE assigned.t SET st.deep.k = '2021-01-01', i = 7, st.x = NULL WHERE TRUE",
            {"st": {**STORED, "x": None, "deep": {"k": dt.date(2021, 1, 1), "m": [1, 2]}}, "i": 7},
        ),
        ("UPDATE assigned.t z SET z.i = 3, Z.st.deep.m = [9] WHERE z.i = 1",
         {"st": {**STORED, "deep": {"k": dt.date(2020, 1, 2), "m": [9]}}, "i": 3}),
        ("UPDATE assigned.t SET t.i = 3 WHERE TRUE", {"i": 3}),
        ("UPDATE assigned.t SET st.Y = '\\u00e9', s = r'\\d' WHERE TRUE", {"st": {**STORED, "Y": "é"}, "s": "\\d"}),
        ("UPDATE assigned.t z SET st.x = u.k FROM (SELECT 8 AS k, 1 AS i) u WHERE u.i = z.i",
         {"st": {**STORED, "x": 8}}),
        ("UPDATE assigned.t SET i = DEFAULT, s = default, day = DEFAULT WHERE TRUE", {"i": 5, "s": "given"}),
        ("UPDATE assigned.t SET s = 'DEFAULT', i = DEFAULT WHERE TRUE", {"i": 5, "s": "DEFAULT"}),
        ("MERGE assigned.t z USING (SELECT 1 AS k) ON i = k WHEN MATCHED THEN UPDATE SET z.s = DEFAULT, st.x = k + 1",
         {"s": "given", "st": {**STORED, "x": 2}}),
        (MERGE_BOTH, {"st": {**STORED, "x": 4}}),
        ("DECLARE v INT64 DEFAULT 12; UPDATE assigned.t SET st.x = v, s = DEFAULT, st.Y = 'v' WHERE i = 1;",
         {"s": "given", "st": {**STORED, "x": 12, "Y": "v"}}),
    ],
)  # fmt: skip
def test_what_is_assigned_is_there(client, statement, expected):
    """And nothing else is changed."""
    assert changed(client, statement) == {"i": 1, "s": "s", "day": None, "st": STORED, **expected}


def test_a_field_of_nothing_makes_a_struct(client):
    client.query_and_wait("UPDATE assigned.t SET st = NULL WHERE TRUE")
    assert changed(client, "UPDATE assigned.t SET st.x = 2 WHERE TRUE")["st"] == {"x": 2, "Y": None, "deep": None}


@pytest.mark.parametrize("named", [True, False], ids=["named", "positional"])
def test_parameters_stay_with_their_columns(client, named):
    """Also where the fields of one struct stand around another column."""
    values = [("x", "INT64", 3), ("s", "STRING", "@x ?"), ("y", "STRING", "y"), ("i", "INT64", 1)]
    parameters = [bigquery.ScalarQueryParameter(name if named else None, kind, each) for name, kind, each in values]
    x, s, y, i = (f"@{name}" if named else "?" for name, _, _ in values)
    statement = f"UPDATE assigned.t SET st.x = {x}, s = {s}, st.Y = {y} WHERE i = {i}"
    row = changed(client, statement, query_parameters=parameters)
    assert (row["s"], row["st"]) == ("@x ?", {**STORED, "x": 3, "Y": "y"})


@pytest.mark.parametrize(
    ("assigned", "said"),
    [
        ("st.zz = 1", "Field name zz does not exist in STRUCT<x INT64, "),
        ("a.u = 1", "Cannot access field u on a value with type ARRAY<STRUCT<u INT64>>"),
        ("i.u = 1", "Cannot access field u on a value with type INT64"),
        ("st.x = 1, st.X = 2", "Update item st.X assigned more than once"),
        ("st = NULL, st.x = 1", "Update item st.x overlaps with another one"),
        ("st.deep.k = NULL, st.deep = NULL", "Update item st.deep assigned more than once"),
    ],
)
def test_what_no_field_is_is_refused(client, assigned, said):
    with pytest.raises(BadRequest) as refused:
        changed(client, f"UPDATE assigned.t SET {assigned} WHERE TRUE")
    assert said in str(refused.value)
