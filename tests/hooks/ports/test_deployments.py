"""Versions that come to an endpoint, answer there, and leave it; on the local cloud real models, so a long test."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from google.api_core.exceptions import FailedPrecondition

from retraining.core.errors import ConflictError
from retraining.core.naming.vertex import deployed_model_id
from tests.support.scenes.port_stage import LocalStage, MemoryStage, Stage, make_upload, until
from tests.support.scenes.served_models import INSTANCE

KEYS = ("20131120t030000z-000000000001", "20131121t030000z-000000000002")
MACHINE = {"machine_type": "n1-standard-2", "min_replicas": 1, "max_replicas": 1}
SCORE = 0.25


@pytest.fixture(params=["memory", pytest.param("local", marks=[pytest.mark.cloud, pytest.mark.long])])
def stage(request: pytest.FixtureRequest) -> Stage:
    """A cloud, and what happens behind it."""
    return MemoryStage() if request.param == "memory" else LocalStage(request.getfixturevalue("local_hooks"))


@pytest.fixture
def endpoint(cloud, unique):
    """The endpoint of this test's model."""
    table = f"{cloud.settings.project}.{cloud.settings.dataset}.requests_{unique}"
    return cloud.endpoints.ensure(unique, table, {})


@pytest.fixture
def deploy(stage, cloud, folder, unique, endpoint):
    """Brings a version of a run to the endpoint; gives it, and the id that it has there."""

    def do(key: str) -> tuple[Any, str]:
        wanted = make_upload(cloud, folder, unique, key)
        stage.store_model(wanted.artifact_uri, SCORE)
        cloud.registry.start_upload(unique, wanted)
        version = until(cloud, lambda: cloud.registry.find_by_run(unique, key))
        seen = cloud.endpoints.read_endpoint(endpoint.name)
        operation = cloud.endpoints.start_deploy(seen, version.version_name, key, MACHINE)
        deployed_id = deployed_model_id(key)
        until(cloud, lambda: deployed_id in cloud.endpoints.read_endpoint(endpoint.name).deployed)
        until(cloud, lambda: cloud.endpoints.operation(operation.name).done)
        return version, deployed_id

    return do


def answers(cloud, endpoint) -> str:
    """Id of the model that answers now; what it says is right."""
    answer = cloud.endpoints.predict(endpoint, [INSTANCE])
    assert [float(prediction) for prediction in answer.predictions] == [SCORE]
    return answer.deployed_model_id


def test_a_version_comes_without_traffic_and_answers_with_it(cloud, endpoint, deploy) -> None:
    """A run's second deployment is none; the endpoint that was read before is not the present one."""
    version, mine = deploy(KEYS[0])
    seen = cloud.endpoints.read_endpoint(endpoint.name)
    assert (seen.deployed, seen.traffic) == ({mine: version.version_name}, {})
    assert cloud.endpoints.start_deploy(endpoint, version.version_name, KEYS[0], MACHINE) is None
    assert cloud.endpoints.running_operations(endpoint) == []
    with pytest.raises(FailedPrecondition):
        cloud.endpoints.predict(endpoint, [INSTANCE])
    with pytest.raises(ConflictError, match="somebody else changed it"):
        cloud.endpoints.set_traffic(endpoint, {mine: 100})
    changed = cloud.endpoints.set_traffic(seen, {mine: 100})
    assert changed.traffic == {mine: 100}
    assert changed.etag != seen.etag
    assert cloud.endpoints.set_traffic(seen, {mine: 100}).traffic == {mine: 100}  # as after a lost answer
    allowed = cloud.endpoints.set_traffic(changed, {mine: 100}, 17)
    assert (allowed.traffic, allowed.allowed_by) == ({mine: 100}, "17")
    assert allowed.etag != changed.etag, "the same shares, allowed by another generation"
    assert allowed.labels.items() >= changed.labels.items()
    assert cloud.endpoints.set_traffic(changed, {mine: 100}, 17).etag == allowed.etag  # as after a lost answer
    with pytest.raises(ConflictError, match="somebody else changed it"):
        cloud.endpoints.set_traffic(changed, {mine: 100}, 16)
    assert answers(cloud, endpoint) == mine
    once = cloud.endpoints.predict_once(endpoint, [INSTANCE], 30)
    assert ([float(prediction) for prediction in once.predictions], once.deployed_model_id) == ([SCORE], mine)
    now = cloud.clock.now()
    served = cloud.serving_metrics.served(endpoint.name, now - timedelta(minutes=1), now)
    assert served.keys() == {mine}
    assert (served[mine].requests, served[mine].errors) == (2, 0)
    assert served[mine].latency_ms > 0
    minute = timedelta(minutes=1)
    periods = cloud.serving_metrics.measured(endpoint.name, now - minute, now, minute)
    assert [period[mine].requests for period in periods] == [2]
    assert (periods[0][mine].errors, periods[0][mine].latencies.total) == (0, 2)
    assert periods[0][mine].latencies.over(0.0) == 2
    answered = cloud.serving_metrics.answered(endpoint.name, now - timedelta(minutes=1), now)[mine]
    assert (answered.requests, answered.errors) == (2, 0)
    assert 0 < answered.p50_ms <= answered.p95_ms <= answered.p99_ms


def test_traffic_goes_from_one_version_to_the_next(cloud, endpoint, deploy) -> None:
    """What has traffic stays, and so does its version; the last one may leave with all of it."""
    old_version, old = deploy(KEYS[0])
    cloud.endpoints.set_traffic(cloud.endpoints.read_endpoint(endpoint.name), {old: 100})
    _, new = deploy(KEYS[1])
    assert cloud.endpoints.read_endpoint(endpoint.name).traffic == {old: 100}
    model = old_version.model_name.rpartition("/")[2]
    assert [version.deployed for version in cloud.registry.list_versions(model)] == [True, True]
    assert not cloud.registry.delete_version(old_version)
    with pytest.raises(ConflictError, match="somebody else changed it"):
        cloud.endpoints.undeploy(endpoint, old)
    with pytest.raises(ConflictError, match="somebody else changed it"):
        cloud.endpoints.start_deploy(endpoint, old_version.version_name, "20131122t030000z-000000000003", MACHINE)
    with pytest.raises(FailedPrecondition, match="traffic"):
        cloud.endpoints.undeploy(cloud.endpoints.read_endpoint(endpoint.name), old)
    cloud.endpoints.set_traffic(cloud.endpoints.read_endpoint(endpoint.name), {new: 100, old: 0})
    assert cloud.endpoints.read_endpoint(endpoint.name).traffic == {new: 100}
    until(cloud, lambda: answers(cloud, endpoint) == new)
    for deployed_id in (old, new):
        cloud.endpoints.undeploy(cloud.endpoints.read_endpoint(endpoint.name), deployed_id)
        until(cloud, lambda gone=deployed_id: gone not in cloud.endpoints.read_endpoint(endpoint.name).deployed)
        until(cloud, lambda: not cloud.endpoints.running_operations(endpoint))
        cloud.endpoints.undeploy(endpoint, deployed_id)
    assert cloud.endpoints.read_endpoint(endpoint.name).traffic == {}
    assert [version.deployed for version in cloud.registry.list_versions(model)] == [False, False]
    assert cloud.registry.delete_version(old_version)
