"""Whose a resource is."""

from __future__ import annotations

import re

import pytest

from retraining.core import settings
from retraining.core.errors import SettingsError
from retraining.core.naming import bigquery, trust
from retraining.core.naming.environments import ENVIRONMENT_LABEL, Environment, label_of
from tests.support.refusals import refuses
from tests.support.small_model import ENVIRON, make_plan

OURS = Environment(label="ours", bucket="my-bucket")


def test_an_environment_is_called_as_its_bucket_unless_it_has_a_name():
    assert settings.load(ENVIRON).environment == "my-retraining"
    assert settings.load({**ENVIRON, "RETRAINING_ENVIRONMENT": "staging"}).environment == "staging"


@pytest.mark.parametrize("name", ["production", "my.bucket.example.com", "b" * 222, "a.b", "a-b", "a_b"])
def test_every_name_has_a_label_value_of_its_own(name):
    assert re.fullmatch(r"[a-z0-9_-]{1,63}", label_of(name))
    assert label_of(label_of(name)) == label_of(name)
    assert len({label_of(other) for other in (name, "a.c", "b" * 221, "my.bucket.example.org")}) == 4


@pytest.mark.parametrize(
    ("labels", "uri", "owner"),
    [
        ({ENVIRONMENT_LABEL: "ours"}, "gs://elsewhere/x", "ours"),
        ({ENVIRONMENT_LABEL: "theirs"}, "gs://my-bucket/x", "theirs"),
        ({}, "gs://my-bucket/late/runs/x", "ours"),
        ({}, "gs://my-bucket-2/late/runs/x", "my-bucket-2"),
        ({}, "", None),
    ],
    ids=["labelled ours", "labelled theirs", "earlier release, our files", "earlier release, theirs", "unknown"],
)
def test_what_has_no_label_belongs_to_whom_its_files_belong(labels, uri, owner):
    assert OURS.owner(labels, uri) == owner
    assert OURS.owns(labels, uri) == (owner == "ours")


def test_equal_runs_of_two_environments_share_no_key_table_or_query():
    first, second = (
        make_plan(settings=settings.load({**ENVIRON, "RETRAINING_ENVIRONMENT": name})) for name in ("one", "two")
    )
    assert first.run_key != second.run_key
    assert bigquery.run_table(first) != bigquery.run_table(second)
    same_key = second.model_copy(update={"run_key": first.run_key})
    assert bigquery.query_job_id(first, "snapshot", "1") != bigquery.query_job_id(same_key, "snapshot", "1")
    asked = [bigquery.monitor_job_id(plan.environment, "late", plan.as_of, "run|0") for plan in (first, second)]
    assert asked[0] != asked[1]


def test_a_plan_of_an_earlier_release_has_no_environment_and_its_queries_are_its_buckets():
    plan = make_plan()
    old = plan.model_copy(update={"environment": None})
    assert bigquery.query_job_id(old, "snapshot", "1") == bigquery.query_job_id(plan, "snapshot", "1")


def test_another_environments_bucket_is_refused():
    trust.require_own_bucket("gs://b/environment.txt", "mine", "mine")
    with refuses(SettingsError, found="'theirs'"):
        trust.require_own_bucket("gs://b/environment.txt", "theirs", "mine")


@pytest.mark.parametrize("owner", [None, "mine"])
def test_what_is_ours_or_nobodys_may_be_used(owner):
    trust.require_own_resource("model", owner, "mine", "r")


def test_another_environments_model_is_refused():
    with refuses(SettingsError, found="'theirs'", way_out="RETRAINING_ENVIRONMENT=theirs"):
        trust.require_own_resource("model", "theirs", "mine", "r")
