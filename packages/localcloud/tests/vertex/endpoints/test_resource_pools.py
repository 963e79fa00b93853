"""Machines that models share, through Google's clients: who may be on them, and when they go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.cloud import aiplatform
from google.cloud import aiplatform_v1 as v1
from google.protobuf import json_format, struct_pb2

INSTANCE = {"carrier": "UA", "distance": 3.0}
PREBUILT = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
CUSTOM = "us-central1-docker.pkg.dev/local-project/retraining/tensorflow-serving:2.19.1"
OTHER = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-14:latest"
MACHINES: dict[str, Any] = {"machine_spec": {"machine_type": "n1-standard-2"}, "min_replica_count": 1}


@pytest.fixture(scope="module")
def pools(local_cloud) -> v1.DeploymentResourcePoolServiceClient:
    """Google's client."""
    options = {"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    return v1.DeploymentResourcePoolServiceClient(client_options=options)


@pytest.fixture
def pool(api, pools, request: pytest.FixtureRequest) -> Iterator[str]:
    """A pool of the test's own, empty in the end."""
    pool_id = f"p{abs(hash(request.node.nodeid)) % 10**9}"
    made = pools.create_deployment_resource_pool(
        parent=api.parent,
        deployment_resource_pool={"dedicated_resources": MACHINES},
        deployment_resource_pool_id=pool_id,
    ).result(timeout=10)
    yield made.name
    pools.delete_deployment_resource_pool(name=made.name).result(timeout=10)


@pytest.fixture
def endpoints(api) -> Iterator[list[str]]:
    """Two endpoints, empty in the end."""
    made = [
        api.endpoints.create_endpoint(parent=api.parent, endpoint={"display_name": name}).result(timeout=10).name
        for name in ("one", "two")
    ]
    yield made
    for name in made:
        for deployed in api.endpoints.get_endpoint(name=name).deployed_models:
            api.endpoints.undeploy_model(endpoint=name, deployed_model_id=deployed.id).result(timeout=30)
        api.endpoints.delete_endpoint(name=name).result(timeout=10)


def share(api, endpoint: str, model: str, pool: str, deployed_id: str) -> None:
    """Deploy a model to shared machines, with all traffic."""
    deployed = v1.DeployedModel(model=model, shared_resources=pool, id=deployed_id)
    api.endpoints.deploy_model(endpoint=endpoint, deployed_model=deployed, traffic_split={"0": 100}).result(timeout=60)


def test_models_of_two_endpoints_share_machines_and_the_pool_stays_while_they_do(
    local_cloud, api, pools, pool, endpoints, upload
) -> None:
    """Each answers at its own endpoint; who is on the machines is told, by Google's SDK too."""
    model = upload("pool_shared", container_spec={"image_uri": PREBUILT}).model
    for number, endpoint in enumerate(endpoints):
        share(api, endpoint, model, pool, str(number + 1))
        client = v1.PredictionServiceClient(
            client_options={"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
        )
        values = [json_format.ParseDict(INSTANCE, struct_pb2.Value())]
        assert list(client.predict(endpoint=endpoint, instances=values).predictions) == [6.0]
    found = pools.query_deployed_models(deployment_resource_pool=pool)
    assert {(ref.endpoint, ref.deployed_model_id) for ref in found._response.deployed_model_refs} == {
        (endpoints[0], "1"),
        (endpoints[1], "2"),
    }
    assert found._response.total_endpoint_count == 2
    with pytest.raises(exceptions.FailedPrecondition, match="has deployed models"):
        pools.delete_deployment_resource_pool(name=pool)
    aiplatform.init(project="local-project", location=local_cloud.region)
    (refs,) = aiplatform.DeploymentResourcePool(pool).query_deployed_models()
    assert len(refs) == 2
    assert pool in [each.name for each in pools.list_deployment_resource_pools(parent=api.parent)]


def test_custom_containers_and_other_images_are_refused(api, pool, endpoints, upload) -> None:
    """As the service says of its limits."""
    custom = upload("pool_custom", container_spec={"image_uri": CUSTOM, "ports": [{"container_port": 8501}]}).model
    with pytest.raises(exceptions.InvalidArgument, match="no pre-built container"):
        share(api, endpoints[0], custom, pool, "1")
    share(api, endpoints[0], upload("pool_first", container_spec={"image_uri": PREBUILT}).model, pool, "1")
    with pytest.raises(exceptions.InvalidArgument, match="Expected that image"):
        share(api, endpoints[1], upload("pool_second", container_spec={"image_uri": OTHER}).model, pool, "1")


def test_a_pool_that_is_not_there_is_named(api, endpoints, upload) -> None:
    """Before anything is started."""
    model = upload("pool_alone", container_spec={"image_uri": PREBUILT}).model
    with pytest.raises(exceptions.NotFound, match="deploymentResourcePools/nowhere"):
        share(api, endpoints[0], model, f"{api.parent}/deploymentResourcePools/nowhere", "1")


@pytest.mark.parametrize(
    ("machines", "message"),
    [
        ({"machine_spec": {"machine_type": "n1-standard-2"}}, "min_replica_count"),
        ({**MACHINES, "machine_spec": {"machine_type": "huge"}}, "machine_spec"),
        ({**MACHINES, "min_replica_count": 3, "max_replica_count": 2}, "max_replica_count"),
    ],
)
def test_machines_that_cannot_be_are_refused(api, pools, machines: dict[str, Any], message: str) -> None:
    """With the field."""
    with pytest.raises(exceptions.InvalidArgument, match=message):
        pools.create_deployment_resource_pool(
            parent=api.parent,
            deployment_resource_pool={"dedicated_resources": machines},
            deployment_resource_pool_id="wrong",
        )
