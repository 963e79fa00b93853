"""Scripts: their statements, and the types and names of their variables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client."""
    return bigquery.Client(project=local_cloud.project)


def run(client: bigquery.Client, script: str) -> list[tuple[Any, ...]]:
    """Return the rows of a script's last statement."""
    return [tuple(row.values()) for row in client.query_and_wait(script, retry=None, job_retry=None)]


CASE = """
DECLARE said STRING;
{case}
SELECT said
"""


@pytest.mark.parametrize(
    ("script", "rows"),
    [
        ("DECLARE x INT64 DEFAULT 0; REPEAT SET x = x + 1; UNTIL x >= 3 END REPEAT; SELECT x", [(3,)]),
        ("DECLARE x INT64 DEFAULT 9; REPEAT SET x = x + 1; UNTIL TRUE END REPEAT; SELECT x", [(10,)]),
        (
            ("DECLARE x, y INT64 DEFAULT 0; REPEAT SET x = x + 1; REPEAT SET y = y + 1; UNTIL MOD(y, 2) = 0 END REPEAT;"
            " IF x = 2 THEN BREAK; END IF; UNTIL x > 9 END REPEAT; SELECT x, y"),
            [(2, 4)],
        ),
        ("repeat\nselect 1;\nuntil true\nend repeat;\nSELECT REPEAT('ab', 2)", [("abab",)]),
        (CASE.format(case="CASE WHEN FALSE THEN SET said = 'a'; WHEN 1 = 1 THEN SET said = 'b'; END CASE;"), [("b",)]),
        (CASE.format(case="CASE 1 + 2 WHEN 3 THEN SET said = 'a'; ELSE SET said = 'b'; END CASE;"), [("a",)]),
        (CASE.format(case="CASE 'x' WHEN 'y' THEN SET said = 'a'; ELSE SET said = 'b'; SET said = CONCAT(said, 'c');"
                          " END CASE;"), [("bc",)]),
        (CASE.format(case="CASE WHEN NULL THEN SET said = 'a'; END CASE;"), [(None,)]),
        (CASE.format(case="CASE WHEN (CASE WHEN TRUE THEN 1 END) = 1 THEN"
                          " CASE 2 WHEN 2 THEN SET said = 'in'; END CASE; END CASE;"), [("in",)]),
        ("ASSERT 1 = 1; SELECT 5", [(5,)]),
        ("ASSERT (SELECT COUNT(*) FROM UNNEST([1, 2])) = 2 AS 'two rows'; SELECT CASE WHEN TRUE THEN 6 END", [(6,)]),
        ("DECLARE d DATE DEFAULT '2024-01-02'; SELECT d, DATE_ADD(d, INTERVAL 1 DAY)",
         [(dt.date(2024, 1, 2), dt.date(2024, 1, 3))]),
        ("DECLARE x FLOAT64 DEFAULT 1; DECLARE n NUMERIC DEFAULT 2; SET x = 3; SELECT x, n",
         [(3.0, Decimal(2))]),
        ("DECLARE st STRUCT<a INT64, b STRING> DEFAULT (1, 'x'); SELECT st.a, st.b", [(1, "x")]),
        ("DECLARE st STRUCT<a INT64, b STRING>; SET st = STRUCT(2, 'y'); SET st = (st.a + 1, st.b); SELECT st.a",
         [(3,)]),
        ("DECLARE l ARRAY<FLOAT64> DEFAULT [1, 2]; SET l = ARRAY_CONCAT(l, [3]); SELECT l", [([1.0, 2.0, 3.0],)]),
        ("DECLARE Total INT64 DEFAULT 1; SET TOTAL = total + 1; SELECT tOtAl AS t", [(2,)]),
        ("DECLARE t TIMESTAMP DEFAULT '2024-01-02 03:04:05+00'; SELECT EXTRACT(HOUR FROM t)", [(3,)]),
        ("DECLARE s STRING; SELECT s", [(None,)]),
        ("DECLARE x DEFAULT (SELECT 7); SELECT x", [(7,)]),
        ("DECLARE a, b INT64 DEFAULT 4; SET (a, b) = (SELECT AS STRUCT 5, 6); SELECT a, b", [(5, 6)]),
    ],
)  # fmt: skip
def test_scripts_do_what_they_say(client, script, rows):
    assert run(client, script) == rows


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("ASSERT 1 = 2", "Assertion failed"),
        ("ASSERT NULL AS 'nothing is known'; SELECT 1", "Assertion failed: nothing is known"),
        ("SELECT 1; ASSERT FALSE AS '''it's broken'''", "it's broken"),
        ("REPEAT SELECT 1; END REPEAT", "UNTIL"),
        ("CASE WHEN TRUE THEN SELECT 1; END", "CASE"),
        ("DECLARE n INT64 DEFAULT 'a text'; SELECT n", "a text"),
        ("SET nowhere = 1; SELECT 1", "nowhere"),
        ("SELECT 1; RAISE USING MESSAGE = CONCAT('wrong: ', 'all');", "wrong: all"),
    ],
)
def test_what_a_script_may_not_is_named(client, script, said):
    with pytest.raises(exceptions.BadRequest, match=said):
        run(client, script)


@pytest.mark.parametrize(
    ("declared", "given"),
    [("OUT Result INT64", "result"), ("OUT result INT64", "RESULT"), ("INOUT Twice INT64", "tWICE")],
)
def test_a_procedure_gives_back_what_it_set_whatever_the_capitals(client, declared, given):
    client.create_dataset("procedures", exists_ok=True)
    run(client, f"CREATE OR REPLACE PROCEDURE procedures.p({declared}) BEGIN SET {given} = 7; END")
    assert run(client, "DECLARE Got INT64; CALL procedures.p(gOT); SELECT got") == [(7,)]
    assert run(client, "DECLARE got INT64; CALL procedures.p(got); SELECT got") == [(7,)]
