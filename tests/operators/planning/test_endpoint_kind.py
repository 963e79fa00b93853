"""An endpoint of the other kind than the spec asks for: known before anything is paid."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from retraining.hooks.endpoints import EndpointOptions
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.planned_run import FORM, plan

MODEL = "flight_delays"


@pytest.fixture
def cloud() -> FakeCloud:
    """With a dedicated endpoint, where the spec asks for a shared one."""
    cloud = FakeCloud()
    cloud.endpoints.ensure(MODEL, None, cloud.environment.labels, EndpointOptions(dedicated=True))
    return cloud


def test_a_run_that_may_deploy_is_refused(cloud, make_run: Any) -> None:
    """By name, with the way out; no plan is written, and nothing asked for."""
    stored = dict(cloud.artifacts.objects)
    with refuses(
        AirflowFailException, where="dedicated_endpoint", found=("false", "is dedicated"), way_out="Set it back"
    ):
        plan(cloud, make_run(params=FORM))
    assert [uri for uri in cloud.artifacts.objects if uri not in stored and uri.endswith("plan.json")] == []
    assert not cloud.jobs.jobs


@pytest.mark.parametrize("asked", [{"params": FORM | {"deploy": False}}, {"params": FORM, "run_type": "backfill"}])
def test_a_run_that_leaves_the_endpoint_alone_is_not(cloud, make_run: Any, asked: dict[str, Any]) -> None:
    """It can do all that it was asked for."""
    assert plan(cloud, make_run(**asked))["run_key"]


def test_an_endpoint_of_the_right_kind_is_none_to_refuse(cloud, make_run: Any) -> None:
    """Nor is a missing one, which is made as the spec says."""
    endpoint = cloud.endpoints.endpoint
    cloud.endpoints.endpoint = dataclasses.replace(endpoint, dedicated=False)
    assert plan(cloud, make_run(params=FORM))["run_key"]
