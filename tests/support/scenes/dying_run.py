"""A promoted run's task `deploy` with a death at one call of the cloud, what follows it, and what must be so then."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from retraining.core.errors import ConflictError, JobError
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.retention.versions import end_deployment, find_deployments
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.scenes.deployment import Scene

MOST_WAKES = 60


class DyingRun:
    """A run's task `deploy` from its first wake to its end, with one death in it.

    Args:
        make_run: Makes DAG runs.
        scene: The run and its cloud.
    """

    def __init__(self, make_run: Any, scene: Scene) -> None:
        self.scene = scene
        self.run = make_run(run_id=f"scheduled__{scene.run_key}")
        self.died = False
        self.calls: list[str] = []
        # Of the night after it, where a test plays one: its end, and the version that was champion before.
        self.next: DyingRun | None = None
        self.outcome = self.before = ""
        self.run.execute(RegisterModelOperator(task_id="register", run_uri=scene.folder, cloud=scene.cloud.connect))

    def deploy(self, at: int = 0, *, after: bool = False, tries: int = 4) -> str:
        """Wake the task until it ends; `died` when its tries are used up by the death."""
        cloud = DyingCloud(self.scene.cloud, at, after=after)
        self.calls = cloud.calls
        task = DeployModelOperator(task_id="deploy", run_uri=self.scene.folder, retries=tries - 1, cloud=cloud.connect)
        number = 1
        for _ in range(MOST_WAKES):
            self.scene.cloud.clock.sleep(60)
            try:
                return "deployed" if self.run.execute(task, try_number=number)["deployed"] else "refused"
            except AirflowRescheduleException:
                continue
            except AirflowFailException:
                return "failed"
            except Death:
                self.died, number = True, number + 1
            except (JobError, ConflictError):
                number += 1
            if number > tries:
                return "died"
        raise AssertionError(f"not at its end after {MOST_WAKES} wakes: {self.scene.cloud.artifacts.objects}")

    def teardown(self) -> None:
        """The run's task `cancel_jobs`, as often as it asks to be called again."""
        task = CancelJobsOperator(task_id="cancel_jobs", run_uri=self.scene.folder, cloud=self.scene.cloud.connect)
        for _ in range(MOST_WAKES):
            self.scene.cloud.clock.sleep(60)
            with contextlib.suppress(AirflowRescheduleException):
                self.run.execute(task)
                return
        raise AssertionError("the teardown never ends")

    def clean(self) -> list[str]:
        """The daily cleaning's part for deployed models; gives the outcomes."""
        self.scene.cloud.clock.sleep(24 * 3600)
        now = self.scene.cloud.clock.now()
        found = list(find_deployments(self.scene.cloud, "flight_delays", now))
        return [end_deployment(self.scene.cloud, item, now).outcome for item in found]


def promoted_run(make_run: Any, *, first: bool = False, keep_hours: int = 24, **deployment: Any) -> DyingRun:
    """A promoted run: version 3, after a champion (2) and its predecessor (1); or the first one of all.

    Args:
        make_run: Makes DAG runs.
        first: Whether nothing served before it.
        keep_hours: Of the version before.
        deployment: Further values of that section of the spec.
    """
    scene = Scene()
    scene.deployment(keep_previous_hours=keep_hours, **deployment)
    if not first:
        before = scene.cloud.registry.add("20121231t000000z-000000000000")
        scene.promoted(before.run_key)
        scene.old_champion()
        scene.cloud.registry.merge_aliases(before, ["previous"])
    return DyingRun(make_run, scene)


def deaths(
    make: Callable[[], DyingRun], play: Callable[[DyingRun, int, bool], Any], last: tuple[str, int] = ("", 1)
) -> Iterator[tuple[str, DyingRun]]:
    """Play a night once per call and side of it; gives where it died, and what is there then.

    Args:
        make: Makes the night.
        play: Plays it, with a death at a call, before or after it.
        last: Name of the call at whose n-th time the last death is; empty: the night's last call.
    """
    for after in (False, True):
        for at in range(1, 500):
            night = make()
            play(night, at, after)
            if not night.died:
                assert at > 10, "the night makes more calls than that"
                break
            yield f"{'after' if after else 'before'} call {at} ({night.calls[at - 1]})", night
            if night.calls[:at].count(last[0]) == last[1]:
                break


def require_served(where: str, night: DyingRun, champion: str, previous: str | None, *, kept: bool = True) -> None:
    """This run's version has everything, and nothing else is paid but the version before, while it is kept."""
    scene = night.scene
    assert scene.endpoint.traffic == {scene.mine: 100}, where
    paid = [champion, previous] if kept and previous else [champion]
    assert sorted(name.split("@")[1] for name in scene.endpoint.deployed.values()) == sorted(paid), where
    assert not scene.cloud.endpoints.running, where
    assert (scene.holder("champion"), scene.holder("previous"), scene.holder("default")) == (
        champion,
        previous,
        champion,
    ), where


def require_as_before(where: str, night: DyingRun, *, first: bool) -> None:
    """All is as it was: traffic, aliases, machines."""
    scene = night.scene
    old = [] if first else [scene.cloud.registry.versions["2"]]
    assert list(scene.endpoint.deployed.values()) == [version.version_name for version in old], where
    assert sum(scene.endpoint.traffic.values()) == (0 if first else 100), where
    assert not scene.cloud.endpoints.running, where
    assert scene.holder("champion") == (None if first else "2"), where
    assert scene.holder("previous") == (None if first else "1"), where
    assert scene.holder("default") == ("1" if first else "2"), where
    assert scene.holder("challenger") == ("1" if first else "3"), where
