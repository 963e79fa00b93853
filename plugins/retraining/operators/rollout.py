"""Moving an endpoint's traffic to a new version, one safe step after the other; each may be repeated.

In: what the endpoint and the registry say now, and what an earlier wake noted. Out: the deployment document, or None
while the machines start. Nothing becomes champion before the endpoint itself gave the model's own answers.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from retraining.core import answers, names
from retraining.core.documents import Deployment, Plan, Registration, Report, SmokeTest
from retraining.core.errors import ConflictError, ContractError, JobError
from retraining.hooks.cloud import Cloud
from retraining.hooks.endpoints import Endpoint, Operation, deployed_model_id
from retraining.hooks.registry import Version
from retraining.operators.wake import WakeMemory

LOGGER = logging.getLogger(__name__)
LOOK_INTERVAL_S = 1.0
NEW = "0"  # in a traffic split: the model being deployed
MAX_ABS_ERROR = 1e-4  # float32 sums differ by order; the trainer's and the endpoint's TensorFlow may not be the same


class Rollout:
    """The deployment of one run's version.

    Args:
        cloud: The hooks.
        plan: The run.
        registration: Its version.
        report: With the golden requests.
        memory: Of this try's earlier wakes.
    """

    def __init__(
        self, cloud: Cloud, plan: Plan, registration: Registration, report: Report, memory: WakeMemory
    ) -> None:
        self._cloud = cloud
        self._plan = plan
        self._registration = registration
        self._report = report
        self._memory = memory
        self._notes: dict[str, Any] = {}
        self._id = deployed_model_id(plan.run_key)

    def run(self, champion: Version | None) -> Deployment | None:
        """Go as far as this wake allows.

        Args:
            champion: The version with that alias now; None: there is none yet.

        Raises:
            ContractError: The endpoint does not answer as the saved model does; the previous traffic is back.
            ConflictError: Another run changed the champion meanwhile; the previous traffic is back.
            JobError: The deployment failed.
        """
        self._notes = self._memory.load()
        log_table = names.request_log_table(self._plan.project, self._plan.dataset, self._plan.model)
        endpoint = self._cloud.endpoints.ensure(self._plan.model, log_table, {names.MODEL_LABEL: self._plan.model})
        if self._id not in endpoint.deployed:
            deployed = self._deploy(endpoint)
            if deployed is None:
                return None
            endpoint = deployed
        previous = self._notes.setdefault("previous_traffic", self._others(endpoint))
        previous_name = self._previous_name(champion)
        self._memory.save(**self._notes)
        smoke_test = self._switch(endpoint, previous, champion)
        self._undeploy_others(endpoint)
        words = f"Version {self._registration.version_id} serves all requests as champion"
        words += f", after version {previous_name.split('@')[-1]}." if previous_name else ", the first one."
        return Deployment(
            model=self._plan.model,
            run_key=self._plan.run_key,
            deployed=True,
            words=words,
            endpoint_name=endpoint.name,
            deployed_model_id=self._id,
            traffic={self._id: 100},
            version_name=self._registration.version_name,
            previous_version_name=previous_name,
            smoke_test=smoke_test,
            log_table=log_table,
        )

    def _deploy(self, endpoint: Endpoint) -> Endpoint | None:
        """Start the deployment, or go on watching it; None when the machines are not ready at the end of this wake."""
        operation = self._operation(endpoint)
        until = time.monotonic() + self._cloud.settings.watch_s
        while True:
            if operation is not None and operation.done and operation.error:
                self._notes.pop("operation", None)
                self._memory.save(**self._notes)
                raise JobError(endpoint.name, f"the deployment failed: {operation.error}", "", "Clear the deploy task")
            seen = self._cloud.endpoints.read(endpoint.name)
            if self._id in seen.deployed:
                return seen
            if time.monotonic() >= until:
                LOGGER.info("%s is being deployed; the next wake goes on", self._registration.version_name)
                return None
            time.sleep(LOOK_INTERVAL_S)
            operation = self._cloud.endpoints.operation(operation.name) if operation else None

    def _operation(self, endpoint: Endpoint) -> Operation | None:
        """The deployment under way: the one noted, one that is running, or a new one."""
        if name := self._notes.get("operation"):
            return self._cloud.endpoints.operation(name)
        if running := self._cloud.endpoints.running_operations(endpoint):
            LOGGER.info("%s is at work on the endpoint: waiting for it", running[0].name)
            return running[0]
        self._notes["previous_traffic"] = endpoint.traffic
        resources = self._plan.spec.deployment
        operation = self._cloud.endpoints.start_deploy(
            endpoint,
            self._registration.version_name,
            self._plan.run_key,
            {
                "machine_type": resources.machine,
                "min_replicas": resources.min_replicas,
                "max_replicas": resources.max_replicas,
            },
            {**endpoint.traffic, NEW: 0} if endpoint.traffic else {NEW: 100},
        )
        if operation is not None:
            LOGGER.info("%s: deploying %s", operation.name, self._registration.version_name)
            self._notes["operation"] = operation.name
            self._memory.save(**self._notes)
        return operation

    def _switch(self, endpoint: Endpoint, previous: Mapping[str, int], champion: Version | None) -> SmokeTest:
        """Give the new version the traffic, ask it, make it champion; on any error give the traffic back."""
        self._cloud.endpoints.set_traffic(endpoint, {self._id: 100})
        try:
            smoke_test = self._ask_golden(endpoint)
            self._crown(champion)
        except Exception:
            self._give_back(endpoint, previous)
            raise
        return smoke_test

    def _ask_golden(self, endpoint: Endpoint) -> SmokeTest:
        golden = self._report.golden
        if not golden:
            raise ContractError("report.json", "no golden requests", "some", "Clear the train task")
        instances = answers.instances(golden, self._plan.spec.features)
        answer = self._cloud.endpoints.predict(endpoint, instances)
        if answer.deployed_model_id != self._id:
            raise JobError(endpoint.name, f"{answer.deployed_model_id} answered", self._id, "Clear the deploy task")
        worst = max(
            answers.distance(said, item.prediction) for said, item in zip(answer.predictions, golden, strict=True)
        )
        LOGGER.info("smoke test: %d requests, largest difference %.2g", len(golden), worst)
        if not worst <= MAX_ABS_ERROR:
            raise ContractError(
                endpoint.name,
                f"answers that differ from the saved model's by up to {worst:.3g}",
                f"at most {MAX_ABS_ERROR:g}",
                "The previous version serves again. Compare the serving image's TensorFlow with the trainer's",
            )
        return SmokeTest(requests=len(golden), max_abs_error=worst)

    def _crown(self, champion: Version | None) -> None:
        """Compare-and-set of `champion`; the old one becomes `previous`, and `challenger` has done its service."""
        registry, model = self._cloud.registry, self._plan.model
        version = registry.find_by_run(model, self._plan.run_key)
        if version is None:
            raise ConflictError(
                self._registration.version_name, "the version is gone", "it to be there", "Clear register"
            )
        if champion is None or champion.version_id != version.version_id:
            version = registry.move_alias(model, names.CHAMPION, version, champion.version_id if champion else None)
            if champion is not None:
                registry.merge_aliases(champion, [names.PREVIOUS])
        if names.CHALLENGER in version.aliases:
            registry.merge_aliases(version, [f"-{names.CHALLENGER}"])

    def _give_back(self, endpoint: Endpoint, previous: Mapping[str, int]) -> None:
        now = self._cloud.endpoints.read(endpoint.name)
        still_there = {key: share for key, share in previous.items() if key in now.deployed and key != self._id}
        if sum(still_there.values()) == 100:
            LOGGER.warning("the previous traffic is given back: %s", still_there)
            self._cloud.endpoints.set_traffic(endpoint, still_there)
        else:
            LOGGER.warning("there is no previous version to give the traffic back to: the endpoint is emptied")
        self._cloud.endpoints.undeploy(endpoint, self._id)

    def _undeploy_others(self, endpoint: Endpoint) -> None:
        for deployed_id, version_name in endpoint.deployed.items():
            if deployed_id != self._id:
                LOGGER.info("undeploying %s (%s)", deployed_id, version_name)
                self._cloud.endpoints.undeploy(endpoint, deployed_id)

    def _others(self, endpoint: Endpoint) -> dict[str, int]:
        return {key: share for key, share in endpoint.traffic.items() if key != self._id}

    def _previous_name(self, champion: Version | None) -> str | None:
        """Whom this version follows; noted, because after a crash the champion is this version itself."""
        if "previous_version" not in self._notes:
            name = champion.version_name if champion else None
            if name == self._registration.version_name:
                before = self._cloud.registry.find_by_alias(self._plan.model, names.PREVIOUS)
                name = before.version_name if before else None
            self._notes["previous_version"] = name
        found: str | None = self._notes["previous_version"]
        return found
