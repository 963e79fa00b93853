"""Each statement of a script is a job: with its rows, its error, its transaction."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a table `children.t` of two rows in Tokyo."""
    made = bigquery.Client(project=local_cloud.project)
    dataset = bigquery.Dataset(f"{made.project}.children")
    dataset.location = "asia-northeast1"
    made.create_dataset(dataset, exists_ok=True)
    made.query_and_wait("CREATE OR REPLACE TABLE children.t AS SELECT n FROM UNNEST([1, 2]) AS n")
    return made


def children_of(client: bigquery.Client, script: str) -> tuple[Any, list[Any]]:
    """Run a script; returns its job, and those of its statements in their order."""
    job = client.query(script, job_id=f"script-{uuid.uuid4().hex}", job_retry=None)
    with contextlib.suppress(exceptions.GoogleAPICallError):
        job.result()
    found = sorted(client.list_jobs(parent_job=job.job_id), key=lambda child: int(child.job_id.rpartition("_")[2]))
    return client.get_job(job.job_id), found


def test_each_statement_has_its_rows(client):
    job, children = children_of(
        client, "SELECT 1 AS a; BEGIN SELECT 'x' AS b, 2 AS c; END; SELECT n FROM children.t ORDER BY n"
    )
    assert job.num_child_jobs == 3
    assert [[dict(row) for row in child.result()] for child in children] == [
        [{"a": 1}],
        [{"b": "x", "c": 2}],
        [{"n": 1}, {"n": 2}],
    ]
    assert {child.parent_job_id for child in children} == {job.job_id}
    assert [child.statement_type for child in children] == ["SELECT"] * 3
    assert children[1].query.strip() == "SELECT 'x' AS b, 2 AS c"


def test_changes_say_what_they_changed(client):
    _, children = children_of(
        client,
        "CREATE OR REPLACE TABLE children.made AS SELECT 1 AS n; INSERT children.made (n) VALUES (2), (3);"
        " UPDATE children.made SET n = 0 WHERE n > 1; EXECUTE IMMEDIATE 'DELETE FROM children.made WHERE n = 0';"
        " SELECT COUNT(*) AS left_over FROM children.made",
    )
    kinds = ["CREATE_TABLE_AS_SELECT", "INSERT", "UPDATE", "DELETE", "SELECT"]
    assert [child.statement_type for child in children] == kinds
    assert [child.num_dml_affected_rows for child in children[1:3]] == [2, 2]
    assert [row.left_over for row in children[-1].result()] == [1]


def test_what_fails_is_the_last(client):
    job, children = children_of(client, "SELECT 1; SELECT ERROR('broken'); SELECT 2")
    assert "broken" in job.error_result["message"]
    assert [child.error_result is None for child in children] == [True, False]
    assert "broken" in children[1].error_result["message"]


def test_a_transaction_has_an_id(client):
    script = "BEGIN TRANSACTION; INSERT children.t (n) VALUES (9); COMMIT TRANSACTION; SELECT 1"
    job, first = children_of(client, script)
    _, second = children_of(client, script.replace("COMMIT", "ROLLBACK"))
    ids = [
        [child.transaction_info and child.transaction_info.transaction_id for child in each] for each in (first, second)
    ]
    assert job.transaction_info is None
    assert [len(set(each[:3])) for each in ids] == [1, 1]
    assert [each[3] for each in ids] == [None, None]
    assert ids[0][0] != ids[1][0]
    assert [child.statement_type for child in first] == ["BEGIN_TRANSACTION", "INSERT", "COMMIT_TRANSACTION", "SELECT"]


def test_a_loop_has_a_job_for_each_turn(client):
    script = "DECLARE x INT64 DEFAULT 0; WHILE x < 3 DO SET x = x + 1; SELECT x AS turn; END WHILE"
    _, children = children_of(client, script)
    assert [[row.turn for row in child.result()] for child in children] == [[1], [2], [3]]


def test_lists_have_parents_alone_and_a_statement_has_no_children(client):
    job, children = children_of(client, "SELECT 1; SELECT 2")
    alone, none = children_of(client, "SELECT 1")
    assert (none, alone.num_child_jobs) == ([], 0)
    listed = {each.job_id for each in client.list_jobs()}
    assert {job.job_id, alone.job_id} <= listed
    assert not listed & {child.job_id for child in children}


def test_children_are_where_their_script_is(client):
    job, children = children_of(client, "SELECT n FROM children.t; SELECT 2 AS n")
    assert {job.location, *(child.location for child in children)} == {"asia-northeast1"}
    assert [row.n for row in children[1].result()] == [2]


def test_a_statement_says_where_it_stands(client):
    """As `bq` prints it: a script without these it cannot show."""
    script = "SELECT 1;\n\n  SELECT 2;\nEXECUTE IMMEDIATE 'SELECT 3'"
    _, children = children_of(client, script)
    frames = [child._properties["statistics"]["scriptStatistics"]["stackFrames"][0] for child in children]
    assert [(frame["startLine"], frame["startColumn"]) for frame in frames[:2]] == [(1, 1), (3, 3)]
    assert [(frame["endLine"], frame["endColumn"]) for frame in frames[:2]] == [(1, 9), (3, 11)]
    assert [frame["text"] for frame in frames] == ["SELECT 1", "SELECT 2", "SELECT 3"]
