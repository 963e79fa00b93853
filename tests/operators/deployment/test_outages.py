"""A service does not answer for minutes in the middle of a deployment: it is waited for, no machine is paid twice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from retraining.core.documents import Served
from retraining.core.errors import JobError
from retraining.core.promotion import rollouts
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.refusals import refuses
from tests.support.scenes.deployment import Scene
from tests.support.scenes.dying_run import DyingRun, promoted_run, require_as_before, require_served

SERVICES = ("artifacts", "registry", "endpoints", "serving_metrics", "warehouse")


class Away:
    """A service that answers nothing from its n-th call on, for a while.

    Args:
        service: Of the fake.
        clock: The time.
        at: Number of the call.
        lasts: From then on.
        lost: Whether that call is done, and only its answer is lost.
    """

    def __init__(self, service: Any, clock: Any, at: int, lasts: timedelta, *, lost: bool = False) -> None:
        self._service, self._clock, self._at, self._lasts, self._lost = service, clock, at, lasts, lost
        self.calls = 0
        self.since: datetime | None = None

    def __getattr__(self, name: str) -> Any:
        """The service's own, while it answers."""
        found = getattr(self._service, name)
        return self._guarded(found, name) if callable(found) else found

    def _guarded(self, method: Any, name: str) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            if self.calls == self._at:
                self.since = self._clock.now()
                if self._lost:
                    method(*args, **kwargs)
            if self.since is not None and self._clock.now() - self.since < self._lasts:
                raise ServiceUnavailable(f"{name}: the service is away")
            return method(*args, **kwargs)

        return called


class Disturbed:
    """The fake with one service in the place of its own."""

    def __init__(self, cloud: Any, **services: Any) -> None:
        self._cloud = cloud
        self.__dict__.update(services)

    def __getattr__(self, name: str) -> Any:
        """All else is the fake's."""
        return getattr(self._cloud, name)

    def connect(self) -> Disturbed:
        """Return this very cloud at each poke."""
        return self


@pytest.fixture(scope="module")
def night(make_run: Any) -> Callable[[], DyingRun]:
    """Makes a promoted run with a ramp, after a champion (2) and its predecessor (1)."""
    made = promoted_run(make_run, canary={"percent": [10, 100], "bake_minutes": 1, "max_error_increase": 0.1})
    for deployed_id in (*made.scene.endpoint.deployed, made.scene.mine):
        made.scene.cloud.serving_metrics.by_id[deployed_id] = Served(requests=200, errors=0, latency_ms=10.0)
    return lambda: copy.deepcopy(made)


def deploy(it: DyingRun, cloud: Any, wakes: int = 60) -> bool:
    """Wake the task each minute until it ends; any error is one of its tries, and fails this."""
    task = DeployModelOperator(task_id="deploy", run_uri=it.scene.folder, retries=0, cloud=cloud.connect)
    for _ in range(wakes):
        it.scene.cloud.clock.sleep(60)
        try:
            return bool(it.run.execute(task)["deployed"])
        except AirflowRescheduleException:
            continue
    return False


@pytest.mark.parametrize("service", SERVICES)
def test_ten_minutes_without_a_service_are_waited_for(night, service: str) -> None:
    """From each of its calls on: no try fails, the machines are paid once, the version is champion in the end."""
    for at in range(1, 100):
        it = night()
        away = Away(getattr(it.scene.cloud, service), it.scene.cloud.clock, at, timedelta(minutes=10))
        assert deploy(it, Disturbed(it.scene.cloud, **{service: away})), f"{service}, call {at}"
        if away.since is None:
            assert at > 1
            break
        require_served(f"{service}, call {at}", it, "3", "2")
        assert len(it.scene.cloud.endpoints.deploys) == 1, f"{service}, call {at}"
        (step,) = it.scene.read("deployment")["steps"]
        assert [gate["passed"] for gate in step["gates"]] == [True, True, True, None], f"{service}, call {at}"
    else:
        raise AssertionError("it never ends")


def register(scene: Scene, run: Any, cloud: Any, wakes: int = 400) -> bool:
    """Wake the task `register` each minute until it ends; any error is one of its tries, and fails this."""
    task = RegisterModelOperator(task_id="register", run_uri=scene.folder, retries=0, cloud=cloud.connect)
    for _ in range(wakes):
        scene.cloud.clock.sleep(60)
        try:
            run.execute(task)
        except AirflowRescheduleException:
            continue
        return True
    return False


@pytest.mark.parametrize("lost", [False, True], ids=["away", "answer lost"])
@pytest.mark.parametrize("service", ["artifacts", "registry", "model_files"])
def test_hours_without_the_registry_or_storage_are_waited_for(make_run, service: str, lost: bool) -> None:
    """From each of the registration's calls on, as long as a deployment would wait: one upload, one version."""
    for at in range(1, 100):
        scene = Scene()
        away = Away(getattr(scene.cloud, service), scene.cloud.clock, at, rollouts.OUTAGE_LASTS, lost=lost)
        assert register(scene, make_run(), Disturbed(scene.cloud, **{service: away})), f"{service}, call {at}"
        if away.since is None:
            assert at > 1
            break
        assert len(scene.cloud.registry.uploads) == 1, f"{service}, call {at}"
        assert list(scene.cloud.registry.versions) == ["1"], f"{service}, call {at}"
        assert scene.read("registration")["aliases"] == ["challenger", "default"], f"{service}, call {at}"
    else:
        raise AssertionError("it never ends")


def test_a_step_that_cannot_be_measured_ends(night) -> None:
    """After two hours what served before has all again; no gate has judged."""
    it = night()
    away = Away(it.scene.cloud.serving_metrics, it.scene.cloud.clock, 1, timedelta(days=1))
    cloud, start = Disturbed(it.scene.cloud, serving_metrics=away), it.scene.cloud.clock.now()
    with refuses(JobError, found="no answer since", expected="120 minutes"):
        deploy(it, cloud, wakes=200)
    lasted = it.scene.cloud.clock.now() - start
    assert rollouts.OUTAGE_LASTS < lasted < rollouts.OUTAGE_LASTS + timedelta(minutes=15)
    require_as_before("", it, first=False)


def test_a_version_that_alone_does_not_answer_is_not_waited_for_as_long(night) -> None:
    """It has no traffic between two tries, and is taken off after twenty minutes."""
    it = night()
    endpoints, mine = it.scene.cloud.endpoints, it.scene.mine
    real, shares = endpoints.predict, []

    def predict(endpoint: Any, instances: Any) -> Any:
        answer = real(endpoint, instances)
        if answer.deployed_model_id == mine:
            raise ServiceUnavailable("the model is not ready")
        return answer

    endpoints.predict = predict
    start = it.scene.cloud.clock.now()
    while it.scene.cloud.clock.now() - start < rollouts.ANSWERS_WITHIN:
        assert not deploy(it, it.scene.cloud, wakes=1)
        shares.append(it.scene.endpoint.traffic.get(mine))
    with pytest.raises(JobError, match="Expected one within 20 minutes"):
        deploy(it, it.scene.cloud, wakes=5)
    assert set(shares) == {None}
    assert it.scene.cloud.clock.now() - start < timedelta(minutes=30)
    require_as_before("", it, first=False)
    assert len(endpoints.deploys) == 1
