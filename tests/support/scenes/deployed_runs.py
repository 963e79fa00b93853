"""Runs of a model in memory that were deployed one after the other, and rollbacks between their versions."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

from retraining.core.documents import Rollback, Rollout
from retraining.core.errors import ConflictError, JobError
from retraining.core.naming import storage
from retraining.core.naming.vertex import deployed_model_id
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.deployment.version_rollback import RollBackOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.scenes.deployment import Scene

MOST_WAKES = 30
RUN_KEYS = ("20131118t030000z-000000000001", "20131119t030000z-000000000002", "20131120t030000z-000000000003")
SETTINGS_BUCKET = FakeCloud().settings.bucket


class DeployedRuns:
    """Runs that were deployed one after the other, and the cloud around them, as versions 1, 2 and so on.

    Args:
        make_run: Makes DAG runs.
        deployed: How many.
    """

    def __init__(self, make_run: Any, deployed: int = 2) -> None:
        self.cloud = FakeCloud()
        self.make_run = make_run
        self.scenes: list[Scene] = []
        self.died = False
        self.calls: list[str] = []
        for _ in range(deployed):
            self.register()
            assert self.deploy(self.scenes[-1]) == "deployed"

    def register(self) -> Scene:
        """The next run, up to its task `register`."""
        key = RUN_KEYS[len(self.scenes)]
        scene = Scene(self.cloud, key)
        scene.change("plan", as_of=f"2013-11-{key[6:8]}T03:00:00Z")
        if champion := self.cloud.registry.find_by_alias("flight_delays", "champion"):
            scene.decided_against(champion.version_id, champion.run_key)
        self.cloud.artifacts.objects[f"{scene.report['model_uri']}/saved_model.pb"] = b"graph"
        run = self.make_run(run_id=f"scheduled__{key}")
        run.execute(RegisterModelOperator(task_id="register", run_uri=scene.folder, cloud=self.cloud.connect))
        version = self.cloud.registry.versions[str(len(self.scenes) + 1)]
        path = storage.model_uri(storage.training_uri(scene.folder))
        self.cloud.registry.versions[version.version_id] = dataclasses.replace(version, artifact_uri=path)
        self.cloud.artifacts.objects[f"{path}/saved_model.pb"] = b"graph"
        self.scenes.append(scene)
        return scene

    def deploy(self, scene: Scene, cloud: Any = None, wakes: int = MOST_WAKES) -> str:
        """The task `deploy` of a run, until it ends, or for some wakes."""
        run = self.make_run(run_id=f"scheduled__{scene.run_key}")
        task = DeployModelOperator(
            task_id="deploy", run_uri=scene.folder, retries=3, cloud=(cloud or self.cloud).connect
        )
        return self._wake(run, task, wakes, lambda done: "deployed" if done["deployed"] else done["words"])

    def go_back(
        self,
        to: str = "previous",
        *,
        number: int = 1,
        at: int = 0,
        after: bool = False,
        wakes: int = MOST_WAKES,
        from_version: str | None = None,
    ) -> str:
        """The task `roll_back`, until it ends, or for some wakes; one death in it."""
        cloud = DyingCloud(self.cloud, at, after=after)
        self.calls = cloud.calls
        task = RollBackOperator(task_id="roll_back", retries=3, cloud=cloud.connect)
        return self._wake(self.rollback(to, number, from_version), task, wakes, lambda done: done["words"])

    def rollback(self, to: str, number: int, from_version: str | None = None) -> Any:
        """A DAG run of `rollback`, triggered one second after another."""
        return self.make_run(
            dag_id="rollback",
            run_id=f"manual__{number}",
            run_after=FakeCloud().clock.now() + timedelta(seconds=number),
            params={
                "model": "flight_delays",
                "to": to,
                "reason": "complaints",
                "pause_until": None,
                "from_version": from_version,
            },
        )

    def _wake(self, run: Any, task: Any, wakes: int, told: Any) -> str:
        for _ in range(wakes):
            self.cloud.clock.sleep(60)
            try:
                return told(run.execute(task))
            except AirflowRescheduleException:
                continue
            except AirflowFailException as error:
                return f"failed: {error}"
            except Death:
                self.died = True
            except (JobError, ConflictError):
                continue
        return "under way"

    def documents(self) -> list[Rollback]:
        """All rollbacks on storage."""
        objects = self.cloud.artifacts.objects
        return [Rollback.parse(objects[uri]) for uri in sorted(objects) if "/rollbacks/" in uri]

    def rollout(self) -> Rollout:
        """The model's."""
        return Rollout.parse(self.cloud.artifacts.objects[storage.rollout_uri(SETTINGS_BUCKET, "flight_delays")])

    def require_served(self, where: str, champion: str, previous: str | None) -> None:
        """A version has all traffic and its aliases; the one before it stays deployed without traffic."""
        scene = self.scenes[-1]
        serving = self.cloud.registry.versions[champion]
        assert scene.endpoint.traffic == {deployed_model_id(serving.run_key): 100}, where
        assert not self.cloud.endpoints.running, where
        assert (scene.holder("champion"), scene.holder("previous"), scene.holder("default")) == (
            champion,
            previous,
            champion,
        ), where
        assert self.rollout().state == "ended", where
