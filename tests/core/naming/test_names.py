"""Names of resources."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime

import pytest

from retraining.core.bucket_folders import RESERVED_MODELS
from retraining.core.errors import ContractError
from retraining.core.naming import bigquery, serving, storage, vertex
from retraining.core.naming.run_keys import RunKey
from tests.support.small_model import AS_OF, make_plan

LABEL_VALUE = re.compile(r"^[a-z0-9_-]{0,63}$")
LABEL_KEY = re.compile(r"^[a-z][a-z0-9_-]{0,62}$")


def test_a_run_key_begins_with_its_time_and_is_a_label_value():
    key = RunKey.of(AS_OF, {"spec": 1})
    assert str(key).startswith(f"{key.stamp}-")
    assert key.stamp == "20131120t030000z"
    assert LABEL_VALUE.match(str(key))
    assert RunKey.parse(str(key)) == key
    assert RunKey.parse(str(key)).as_of == AS_OF


def test_a_run_key_depends_on_what_decides_and_on_nothing_else():
    assert RunKey.of(AS_OF, {"a": 1, "b": 2}) == RunKey.of(AS_OF, {"b": 2, "a": 1})
    assert RunKey.of(AS_OF, {"a": 1}) != RunKey.of(AS_OF, {"a": 2})


@pytest.mark.parametrize("key", ["", "20131120T030000Z-0123456789ab", "20131120t030000z-0123", "x"])
def test_what_is_no_run_key_is_refused(key):
    with pytest.raises(ContractError, match="Expected one like"):
        RunKey.parse(key)


def test_tables_and_addresses_of_a_run(small_plan):
    key = small_plan.run_key
    assert bigquery.run_table(small_plan) == f"my-project.retraining.run_late__{key.replace('-', '_')}"
    assert storage.document_uri(small_plan.run_uri, "plan") == f"gs://my-retraining/late/runs/{key}/plan.json"
    assert serving.trained_model_uri(small_plan) == f"gs://my-retraining/jobs/late/runs/{key}/training/model/1"
    assert bigquery.request_log_table("my-project", "retraining", "late") == "my-project.retraining.requests_late"
    assert storage.spans_uri(small_plan, "0" * 16) == "gs://my-retraining/jobs/late/spans/0000000000000000"


def test_a_plan_of_an_earlier_release_has_its_results_beside_its_documents(small_plan):
    """A run that was under way while the release changed goes on with the addresses that its jobs were told."""
    earlier = small_plan.model_copy(update={"results_uri": None})
    assert storage.spans_uri(earlier, "0" * 16) == "gs://my-retraining/late/spans/0000000000000000"
    assert serving.trained_model_uri(earlier) == f"{earlier.run_uri}/training/model/1"


def test_every_folder_of_the_bucket_that_is_no_models_is_closed_to_models():
    """What `storage` makes of a bucket alone, or puts before the model's name."""
    arguments = {
        "bucket": "b",
        "results_bucket": "b",
        "model": "late",
        "key": "k",
        "name": "n",
        "schema_hash": "0",
        "as_of": AS_OF,
        "due": AS_OF,
        "dag_run_id": "r",
        "dag_run": "l",
        "table": "p.d.t",
        "event": "failure",
        "slot": "s",
        "ledger_id": "i",
        "region": "us-central1",
        "month": "2013-11",
    }
    folders = set()
    for function in vars(storage).values():
        parameters = list(inspect.signature(function).parameters) if inspect.isfunction(function) else []
        if parameters[:1] in (["bucket"], ["results_bucket"]):
            made = function(*(arguments[name] for name in parameters))
            uris = (made,) if isinstance(made, str) else made
            folders |= {uri.removeprefix("gs://b/").partition("/")[0] for uri in uris}
    assert folders - {"late", "environment.txt", "overview.json"} <= RESERVED_MODELS
    assert {"wakes", "leases", "maintenance", "jobs"} <= folders
    assert {"gcloud", "gsutil", "packages"} <= RESERVED_MODELS


def test_vertex_names():
    assert vertex.model_name("p", "r", "late_or_not") == "projects/p/locations/r/models/late_or_not"
    assert vertex.endpoint_name("p", "r", "late_or_not") == "projects/p/locations/r/endpoints/late-or-not"
    assert vertex.alias_as_of(AS_OF) == "as-of-20131120"


def test_labels_are_what_vertex_takes(small_plan):
    labels = {
        **vertex.job_labels(small_plan, "train"),
        **vertex.version_labels(small_plan),
        vertex.KEY_LABEL: job_key(),
    }
    assert all(LABEL_KEY.match(key) and LABEL_VALUE.match(value) for key, value in labels.items())


def test_a_display_name_has_only_letters_digits_and_underscores(small_plan):
    name = vertex.job_display_name("m" * 41, "evaluate", small_plan.run_key)
    assert re.fullmatch(r"[a-z][a-z0-9_]{0,127}", name)


def job_key(**changes):
    values = {
        "dag_id": "retrain__late",
        "run_id": "scheduled__1",
        "task_id": "train",
        "map_index": -1,
        "max_tries": 2,
        "job": {"display_name": "x"},
    }
    return vertex.job_key(**{**values, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"dag_id": "other"},
        {"run_id": "other"},
        {"task_id": "export"},
        {"map_index": 0},
        {"max_tries": 5},
        {"job": {"display_name": "y"}},
    ],
    ids=str,
)
def test_a_job_key_changes_with_each_part(changes):
    assert job_key() == job_key()
    assert job_key(**changes) != job_key()


def test_monitor_folders_sort_by_time_and_differ_by_run():
    first = storage.monitor_uri("b", "late", AS_OF, "run 1")
    assert first.startswith("gs://b/late/monitor/20131120t030000z-")
    assert first != storage.monitor_uri("b", "late", AS_OF, "run 2")
    assert first < storage.monitor_uri("b", "late", datetime(2013, 11, 20, 4, tzinfo=UTC), "run 1")


def test_a_query_job_id_is_the_same_for_the_same_attempt_only(small_plan):
    job_id = bigquery.query_job_id(small_plan, "snapshot", "1")
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,1024}", job_id)
    assert job_id == bigquery.query_job_id(small_plan, "snapshot", "1")
    assert job_id != bigquery.query_job_id(small_plan, "snapshot", "2")
    assert job_id != bigquery.query_job_id(make_plan(dag_run_id="other"), "snapshot", "1")
