"""A model without an endpoint: decisions and rollbacks move its aliases, and no machine is ever paid for."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from retraining.hooks.endpoints import Endpoint
from tests.support.fakes.dying import DyingCloud
from tests.support.scenes.deployed_runs import DeployedRuns
from tests.support.scenes.deployment import Scene


class RunsWithoutEndpoint(DeployedRuns):
    """Runs of a model whose file says `deployment.endpoint: false`, from the first one on or from a later one.

    Args:
        make_run: Makes DAG runs.
        deployed: How many.
        wants: Whether each wants an endpoint; empty: none does.
    """

    def __init__(self, make_run: Any, deployed: int = 2, wants: tuple[bool, ...] = ()) -> None:
        self.wants = wants
        super().__init__(make_run, deployed)

    def register(self) -> Scene:
        """As the base, of a run that wants none."""
        number = len(self.scenes)
        scene = super().register()
        scene.deployment(endpoint=self.wants[number] if self.wants else False)
        return scene

    @property
    def aliases(self) -> dict[str, tuple[str, ...]]:
        """By version."""
        return {key: version.aliases for key, version in self.cloud.registry.versions.items() if version.aliases}


def test_the_champion_changes_and_nothing_is_paid_for(make_run: Any) -> None:
    """No endpoint, no machine; who was before is the way back; the document says who scores."""
    runs = RunsWithoutEndpoint(make_run, 2)
    assert runs.cloud.endpoints.endpoint is None
    assert runs.cloud.endpoints.deploys == []
    assert runs.aliases == {"1": ("previous",), "2": ("champion", "default")}
    done = runs.scenes[1].read("deployment")
    assert (done["deployed"], done["endpoint_name"], done["traffic"]) == (True, None, {})
    assert done["words"] == "Version 2 is champion without an endpoint, after version 1."
    assert runs.rollout().state == "ended"


def test_a_death_at_any_call_leaves_the_same(make_run: Any) -> None:
    """Before the call and after it: the next try of the task ends with one champion."""
    undisturbed = RunsWithoutEndpoint(make_run, 1)
    cloud = DyingCloud(undisturbed.cloud)
    undisturbed.deploy(undisturbed.register(), cloud)
    assert len(cloud.calls) > 10
    for at, after in itertools.product(range(1, len(cloud.calls) + 1), (False, True)):
        runs = RunsWithoutEndpoint(make_run, 1)
        said = runs.deploy(runs.register(), DyingCloud(runs.cloud, at, after=after))
        assert runs.died
        assert said == "deployed"
        assert runs.aliases == {"1": ("previous",), "2": ("champion", "default")}, (at, after, cloud.calls)
        assert runs.rollout().state == "ended"


def test_a_rollback_moves_the_aliases_alone(make_run: Any) -> None:
    """Back and forth again; no endpoint is made for it."""
    runs = RunsWithoutEndpoint(make_run, 2)
    assert runs.go_back() == "Version 1 is champion, after version 2."
    assert runs.aliases["1"] == ("champion", "default")
    assert runs.go_back("2", number=2) == "Version 2 is champion, after version 1."
    assert runs.cloud.endpoints.endpoint is None
    assert runs.cloud.endpoints.deploys == []


@pytest.mark.parametrize("wants", [(True, False), (False, True)], ids=["given up", "given later"])
def test_a_rollback_serves_as_who_it_goes_back_from(make_run: Any, wants: tuple[bool, bool]) -> None:
    """Whatever the version's own run wanted: no machine where the model has no endpoint now, traffic where it has."""
    runs = RunsWithoutEndpoint(make_run, 2, wants)
    before = len(runs.cloud.endpoints.deploys)
    said = runs.go_back()
    assert runs.aliases["1"] == ("champion", "default")
    if wants[1]:
        endpoint = runs.cloud.endpoints.get("flight_delays")
        assert endpoint is not None
        assert endpoint.traffic == {runs.scenes[0].mine: 100}
        assert said.startswith("Version 1 serves all requests as champion")
    else:
        assert len(runs.cloud.endpoints.deploys) == before
        assert said.startswith("Version 1 is champion")


def test_an_endpoint_of_earlier_days_answers_on(make_run: Any) -> None:
    """Somebody may ask it still: it keeps its traffic, and a person takes it away."""
    runs = RunsWithoutEndpoint(make_run, 2, (True, False))
    endpoint = runs.cloud.endpoints.get("flight_delays")
    assert endpoint is not None
    assert endpoint.traffic == {runs.scenes[0].mine: 100}
    assert runs.aliases["2"] == ("champion", "default")


def test_what_is_deployed_without_traffic_leaves(make_run: Any) -> None:
    """Its machines would be paid for nobody."""
    runs = RunsWithoutEndpoint(make_run, 1, (True, False))
    endpoint = runs.cloud.endpoints.get("flight_delays")
    assert endpoint is not None
    runs.cloud.endpoints.endpoint = Endpoint(name=endpoint.name, deployed=endpoint.deployed, traffic={})
    assert runs.deploy(runs.register()) == "deployed"
    assert runs.cloud.endpoints.undeployed == [runs.scenes[0].mine]
