"""Somebody else acts at every single call of a deployment: who answers then, who is champion, what is paid.

Whoever outlived its run changes nothing; what a person did to the endpoint stays; a cleaning in between does nothing.
Each cell lets somebody act before or after one call, once, and looks from outside. Rollbacks are in test_rollback.py.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from retraining.core.documents import Rollout, Served
from retraining.core.errors import ConflictError, JobError
from retraining.core.naming import storage
from retraining.core.naming.vertex import deployed_model_id
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.retention.versions import end_deployment, find_deployments
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.dying import DyingCloud
from tests.support.scenes.dying_run import DyingRun, promoted_run, require_as_before, require_served

MODEL = "flight_delays"
MOST_CALLS = 400
HAND, FOREIGN = "77", "projects/p/locations/r/models/other@1"
OLD = deployed_model_id("20130101t000000z-000000000000")


class Cell:
    """A deployment in which somebody else acts once.

    Args:
        night: Of the run.
        make_run: Makes DAG runs.
    """

    def __init__(self, night: DyingRun, make_run: Any) -> None:
        self.night, self.scene, self.cloud = night, night.scene, night.scene.cloud
        self.make_run = make_run
        self.acted = self.at_its_beginning = False
        self.where = ""
        self.then: Any = None

    def seen(self) -> Any:
        """What there is outside: traffic, machines, aliases."""
        aliases = {alias: self.scene.holder(alias) for alias in ("champion", "previous", "default", "challenger")}
        endpoint = self.scene.endpoint
        return endpoint.traffic, endpoint.deployed, list(self.cloud.endpoints.running), aliases

    def wake(self, cloud: Any = None) -> bool:
        """A wake of the task; whether it is at its end."""
        self.cloud.clock.sleep(60)
        task = DeployModelOperator(
            task_id="deploy", run_uri=self.scene.folder, retries=3, cloud=(cloud or self.cloud).connect
        )
        with contextlib.suppress(AirflowRescheduleException, AirflowFailException, JobError, ConflictError):
            self.night.run.execute(task)
            return True
        return False

    def wake_until_the_end(self, wakes: int = 40) -> bool:
        """The task goes on as ever; whether it came to its end."""
        return any(self.wake() for _ in range(wakes))

    def maintain(self, cloud: Any = None) -> list[str]:
        """The daily cleaning's part for deployed models; gives the outcomes."""
        now, cloud = self.cloud.clock.now(), cloud or self.cloud
        return [end_deployment(cloud, item, now).outcome for item in list(find_deployments(cloud, MODEL, now))]

    def rollout(self) -> Rollout:
        """The model's."""
        return Rollout.parse(self.cloud.artifacts.objects[storage.rollout_uri(self.cloud.settings.bucket, MODEL)])


@pytest.fixture(scope="module")
def make(make_run: Any) -> Callable[..., Cell]:
    """Makes a promoted run after a champion (2) and its predecessor (1); with a ramp, or without."""
    made: dict[bool, DyingRun] = {}

    def one(*, ramp: bool) -> Cell:
        if ramp not in made:
            options = {"canary": {"percent": [10, 100], "bake_minutes": 1, "max_error_increase": 0.1}} if ramp else {}
            made[ramp] = promoted_run(make_run, **options)
            scene = made[ramp].scene
            for deployed_id in (*scene.endpoint.deployed, scene.mine):
                scene.cloud.serving_metrics.by_id[deployed_id] = Served(requests=200, errors=0, latency_ms=10.0)
        return Cell(copy.deepcopy(made[ramp]), make_run)

    return one


def cells(make: Callable[[], Cell], act: Callable[[Cell], Any], *, wakes: int = 1, first: int = 1) -> Iterator[Cell]:
    """Let somebody act before and after each call of a deployment's first wakes, once each; gives what is then.

    Args:
        make: Makes the deployment.
        act: What the other does.
        wakes: How many of them are gone through.
        first: The wake in which the first acts.
    """
    for after in (False, True):
        for at in range(1, MOST_CALLS):
            cell = make()
            for _ in range(first - 1):
                cell.wake()

            def once(cell: Cell = cell) -> None:
                cell.acted = True
                act(cell)
                cell.then = cell.seen()

            cloud = DyingCloud(cell.cloud, at, after=after, instead=once)
            for _ in range(wakes):
                calls = len(cloud.calls)
                if cell.wake(cloud) or cell.acted:
                    break
            cell.at_its_beginning = not after and at == calls + 1
            if not cell.acted:
                assert at > 10, "it makes more calls than that"
                break
            cell.where = f"{'after' if after else 'before'} call {at} ({cloud.calls[at - 1]})"
            yield cell
        else:
            raise AssertionError("it never ends")


@pytest.mark.parametrize("ramp", [False, True], ids=["at once", "ramp"])
def test_whoever_outlived_its_run_changes_nothing(make, ramp: bool) -> None:
    """Its run was marked as failed and torn down at each call: all is as before, or the version has all and is paid.

    The machines of an outlived deployment are not paid for a day, nor does it leave a share or an alias.
    """
    served = set()
    for cell in cells(lambda: make(ramp=ramp), lambda cell: cell.night.teardown(), wakes=12):
        if cell.at_its_beginning:
            continue  # it has not read a thing: Airflow begins no task of a run that has ended
        champion = cell.scene.holder("champion")
        served.add(champion)
        assert cell.seen() == cell.then, cell.where
        if champion == "3":
            require_served(cell.where, cell.night, "3", "2")
        else:
            require_as_before(cell.where, cell.night, first=False)
        assert cell.rollout().state == "ended", cell.where
    assert served == {"2", "3"}


@pytest.mark.parametrize("ramp", [False, pytest.param(True, marks=pytest.mark.long)], ids=["at once", "ramp"])
def test_a_cleaning_in_the_middle_of_a_deployment_changes_nothing(make, ramp: bool) -> None:
    """At each call: the deployment ends as ever."""
    for cell in cells(lambda: make(ramp=ramp), Cell.maintain, wakes=12):
        assert cell.wake_until_the_end(), cell.where
        require_served(cell.where, cell.night, "3", "2")
        assert len(cell.cloud.endpoints.deploys) == 1, cell.where


def put_there(cell: Cell) -> None:
    """A person deploys a model beside the others and gives it 30 % of what they have."""
    endpoints, now = cell.cloud.endpoints, cell.scene.endpoint
    endpoints.endpoint = dataclasses.replace(now, deployed={**now.deployed, HAND: FOREIGN}, etag=f"{now.etag}#")
    shares = {key: share * 70 // 100 for key, share in now.traffic.items()}
    shares[max(shares, key=shares.__getitem__)] += 70 - sum(shares.values())
    endpoints.set_traffic(cell.scene.endpoint, {**shares, HAND: 30})


def take_away(cell: Cell) -> None:
    """A person gives the new version all, where it is there, and takes the champion away."""
    endpoints = cell.cloud.endpoints
    if cell.scene.mine not in cell.scene.endpoint.deployed:
        return
    endpoints.set_traffic(cell.scene.endpoint, {cell.scene.mine: 100})
    endpoints.undeploy(cell.scene.endpoint, OLD)


def give_back(cell: Cell) -> None:
    """A person gives the champion all the traffic, and takes the new version away."""
    endpoints = cell.cloud.endpoints
    if OLD not in cell.scene.endpoint.deployed:
        return
    endpoints.set_traffic(cell.scene.endpoint, {OLD: 100})
    endpoints.undeploy(cell.scene.endpoint, cell.scene.mine)


@pytest.mark.parametrize(
    "ended", [True, pytest.param(False, marks=pytest.mark.long)], ids=["the run ends", "it goes on"]
)
@pytest.mark.parametrize("ramp", [False, True], ids=["at once", "ramp"])
@pytest.mark.parametrize("act", [put_there, take_away, give_back])
def test_what_a_person_does_to_the_endpoint_stays_and_somebody_answers(make, act, ramp: bool, ended: bool) -> None:
    """At each call: the endpoint is never empty, and a person's model keeps its share, whatever becomes of the run."""
    for cell in cells(lambda: make(ramp=ramp), act, wakes=12):
        if not ended:
            cell.wake_until_the_end()
        cell.night.teardown()
        endpoint, where = cell.scene.endpoint, f"{cell.where}: {cell.scene.endpoint.traffic}"
        assert sum(endpoint.traffic.values()) == 100, where
        if act is put_there:
            assert endpoint.traffic[HAND] == 30, where
        assert cell.rollout().state == "ended", where
        assert not cell.cloud.endpoints.running, where
        champion = cell.cloud.registry.versions[cell.scene.holder("champion")]
        own = {key for key in endpoint.traffic if key != HAND}
        if champion.version_name in endpoint.deployed.values():
            assert own == {deployed_model_id(champion.run_key)}, where
        else:  # it is the champion that a person took away
            assert own == {OLD if act is give_back else cell.scene.mine}, where
