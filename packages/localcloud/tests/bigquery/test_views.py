"""Views that come by REST and those of CREATE VIEW: one thing, with columns, options, a query that is looked at."""

from __future__ import annotations

import pytest
from google.api_core.exceptions import BadRequest, Conflict, MethodNotImplemented, NotFound
from google.cloud import bigquery


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """Google's client, with a table of one row."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("looked_at", exists_ok=True)
    made.query_and_wait("CREATE OR REPLACE TABLE looked_at.t AS SELECT 1 AS i, 's' AS s")
    return made


def view_of(client: bigquery.Client, name: str, query: str) -> bigquery.Table:
    """Return a view that is not made yet."""
    view = bigquery.Table(f"{client.project}.looked_at.{name}")
    view.view_query = query
    return view


def test_a_view_is_the_same_by_rest_and_by_sql(client):
    by_rest = view_of(client, "by_rest", "SELECT i, s FROM looked_at.t;")
    by_rest.description, by_rest.friendly_name, by_rest.labels = "what", "who", {"a": "b"}
    client.create_table(by_rest)
    client.query_and_wait(
        "CREATE VIEW looked_at.by_sql OPTIONS (description = 'what', friendly_name = 'who', labels = [('a', 'b')])"
        " AS SELECT i, s FROM looked_at.t"
    )
    for name in ("by_rest", "by_sql"):
        found = client.get_table(f"looked_at.{name}")
        assert [(field.name, field.field_type) for field in found.schema] == [("i", "INTEGER"), ("s", "STRING")]
        assert (found.table_type, found.view_query.rstrip(";")) == ("VIEW", "SELECT i, s FROM looked_at.t")
        assert (found.description, found.friendly_name, found.labels) == ("what", "who", {"a": "b"})
        assert [tuple(row) for row in client.query_and_wait(f"SELECT s, i FROM looked_at.{name}")] == [("s", 1)]
    assert not [job.job_id for job in client.list_jobs() if "view_" in job.job_id]
    client.delete_table("looked_at.by_rest")
    client.query_and_wait("DROP VIEW looked_at.by_sql")
    for name in ("by_rest", "by_sql"):
        with pytest.raises(NotFound):
            client.get_table(f"looked_at.{name}")


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_a_view_with_another_query_has_other_columns(client, method):
    client.create_table(view_of(client, f"changed_{method}", "SELECT i FROM looked_at.t"))
    view = client.get_table(f"looked_at.changed_{method}")
    view.view_query, view.description = "SELECT s AS t, i FROM looked_at.t", "changed"
    if method == "PUT":
        resource = {key: value for key, value in view.to_api_repr().items() if key not in ("schema", "etag")}
        client._connection.api_request(method=method, path=view.path, data=resource)
    else:
        client.update_table(view, ["view_query", "description"])
    found = client.get_table(view)
    assert [field.name for field in found.schema] == ["t", "i"]
    assert (found.view_query, found.description) == (view.view_query, "changed")
    assert [tuple(row) for row in client.query_and_wait(f"SELECT * FROM looked_at.changed_{method}")] == [("s", 1)]
    view.view_query = "SELECT nothing FROM looked_at.t"
    with pytest.raises(BadRequest, match="Unrecognized name: nothing"):
        client.update_table(view, ["view_query"])
    assert client.get_table(view).view_query == "SELECT s AS t, i FROM looked_at.t"


def test_what_cannot_be_a_view_is_refused(client):
    with pytest.raises(BadRequest, match="Unrecognized name: nothing"):
        client.create_table(view_of(client, "wrong", "SELECT nothing FROM looked_at.t"))
    with pytest.raises(NotFound):
        client.get_table("looked_at.wrong")
    client.create_table(view_of(client, "twice", "SELECT 1 AS a"))
    with pytest.raises(Conflict):
        client.create_table(view_of(client, "twice", "SELECT 1 AS a"))
    elsewhere = bigquery.Table(f"{client.project}.looked_at_nowhere.v")
    elsewhere.view_query = "SELECT 1 AS a"
    with pytest.raises(NotFound, match="looked_at_nowhere"):
        client.create_table(elsewhere)
    with pytest.raises(NotFound, match="looked_at_nowhere"):
        client.query_and_wait("CREATE TABLE looked_at_nowhere.t AS SELECT 1 AS a")
    with pytest.raises(MethodNotImplemented, match="privacy_policy"):
        client.query_and_wait("CREATE VIEW looked_at.kept OPTIONS (privacy_policy = 'x') AS SELECT 1 AS a")


def test_columns_of_a_view_have_descriptions(client):
    client.query_and_wait(
        "CREATE VIEW looked_at.described (a OPTIONS (description = 'a number'), b) AS SELECT i, s FROM looked_at.t"
    )
    assert [(each.name, each.description) for each in client.get_table("looked_at.described").schema] == [
        ("a", "a number"),
        ("b", None),
    ]
