"""Two models that share machines, on the local cloud, through Google's clients."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from google.cloud import aiplatform_v1

from retraining.hooks.cloud import Cloud
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import INSTANCE, save_models

OLD, NEW = 0.25, 0.75
PREBUILT = "us-docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def pools(local_cloud) -> aiplatform_v1.DeploymentResourcePoolServiceClient:
    """Google's client."""
    options = {"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    return aiplatform_v1.DeploymentResourcePoolServiceClient(client_options=options)


@pytest.fixture
def pool(local_cloud, pools) -> Iterator[str]:
    """A pool that a person made, empty in the end: full name."""
    parent = f"projects/{local_cloud.project}/locations/{local_cloud.region}"
    machines = {"machine_spec": {"machine_type": "n1-standard-4"}, "min_replica_count": 1, "max_replica_count": 2}
    made = pools.create_deployment_resource_pool(
        parent=parent,
        deployment_resource_pool={"dedicated_resources": machines},
        deployment_resource_pool_id=f"small-{uuid.uuid4().hex[:8]}",
    ).result(timeout=20)
    yield made.name
    pools.delete_deployment_resource_pool(name=made.name).result(timeout=20)


@pytest.fixture
def night(pool, make_run, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., DeployedRun]]:
    """A promoted run of a model and a day, on the pool."""
    monkeypatch.setenv("RETRAINING_SERVING_IMAGE", PREBUILT)
    save_models(tmp_path, OLD, NEW)
    cloud, made = Cloud(), dict[str, DeployedRun]()
    cloud.clock = Waiting()

    def of(model: str, day: int, score: float) -> DeployedRun:
        run = make_run(run_id=f"scheduled__{day}", dag_id=f"retrain__{model}")
        when, shared = datetime(2013, 11, day, 3, tzinfo=UTC), pool.rpartition("/")[2]
        made[model] = DeployedRun(cloud, run, when, tmp_path / str(score), shared_machines=shared)
        return made[model]

    yield of
    for run in made.values():
        run.retire()


def test_models_share_machines_and_versions_take_turns_there(pool, pools, night) -> None:
    """Each answers at its own endpoint; the version before stays on the machines, and costs nothing beside them."""
    first, second = (f"shared_{uuid.uuid4().hex[:8]}" for _ in range(2))
    for model, day, score in ((first, 20, OLD), (second, 20, OLD), (first, 21, NEW)):
        run = night(model, day, score)
        run.deploy()
        endpoint = run.cloud.endpoints.get(model)
        assert run.cloud.endpoints.predict(endpoint, [INSTANCE]).predictions == [score]
        assert endpoint.traffic == {run.deployed_id: 100}
    found = pools.query_deployed_models(deployment_resource_pool=pool)._response
    assert (found.total_deployed_model_count, found.total_endpoint_count) == (3, 2)
    assert run.cloud.endpoints.has_shared_machines(pool.rpartition("/")[2])
    assert not run.cloud.endpoints.has_shared_machines("nowhere")
