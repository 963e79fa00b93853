"""What a gRPC call concerns, for the IAM table and faults: what its request names, by the forms of `service.json`."""

from __future__ import annotations

from google.cloud.bigquery_storage_v1 import types as read
from google.cloud.logging_v2 import types as logs

from localcloud.access.iam import forms
from localcloud.access.iam_calls import about, asked

READ = "/google.cloud.bigquery.storage.v1.BigQueryRead/CreateReadSession"
LOGS = "/google.logging.v2.LoggingServiceV2/ListLogEntries"


def test_a_session_concerns_its_project_and_the_tables_dataset() -> None:
    """And a fault may name the dataset."""
    session = read.ReadSession(table="projects/theirs/datasets/d/tables/t")
    method, resources = asked(READ, read.CreateReadSessionRequest(parent="projects/mine", read_session=session))
    assert method == "BigQueryRead.CreateReadSession"
    assert {kind: names for kind, names in resources.items() if names} == {
        "project": ["projects/mine", "projects/theirs"],
        "dataset": ["projects/theirs/datasets/d"],
    }
    assert about(resources) == "projects/theirs/datasets/d"


def test_a_request_that_names_nothing_concerns_nothing() -> None:
    """Every kind is there all the same, and empty."""
    method, resources = asked(LOGS, logs.ListLogEntriesRequest(filter="x projects/p"))
    assert (method, about(resources)) == ("LoggingServiceV2.ListLogEntries", "")
    assert resources == {kind: [] for kind in forms()}
