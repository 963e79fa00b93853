"""The last row access policy of a table goes only with `force`, or by DROP ALL ROW ACCESS POLICIES.

https://cloud.google.com/bigquery/docs/reference/rest/v2/rowAccessPolicies/delete
"""

from __future__ import annotations

import uuid

import pytest
import requests
from google.api_core.exceptions import BadRequest, NotFound
from google.cloud import bigquery

REFUSED = "Cannot delete the last row access policy on table"


class Policies:
    """Two row access policies of a fresh table, `one` and `two`, and calls about them."""

    def __init__(self, local_cloud) -> None:
        self._client = bigquery.Client(project=local_cloud.project)
        self._client.create_dataset("policies", exists_ok=True)
        self.table = f"policies.t{uuid.uuid4().hex}"
        self.run(f"CREATE TABLE {self.table} AS SELECT 1 AS n")
        for name in ("one", "two"):
            self.run(f"CREATE ROW ACCESS POLICY {name} ON {self.table} GRANT TO ('allUsers') FILTER USING (n > 0)")
        self._http = local_cloud.http
        dataset, table = self.table.split(".")
        place = f"projects/{local_cloud.project}/datasets/{dataset}/tables/{table}/rowAccessPolicies"
        self._url = f"https://bigquery.googleapis.com/bigquery/v2/{place}"

    def run(self, statement: str, *, dry_run: bool = False) -> bigquery.QueryJob:
        """Run a statement; nothing is tried again."""
        config = bigquery.QueryJobConfig(dry_run=dry_run)
        job = self._client.query(statement, job_config=config, retry=None, job_retry=None)
        if not dry_run:
            job.result(retry=None)
        return job

    def names(self) -> list[str]:
        """List those that are there."""
        found = self._http.get(self._url, timeout=30).json().get("rowAccessPolicies", [])
        return sorted(each["rowAccessPolicyReference"]["policyId"] for each in found)

    def delete(self, name: str, **query: str) -> requests.Response:
        """Delete one by REST."""
        return self._http.delete(f"{self._url}/{name}", params=query, timeout=30)

    def delete_both(self, **body: object) -> requests.Response:
        """Delete several at once by REST."""
        return self._http.post(f"{self._url}:batchDelete", json={"policyIds": ["one", "two"], **body}, timeout=30)


@pytest.fixture
def policies(local_cloud) -> Policies:
    """Return them."""
    return Policies(local_cloud)


@pytest.mark.parametrize("query", [{}, {"force": "false"}], ids=["unsaid", "false"])
def test_the_last_one_stays(policies, query):
    assert policies.delete("one", **query).status_code < 300
    refused = policies.delete("two", **query)
    assert (refused.status_code, REFUSED in refused.json()["error"]["message"]) == (400, True)
    assert policies.names() == ["two"]


def test_force_deletes_the_last_one(policies):
    policies.delete("one")
    assert policies.delete("two", force="true").status_code < 300
    assert policies.names() == []


def test_force_is_of_one_call(policies):
    """The next delete is looked at again."""
    assert policies.delete("one", force="true").status_code < 300
    assert policies.delete("two").status_code == 400


def test_several_at_once_are_all_of_them(policies):
    assert policies.delete_both().status_code == 400
    assert policies.names() == ["one", "two"]
    assert policies.delete_both(force=True).status_code < 300
    assert policies.names() == []


def test_one_that_is_not_there_is_not_found(policies):
    policies.delete("one")
    assert policies.delete("three").status_code == 404


def test_sql_drops_the_last_one_with_all_only(policies):
    policies.run(f"DROP ROW ACCESS POLICY one ON {policies.table}")
    with pytest.raises(BadRequest, match=REFUSED):
        policies.run(f"DROP ROW ACCESS POLICY two ON {policies.table}")
    assert policies.names() == ["two"]
    job = policies.run(f"drop all row access policies on `{policies.table}`;")
    assert (job.statement_type, policies.names()) == ("DROP_ROW_ACCESS_POLICY", [])
    policies.run(f"DROP ALL ROW ACCESS POLICIES ON {policies.table}")


def test_sql_drops_those_of_a_table_that_is_there(policies):
    with pytest.raises(NotFound):
        policies.run("DROP ALL ROW ACCESS POLICIES ON policies.no_such_table")


@pytest.mark.parametrize("what", ["ALL ROW ACCESS POLICIES", "ROW ACCESS POLICY one"])
def test_a_dry_run_drops_nothing(policies, what):
    policies.run(f"DROP {what} ON {policies.table}", dry_run=True)
    assert policies.names() == ["one", "two"]


def test_a_fault_of_a_policy_is_not_its_tables(policies, add_fault):
    """Each method has its own event."""
    add_fault(f"bigquery.rowAccessPolicies.delete *.{policies.table}.one", "error", code="PERMISSION_DENIED")
    assert policies.delete("one").status_code == 403
    add_fault("bigquery.rowAccessPolicies.batchDelete *", "error", code="PERMISSION_DENIED")
    assert policies.delete_both(force=True).status_code == 403
