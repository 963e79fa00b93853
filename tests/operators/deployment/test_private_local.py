"""Versions of a model whose endpoints answer in a network alone, on the local cloud, through Google's clients."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from google.api_core.exceptions import FailedPrecondition

from retraining.core.documents import Deployment
from retraining.core.naming.vertex import staging_of
from retraining.hooks.cloud import Cloud
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import INSTANCE, save_models

OLD, NEW = 0.25, 0.75
NETWORK = "projects/the-network-project/global/networks/main"
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def night(local_cloud, make_run, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., DeployedRun]]:
    """A promoted run of a day, of one model."""
    del local_cloud
    monkeypatch.setenv("RETRAINING_ENDPOINT_NETWORK", NETWORK)
    save_models(tmp_path, OLD, NEW)
    cloud, dag_id, made = Cloud(), f"retrain__private_{uuid.uuid4().hex[:8]}", list[DeployedRun]()
    cloud.clock = Waiting()

    def of(day: int, score: float, **deployment: Any) -> DeployedRun:
        run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
        made.append(
            DeployedRun(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), tmp_path / str(score), **deployment)
        )
        return made[-1]

    yield of
    made[-1].retire()


def test_a_version_is_tried_and_serves_in_the_network_alone(night) -> None:
    """Also where the process died after it had asked there; the address stays while versions take turns."""
    night(20, OLD).deploy()
    second = night(21, NEW, staging=True)
    before = second.cloud.endpoints.get(second.model)
    second.deploy("predict", after=True)
    assert second.died
    endpoint = second.cloud.endpoints.get(second.model)
    assert endpoint.private
    assert endpoint.address == before.address != ""
    assert endpoint.traffic == {second.deployed_id: 100}
    assert second.cloud.endpoints.predict(endpoint, [INSTANCE]).predictions == [NEW]
    with pytest.raises(FailedPrecondition, match="Private Service Connect"):
        second.answer()
    staging = second.cloud.endpoints.get(staging_of(second.model))
    assert (staging.private, staging.deployed, staging.address) == (True, {}, ""), "given back with the last version"


def test_where_the_network_lets_nobody_in_no_customer_meets_the_version(night, add_fault) -> None:
    """The first version is taken off again, by the service's word; once there is a policy the next try serves."""
    add_fault(f"PscAutomation.Connect {NETWORK}", "error", message="CONNECTION_POLICY_MISSING")
    first = night(20, OLD)
    first.deploy()
    endpoint = first.cloud.endpoints.get(first.model)
    assert (endpoint.deployed, endpoint.traffic) == ({}, {})
    assert not first.cloud.artifacts.exists(f"{first.folder}/deployment.json")
    first.deploy()
    endpoint = first.cloud.endpoints.get(first.model)
    assert first.cloud.endpoints.predict(endpoint, [INSTANCE]).predictions == [OLD]
    assert Deployment.parse(first.cloud.artifacts.read_object(f"{first.folder}/deployment.json")).deployed
