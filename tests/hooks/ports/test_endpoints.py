"""The endpoint of a model: made once, its traffic compared and set."""

from __future__ import annotations

import dataclasses

import pytest
from google.api_core.exceptions import FailedPrecondition, InvalidArgument, NotFound

from retraining.core.errors import ConflictError
from retraining.hooks.endpoints import EndpointOptions
from retraining.hooks.predictions import Unanswered
from tests.support.scenes.port_stage import make_upload, until

KEY = "20131120t030000z-000000000001"
MACHINE = {"machine_type": "n1-standard-2", "min_replicas": 1, "max_replicas": 1}
MODEL_LABEL = "retraining-model"


@pytest.fixture
def endpoint(cloud, unique):
    """The endpoint of this test's model."""
    table = f"{cloud.settings.project}.{cloud.settings.dataset}.requests_{unique}"
    return cloud.endpoints.ensure(unique, table, {MODEL_LABEL: unique})


def test_an_endpoint_is_made_once(cloud, unique, endpoint) -> None:
    """The second call finds it; it carries the environment's label, and nothing is on it."""
    assert cloud.endpoints.get(f"{unique}_other") is None
    assert cloud.endpoints.ensure(unique, "p.d.another", {}) == endpoint
    assert cloud.endpoints.get(unique) == cloud.endpoints.read_endpoint(endpoint.name) == endpoint
    assert cloud.endpoints.name_of(unique) == endpoint.name
    assert not cloud.endpoints.has_shared_machines(unique)
    assert endpoint.labels == {MODEL_LABEL: unique, **cloud.environment.labels}
    assert (endpoint.deployed, endpoint.traffic) == ({}, {})
    assert cloud.endpoints.running_operations(endpoint) == []
    with pytest.raises(NotFound):
        cloud.endpoints.read_endpoint(f"{endpoint.name}-other")


def test_an_endpoint_keeps_how_it_was_made_and_logs_another_share_when_told(cloud, unique) -> None:
    """Whether it has an address of its own is said once; the share of its log may change, and nothing else does."""
    table = f"{cloud.settings.project}.{cloud.settings.dataset}.requests_{unique}"
    made = cloud.endpoints.ensure(unique, table, {}, EndpointOptions(dedicated=True, sampling=0.25))
    assert (made.dedicated, made.sampling) == (True, 0.25)
    assert cloud.endpoints.ensure(unique, table, {}, EndpointOptions()) == made
    cloud.endpoints.set_sampling(made, 0.5)
    changed = cloud.endpoints.read_endpoint(made.name)
    assert (changed.dedicated, changed.sampling, changed.labels) == (True, 0.5, made.labels)


def test_traffic_is_set_only_on_the_endpoint_that_was_read(stage, cloud, endpoint) -> None:
    """The etag is compared; a split that is there already is no conflict, whoever set it."""
    stage.disturb(endpoint.name)
    assert cloud.endpoints.read_endpoint(endpoint.name).etag != endpoint.etag
    assert cloud.endpoints.set_traffic(endpoint, {}).traffic == {}
    with pytest.raises(ConflictError, match="somebody else changed it"):
        cloud.endpoints.set_traffic(endpoint, {"123": 100})


def test_no_share_goes_to_what_is_not_deployed(cloud, endpoint) -> None:
    """It is refused by the service."""
    with pytest.raises(InvalidArgument, match="traffic_split"):
        cloud.endpoints.set_traffic(cloud.endpoints.read_endpoint(endpoint.name), {"123": 100})


def test_what_is_not_there_is_undeployed_and_cancelled_without_a_word(cloud, endpoint) -> None:
    """So each step may be repeated."""
    cloud.endpoints.undeploy(endpoint, "123")
    assert cloud.endpoints.read_endpoint(endpoint.name).deployed == {}
    assert cloud.endpoints.operation(f"{endpoint.name}/operations/123") is None
    cloud.endpoints.cancel_operation(f"{endpoint.name}/operations/123")


def test_a_deployment_that_fails_says_why(stage, cloud, folder, unique, endpoint) -> None:
    """Its operation ends with the reason, and brings nothing; asked for once more it is another operation."""
    stage.break_deployments()
    cloud.registry.start_upload(unique, make_upload(cloud, folder, unique, KEY))
    version = until(cloud, lambda: cloud.registry.find_by_run(unique, KEY))
    for _ in range(2):
        name = cloud.endpoints.start_deploy(endpoint, version.version_name, KEY, MACHINE).name
        until(cloud, lambda name=name: cloud.endpoints.operation(name).done)
        assert cloud.endpoints.operation(name).error
        cloud.endpoints.cancel_operation(name)
        assert cloud.endpoints.running_operations(endpoint) == []
        assert cloud.endpoints.read_endpoint(endpoint.name).deployed == {}


def test_an_endpoint_without_traffic_answers_nobody(cloud, endpoint) -> None:
    """It is refused by the service."""
    with pytest.raises(FailedPrecondition, match="no deployed model"):
        cloud.endpoints.predict(endpoint, [{"carrier": "UA"}])
    with pytest.raises(FailedPrecondition, match="no deployed model"):
        cloud.endpoints.explain(endpoint, [{"carrier": "UA"}])
    found = cloud.endpoints.predict_once(endpoint, [{"carrier": "UA"}], 30)
    assert found == Unanswered(kind="FailedPrecondition")
    with pytest.raises(NotFound):
        cloud.endpoints.predict_once(dataclasses.replace(endpoint, name=f"{endpoint.name}9"), [{"carrier": "UA"}], 30)
