"""An endpoint of the other kind than the spec asks for: known before anything is paid."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retraining.core.planning.plan import explain
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.hooks.endpoints import EndpointOptions
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.planned_run import FORM, plan, stored_plan

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


NETWORK = "projects/the-network-project/global/networks/main"


@pytest.fixture
def private_cloud() -> FakeCloud:
    """Of an organisation whose endpoints answer in a network alone; it has none yet."""
    cloud = FakeCloud()
    serving = "us-central1-docker.pkg.dev/p/retraining/tensorflow-serving:2.19.1"
    cloud.settings = dataclasses.replace(cloud.settings, endpoint_network=NETWORK, serving_image=serving)
    return cloud


@pytest.fixture
def deployment(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Says what the model's file has in its section of that name."""
    load = files.load_spec

    def change(**values: Any) -> None:
        def changed(path: Path) -> ModelSpec:
            spec = load(path).model_dump(mode="json")
            return ModelSpec.model_validate(spec | {"deployment": spec["deployment"] | values})

        monkeypatch.setattr(files, "load_spec", changed)

    return change


def test_explanations_of_a_private_endpoint_are_refused_before_anything_is_paid(
    private_cloud, make_run: Any, deployment: Callable[..., None]
) -> None:
    """Whether it is there or would be made."""
    deployment(explanations={})
    with refuses(
        AirflowFailException, where="deployment.explanations", found="RETRAINING_ENDPOINT_NETWORK", way_out="Remove"
    ):
        plan(private_cloud, make_run(params=FORM))
    made = private_cloud.endpoints.ensure(MODEL, None, private_cloud.environment.labels)
    private_cloud.endpoints.endpoint = dataclasses.replace(made, private=True)
    with refuses(AirflowFailException, where="deployment.explanations", found=made.name, way_out="Remove"):
        plan(private_cloud, make_run(params=FORM))


def test_a_private_endpoint_has_an_address_of_its_own_whatever_the_file_says(
    private_cloud, make_run: Any, deployment: Callable[..., None]
) -> None:
    """It is neither of the two kinds of public ones."""
    made = private_cloud.endpoints.ensure(MODEL, None, private_cloud.environment.labels)
    private_cloud.endpoints.endpoint = dataclasses.replace(made, private=True)
    for dedicated in (True, False):
        deployment(dedicated_endpoint=dedicated)
        assert plan(private_cloud, make_run(params=FORM))["run_key"]


def test_an_endpoint_from_before_stays_public_and_each_plan_says_so(private_cloud, make_run: Any, capsys) -> None:
    """With what makes it a private one."""
    made = private_cloud.endpoints.ensure(MODEL, None, private_cloud.environment.labels)
    assert plan(private_cloud, make_run(params=FORM))["run_key"]
    told = capsys.readouterr().out
    assert f"{made.name} answers at a public address" in told
    assert "delete it" in told


def test_an_endpoint_that_somebody_else_was_to_make_is_missed_before_anything_is_paid(make_run: Any) -> None:
    """By the name of the setting; once it is there, the run goes on."""
    cloud = FakeCloud()
    cloud.settings = dataclasses.replace(cloud.settings, endpoint_ids=((MODEL, "flights-prod"),))
    cloud.endpoints.given[MODEL] = "flights-prod"
    with refuses(
        AirflowFailException, where="RETRAINING_ENDPOINT_IDS", found=("flights-prod", MODEL), way_out="Make it"
    ):
        plan(cloud, make_run(params=FORM))
    made = cloud.endpoints.ensure(MODEL, None, {})
    assert made.name.endswith("/flights-prod")
    for dedicated in (False, True):  # its kind is its maker's
        cloud.endpoints.endpoint = dataclasses.replace(made, dedicated=dedicated)
        assert plan(cloud, make_run(params=FORM))["run_key"]


def test_machines_that_models_share_are_looked_for_before_anything_is_paid(
    make_run: Any, deployment: Callable[..., None]
) -> None:
    """Where they are, nothing is paid beside them; a container that they do not serve is refused by name."""
    cloud = FakeCloud()
    deployment(shared_machines="small-models")
    with refuses(
        AirflowFailException, where="deployment.shared_machines", found="small-models", way_out="machines-that-models"
    ):
        plan(cloud, make_run(params=FORM))
    cloud.endpoints.shared_machines.add("small-models")
    stored = stored_plan(cloud, plan(cloud, make_run(params=FORM)))
    assert stored.endpoint_usd_per_hour is None
    assert any("on the shared machines small-models" in line for line in explain(stored))
    serving = "us-central1-docker.pkg.dev/p/retraining/tensorflow-serving:2.19.1"
    cloud.settings = dataclasses.replace(cloud.settings, serving_image=serving)
    with refuses(
        AirflowFailException, where="deployment.shared_machines", found=serving, way_out="deployment.container"
    ):
        plan(cloud, make_run(params=FORM))
