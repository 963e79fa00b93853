"""What other databases understand is refused by name, and what looks like it is answered."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, GoogleAPICallError, MethodNotImplemented
from google.cloud import bigquery

import localcloud
from localcloud.bigquery.language.names import NOT_ANSWERED
from localcloud.bigquery.language.signatures import ANSWERED
from packages.localcloud.tests.bigquery import test_documented_answers as documented
from packages.localcloud.tests.bigquery.language.foreign import CALLS, FUNCTIONS, QUERIES, ROW, TAKEN, TYPES
from tests.support.local_cloud import LOCALCLOUD_PYTHON

TABLE = "foreign_words.one"
READ = """
import json, sys
from localcloud.bigquery.language.reading import read
found = set()
for text in json.load(sys.stdin):
    found |= {each.name.upper().removeprefix("SAFE.") for each in read(text).functions}
json.dump(sorted(found), sys.stdout)
"""
ARGUMENTS = {
    "APPROX_TOP_SUM": "1, 2, 3",
    "COLLATE": "'a', 'und:ci'",
    "JSON_ARRAY_APPEND": "1, 2, 3",
    "ST_DISTANCE": "1, 2",
}
OF_TABLES = {"GAP_FILL", "VECTOR_SEARCH"}
ELSEWHERE = {
    "MAKE_INTERVAL": "test_assigned_fields.py",
}
"""Functions that tests beside the documented answers hold."""


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """Google's client, with a table of one row."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("foreign_words", exists_ok=True)
    made.query_and_wait(f"CREATE OR REPLACE TABLE {TABLE} AS {ROW}")
    return made


def said_of(client: bigquery.Client, statements: Iterable[str], **settings: Any) -> dict[str, str]:
    """Return what is said of each statement; "" of one that has an answer."""
    said = {}
    for statement in statements:
        config = bigquery.QueryJobConfig(**settings)
        try:
            client.query(statement.replace("$t", TABLE), job_config=config, retry=None, job_retry=None).result(
                retry=None
            )
            said[statement] = ""
        except GoogleAPICallError as error:
            said[statement] = f"{type(error).__name__}: {error}"
    return said


def wrong(found: dict[str, str], words: dict[str, str]) -> dict[str, str]:
    """Return what was not refused as BigQuery refuses it."""
    return {each: said for each, said in found.items() if BadRequest.__name__ not in said or words[each] not in said}


@pytest.mark.parametrize("dry_run", [False, True])
def test_functions_of_other_databases_are_not_found(client, dry_run):
    words = {f"SELECT {each} FROM $t": f"Function not found: {each.partition('(')[0]}" for each in FUNCTIONS}
    assert wrong(said_of(client, words, dry_run=dry_run), words) == {}


@pytest.mark.parametrize("dry_run", [False, True])
def test_calls_with_other_counts_of_arguments_are_refused(client, dry_run):
    words = {f"SELECT {each} FROM $t": "" for each in CALLS}
    assert wrong(said_of(client, words, dry_run=dry_run), words) == {}


def test_types_of_other_databases_are_not_found(client):
    words = {f"SELECT CAST(i AS {each}) FROM $t": f"Type not found: {each}" for each in TYPES}
    assert wrong(said_of(client, words), words) == {}


def test_clauses_and_statements_of_other_databases_are_refused(client):
    words = dict(QUERIES)
    assert wrong(said_of(client, words), words) == {}
    (row,) = client.query_and_wait(f"SELECT COUNT(*) AS rows_, ANY_VALUE(i) AS i FROM {TABLE}")
    assert (row.rows_, row.i) == (1, 1)  # nothing was changed
    assert [table.table_id for table in client.list_tables("foreign_words")] == ["one"]  # nothing was made
    assert [*client.list_routines("foreign_words")] == []


def test_what_looks_like_it_is_answered(client):
    assert {each: said for each, said in said_of(client, TAKEN).items() if said} == {}


def test_a_text_is_no_way_to_a_table_of_another(client):
    """DuckDB reads the statement that a text has, which nobody has asked whose table it reads."""
    statement = "SELECT * FROM query('SELECT 42 AS x')"
    assert "Table-valued function not found" in said_of(client, [statement])[statement]


def test_functions_that_are_not_here_are_refused_by_name(client):
    """What BigQuery has, and the local cloud does not."""
    asked = {f"SELECT {each}({ARGUMENTS.get(each, 1)})": each for each in sorted(NOT_ANSWERED - OF_TABLES)}
    found = said_of(client, asked, dry_run=True)
    assert {
        each: said
        for each, said in found.items()
        if MethodNotImplemented.__name__ not in said or asked[each] not in said
    } == {}


def test_what_comes_by_rest_is_looked_at_too(client, local_cloud):
    view = bigquery.Table(f"{local_cloud.project}.foreign_words.by_rest")
    view.view_query = f"SELECT LISTAGG(s, ',') AS x FROM {TABLE}"
    routine = bigquery.Routine(f"{local_cloud.project}.foreign_words.typed", type_="SCALAR_FUNCTION", language="SQL")
    routine.arguments = [
        bigquery.RoutineArgument(
            name="x", data_type=bigquery.StandardSqlDataType(type_kind=bigquery.StandardSqlTypeNames.INT64)
        )
    ]
    routine.body = "TYPEOF(x)"
    with pytest.raises(BadRequest, match="Function not found: LISTAGG"):
        client.create_table(view)
    with pytest.raises(BadRequest, match="Function not found: TYPEOF"):
        client.create_routine(routine)


def test_a_function_that_is_answered_has_a_documented_answer():
    """One outside the battery is answered by DuckDB, as it likes."""
    texts = [f"SELECT {expression}" for group in documented.DOCUMENTED.values() for expression, _ in group]
    run = subprocess.run(
        [LOCALCLOUD_PYTHON, "-c", READ],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(localcloud.__file__).parents[1])},
    )
    used = set(json.loads(run.stdout))
    assert ANSWERED.keys() - used - set(ELSEWHERE) == set()
    assert set() == ANSWERED.keys() & NOT_ANSWERED
