"""Each file of `bigquery/patches/sql` patches a fault that bqemulator still has: with it right, without it wrong."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.cloud import bigquery

import localcloud
from packages.localcloud.tests.bigquery.patches.conftest import rows_of, what_comes

PATCHES = Path(localcloud.__file__).parent / "bigquery" / "patches" / "sql"
# Patch: a statement, and the columns and rows that BigQuery gives, or the kind of the refusal.
FAULTS: dict[str, tuple[str, list[dict[str, Any]] | str]] = {
    "array_indexes": (
        "SELECT [10, 20, 30][OFFSET(o)] v FROM UNNEST([2, 0]) o ORDER BY v",
        [{"v": 10}, {"v": 30}],
    ),
    "byte_literals": ("SELECT TO_HEX(b'\\x00\\xff') v", [{"v": "00ff"}]),
    "column_names": ("SELECT COUNT(*), 1", [{"f0_": 1, "f1_": 1}]),
    "arrays_without_nulls": (
        "SELECT ARRAY_AGG(DISTINCT x IGNORE NULLS) v FROM UNNEST([2, NULL, 2]) x",
        [{"v": [2]}],
    ),
    "offset_names": (
        "SELECT o FROM (SELECT o FROM UNNEST(['a', 'b']) WITH OFFSET AS o) ORDER BY o",
        [{"o": 0}, {"o": 1}],
    ),
    "selected_structs": (
        "SELECT ARRAY(SELECT AS STRUCT LOWER(x) AS n FROM UNNEST(['B', 'A']) x ORDER BY n) v",
        [{"v": [{"n": "a"}, {"n": "b"}]}],
    ),
    "struct_fields": ("SELECT STRUCT(a, t.b) v FROM (SELECT 1 a, 'x' b) t", [{"v": {"a": 1, "b": "x"}}]),
    "top_counts": (
        "SELECT APPROX_TOP_COUNT(x, 1) v FROM UNNEST(['a', 'b', 'a']) x",
        [{"v": [{"value": "a", "count": 2}]}],
    ),
    "operators": ("SELECT -1 >> 1 v", [{"v": 9223372036854775807}]),
    "dates": ("SELECT DATE_TRUNC(DATE '2017-11-05', WEEK(MONDAY)) v", [{"v": date(2017, 10, 30)}]),
    "time_formats": ("SELECT FORMAT_TIMESTAMP('%E3S', TIMESTAMP '2020-01-01 00:00:01.5+00') v", [{"v": "01.500"}]),
    "conversions": ("SELECT CAST(2.5 AS INT64) v", [{"v": 3}]),
    "json_encodings": (
        "SELECT TO_JSON_STRING(STRUCT(TIMESTAMP '2017-03-06 12:34:56+00' AS t)) v",
        [{"v": '{"t":"2017-03-06T12:34:56Z"}'}],
    ),
    "bounds": ("SELECT ARRAY_SLICE([1, 2, 3], 1, 2) v", [{"v": [2, 3]}]),
    "nested_keys": ('SELECT JSON_KEYS(JSON \'{"b": {"c": 1}, "a": 2}\') v', [{"v": ["a", "b", "b.c"]}]),
    "overflows": ("SELECT SAFE.POW(n, 400) v FROM UNNEST([10.0]) n", [{"v": None}]),
    "text_escapes": ("SELECT '\\u00e9' v", [{"v": "é"}]),
    "deletes": (
        (
            "CREATE SCHEMA IF NOT EXISTS patched;"
            " CREATE OR REPLACE TABLE patched.deleted AS SELECT n FROM UNNEST([1, 2]) n;"
            " DELETE patched.deleted WHERE n = 2;"
            " SELECT n v FROM patched.deleted"
        ),
        [{"v": 1}],
    ),
    "text_lengths": (
        (
            "CREATE SCHEMA IF NOT EXISTS patched;"
            " CREATE OR REPLACE TABLE patched.limited (a STRING(2), b BYTES(2));"
            " INSERT patched.limited (a, b) VALUES ('éé', b'xy');"
            " BEGIN INSERT patched.limited (a) VALUES ('abc'); EXCEPTION WHEN ERROR THEN SELECT 1; END;"
            " SELECT COUNT(*) v FROM patched.limited"
        ),
        [{"v": 1}],
    ),
    "like_escapes": (
        "SELECT STRING_AGG(x ORDER BY x) v FROM UNNEST(['a%b', 'axb']) x WHERE x LIKE CONCAT('a', '\\\\%', 'b')",
        [{"v": "a%b"}],
    ),
    "merged_rows": (
        (
            "CREATE SCHEMA IF NOT EXISTS patched;"
            " CREATE OR REPLACE TABLE patched.merged AS SELECT 1 AS n;"
            " MERGE patched.merged t USING (SELECT 2) s ON FALSE WHEN NOT MATCHED THEN INSERT ROW;"
            " SELECT n v FROM patched.merged ORDER BY n"
        ),
        [{"v": 1}, {"v": 2}],
    ),
    "cast_formats": ("SELECT CAST('4865' AS BYTES FORMAT 'HEX') v", [{"v": b"He"}]),
    "table_paths": (
        (
            "CREATE SCHEMA IF NOT EXISTS patched;"
            " CREATE OR REPLACE TABLE patched.pathed AS SELECT 1 AS a, STRUCT(2 AS b) AS s;"
            " SELECT patched.pathed.a, `patched.pathed`.`s`.b FROM patched.pathed"
        ),
        [{"a": 1, "b": 2}],
    ),
    "not_a_number": ("SELECT x > 1 v FROM UNNEST([CAST('NaN' AS FLOAT64)]) x", [{"v": False}]),
    "nan_orders": (
        "SELECT IS_NAN(x) v FROM UNNEST([1.0, CAST('NaN' AS FLOAT64)]) x ORDER BY x",
        [{"v": True}, {"v": False}],
    ),
    "sums": (
        "SELECT AVG(x) v FROM UNNEST([NUMERIC '1', NUMERIC '1', NUMERIC '2']) x",
        [{"v": Decimal("1.333333333")}],
    ),
    "json_arrays": ("SELECT JSON_VALUE_ARRAY('[\"a\", {}]') IS NULL v", [{"v": True}]),
    "strict_json": ("SELECT LAX_INT64(JSON 'true') v", [{"v": 1}]),
    "literal_times": (
        "SELECT FORMAT_TIMESTAMP('%F %T', TIMESTAMP_ADD('2020-01-02 03:04:05', INTERVAL 1 DAY)) v",
        [{"v": "2020-01-03 03:04:05"}],
    ),
    "strict_casts": ("SELECT SAFE_CAST('yes' AS BOOL) v", [{"v": None}]),
    "concatenations": ("SELECT CONCAT(b'a', b'b') v", [{"v": b"ab"}]),
    "struct_positions": ("SELECT STRUCT(1 AS a) = STRUCT(1 AS b) v", [{"v": True}]),
    "text_functions": ("SELECT FORMAT('%s', 'x') v", [{"v": "x"}]),
    "decimals": ("SELECT DIV(NUMERIC '7.5', 2) v", [{"v": Decimal(3)}]),
    "refused_functions": (
        "SELECT ARRAY_LENGTH(APPROX_TOP_SUM(x, 1, 1)) v FROM UNNEST([1]) x",
        "MethodNotImplemented",
    ),
    "element_names": ("SELECT x v FROM (SELECT [7] AS x) AS t, UNNEST(t.x) AS x", [{"v": 7}]),
    "divisions": ("SELECT 100 - DIV(n + 1, 3) * 2 v FROM UNNEST([95]) n", [{"v": 36}]),
}


def test_each_patch_has_its_fault() -> None:
    """And no fault is tried that has no patch any more."""
    assert set(FAULTS) == {path.stem for path in Path(PATCHES).glob("*.py")} - {"__init__", "calls"}


@pytest.mark.parametrize("patch", FAULTS)
def test_patched_it_is_right(local_cloud, patch: str) -> None:
    """As BigQuery."""
    sql, expected = FAULTS[patch]
    assert what_comes(lambda: rows_of(bigquery.Client(project=local_cloud.project), sql)) == expected


@pytest.mark.parametrize(
    "patch", [patch for patch, (sql, _) in FAULTS.items() if sql.startswith("SELECT") and patch != "column_names"]
)
def test_patched_it_is_right_in_a_view(local_cloud, patch: str) -> None:
    """What a view reads is put in its place only after the statement around it was rewritten."""
    sql, expected = FAULTS[patch]
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("patched", exists_ok=True)

    def read() -> list[dict[str, Any]]:
        client.query_and_wait(f"CREATE OR REPLACE VIEW patched.view_of_{patch} AS {sql}", job_retry=None)
        outer = f"CREATE OR REPLACE VIEW patched.outer_of_{patch} AS SELECT * FROM patched.view_of_{patch}"
        client.query_and_wait(outer, job_retry=None)
        return rows_of(client, f"SELECT * FROM patched.outer_of_{patch}")

    assert what_comes(read) == expected


@pytest.mark.parametrize("patch", FAULTS)
def test_unpatched_it_is_wrong(unpatched: bigquery.Client, patch: str) -> None:
    """When this fails bqemulator has become right: remove the patch, and its row here."""
    sql, expected = FAULTS[patch]
    assert what_comes(lambda: rows_of(unpatched, sql)) != expected


def test_the_unpatched_emulator_answers(unpatched: bigquery.Client) -> None:
    """So that it is not wrong above because it answers nothing."""
    assert what_comes(lambda: rows_of(unpatched, "SELECT 1 AS v")) == [{"v": 1}]
