"""A version is tried on an endpoint of its own on the local cloud, through Google's clients.

Deaths are in test_staging.py, on the cloud in memory; here the process dies once, with the version on that endpoint.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.documents import Deployment
from retraining.core.naming.vertex import staging_of
from retraining.hooks.cloud import Cloud
from tests.support.scenes.deployed_night import Night, Waiting
from tests.support.scenes.served_models import save_models

OLD, NEW = 0.25, 0.75
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def second_night(local_cloud, make_run, tmp_path) -> Iterator[Night]:
    """A version after a champion, to be tried first."""
    del local_cloud
    save_models(tmp_path, OLD, NEW)
    cloud, dag_id = Cloud(), f"retrain__tried_{uuid.uuid4().hex[:8]}"
    cloud.clock = Waiting()

    def night(day: int, score: float, **deployment: Any) -> Night:
        run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
        return Night(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), tmp_path / str(score), **deployment)

    night(20, OLD).deploy()
    made = night(21, NEW, staging=True)
    yield made
    made.retire()


def document(night: Night) -> Deployment:
    """How the deployment ended."""
    return Deployment.parse(night.cloud.artifacts.read_object(f"{night.folder}/deployment.json"))


def test_a_version_is_tried_and_then_serves_whoever_died(second_night: Night) -> None:
    """Made once, it stays empty; the version has been deployed once on each endpoint."""
    calls = second_night.deploy("predict", after=True)
    assert second_night.died
    assert calls.count("start_deploy") == 2
    tried = document(second_night).staging
    assert tried is not None
    assert tried.passed
    staging = second_night.cloud.endpoints.get(staging_of(second_night.model))
    assert staging.name == tried.endpoint_name
    assert (staging.deployed, staging.traffic) == ({}, {})
    assert second_night.state() == {
        "score": NEW,
        "answers": "2",
        "deployed": 2,
        "champion": "2",
        "previous": "1",
        "default": "2",
    }


def test_a_version_that_is_wrong_there_never_meets_a_customer(second_night: Night) -> None:
    """What serves is as it was, to the etag."""
    before = second_night.cloud.endpoints.get(second_night.model)
    second_night.expect_other_answers()
    second_night.deploy()
    ended = document(second_night)
    assert not ended.deployed
    assert "-staging gives answers that differ" in ended.message
    assert second_night.cloud.endpoints.get(second_night.model) == before
    staging = second_night.cloud.endpoints.get(staging_of(second_night.model))
    assert (staging.deployed, staging.traffic) == ({}, {})
    assert second_night.answer() == (OLD, "1")
