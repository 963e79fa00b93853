"""A model on an endpoint that somebody else made and named, on the local cloud, through Google's clients."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from google.api_core.exceptions import NotFound
from google.cloud import aiplatform_v1

from retraining.core.errors import SettingsError
from retraining.core.naming import vertex
from retraining.hooks.cloud import Cloud
from tests.support.refusals import refuses
from tests.support.scenes.asked_endpoint import retire
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import INSTANCE, save_models

OLD, NEW = 0.25, 0.75
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture(params=[False, True], ids=["shared", "dedicated"])
def given(local_cloud, request: pytest.FixtureRequest) -> Iterator[aiplatform_v1.Endpoint]:
    """An endpoint with a label, an id and a kind of its maker's."""
    options = {"api_endpoint": f"{local_cloud.region}-aiplatform.googleapis.com"}
    client = aiplatform_v1.EndpointServiceClient(client_options=options)
    parent = f"projects/{local_cloud.project}/locations/{local_cloud.region}"
    wanted = aiplatform_v1.Endpoint(display_name="theirs", labels={"made-by": "terraform"})
    wanted.dedicated_endpoint_enabled = request.param
    endpoint_id = f"theirs-{uuid.uuid4().hex[:8]}"
    made = client.create_endpoint(parent=parent, endpoint=wanted, endpoint_id=endpoint_id).result(timeout=20)
    yield made
    retire(made.name)


@pytest.fixture
def night(given, make_run, tmp_path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, float], DeployedRun]:
    """A promoted run of a day, of a model that is given the endpoint."""
    save_models(tmp_path, OLD, NEW)
    model = f"given_{uuid.uuid4().hex[:8]}"
    monkeypatch.setenv("RETRAINING_ENDPOINT_IDS", f"{model}={vertex.ResourceName.parse(given.name).resource_id}")
    cloud = Cloud()
    cloud.clock = Waiting()

    def of(day: int, score: float) -> DeployedRun:
        run = make_run(run_id=f"scheduled__{day}", dag_id=f"retrain__{model}")
        return DeployedRun(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), tmp_path / str(score))

    return of


def test_versions_take_turns_on_it_and_none_of_its_own_name_is_made(given, night) -> None:
    """It says whose it is from then on, and keeps what it said before; another model is refused there."""
    for day, score in ((20, OLD), (21, NEW)):
        run = night(day, score)
        run.deploy()
        assert run.cloud.endpoints.predict(run.cloud.endpoints.get(run.model), [INSTANCE]).predictions == [score]
    endpoint = run.cloud.endpoints.get(run.model)
    assert endpoint.name == given.name
    assert endpoint.traffic == {run.deployed_id: 100}
    assert {"made-by": "terraform", vertex.MODEL_LABEL: run.model}.items() <= endpoint.labels.items()
    with pytest.raises(NotFound):
        run.answer()  # at the endpoint of its own name


def test_one_that_is_not_there_is_named(night, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not made: whoever gave the id does that."""
    model = night(20, OLD).model
    monkeypatch.setenv("RETRAINING_ENDPOINT_IDS", f"{model}=nowhere")
    with refuses(SettingsError, where="RETRAINING_ENDPOINT_IDS", found=("nowhere", model), way_out="Make it"):
        Cloud().endpoints.ensure(model, None, {})


def test_an_endpoint_of_another_model_is_left_alone(given, night) -> None:
    """Its label says whose it is; nothing is deployed there, and its traffic stays."""
    first = night(20, OLD)
    first.cloud.endpoints.ensure(first.model, None, {vertex.MODEL_LABEL: "another"})
    first.deploy()
    found = first.cloud.endpoints.get(first.model)
    assert (found.deployed, found.labels[vertex.MODEL_LABEL]) == ({}, "another")
