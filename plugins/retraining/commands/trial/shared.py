"""One machine that two models share: what they answer, what is logged of it, and what is refused there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from retraining.commands.trial.deployments import (
    ANSWER_S,
    LOGGED_WITHIN,
    REPLICAS,
    SHARED_WITHIN,
    deploy,
    deployed_id,
    find_endpoint,
    version_name,
)
from retraining.commands.trial.endpoints import INSTANCE, UPLOADED
from retraining.commands.trial.endpoints import NUMBER as OTHER_IMAGE
from retraining.commands.trial.pools import pool_of
from retraining.commands.trial.probes import Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.commands.trial.registry import finish_upload, start_upload
from retraining.commands.trial.statements import TEMPLATE
from retraining.core.data.sql import Query, render
from retraining.core.spec.deployment import Container
from retraining.hooks.predictions import Unanswered

IMAGE = "docker.pkg.dev/vertex-ai/prediction/tf2-cpu.2-15:latest"
"""Behind the multi-region: the one of TensorFlow that has not ended."""
MADE_WITHIN = timedelta(minutes=20)
NUMBERS = (2, 3)
"""Of the versions that share."""
REFUSED_ID = "1"


@dataclass(kw_only=True)
class SharedProbes:
    """Row END-17, with what `EndpointProbes` has made.

    Attributes:
        trial: The trial.
        asked: Requests that were answered, by deployed model.
        looks: At the log.
    """

    trial: Trial
    asked: Counter[str] = field(default_factory=Counter)
    looks: int = 0

    def probes(self) -> Sequence[Probe]:
        """Return it."""
        return (
            Probe(
                id="END-17",
                asked="two models share a machine, and one of another image comes",
                supposed={
                    "machines of their own": 0,
                    "on the shared ones": 2,
                    "answers": f"{UPLOADED}",
                    "logged": True,
                    "another image": "refused",
                },
                ask=self.share,
            ),
        )

    def share(self) -> Mapping[str, Fact]:
        """Make the machine, deploy both, ask both, read the log, and deploy the other image's version."""
        self._make_machine()
        for number in NUMBERS:
            container = Container(image=image_of(self.trial.cloud.settings.region))
            uri = f"{self.trial.model_uri}/1"
            finish_upload(self.trial, start_upload(self.trial, number, artifact_uri=uri, container=container))
            deploy(self.trial, number, self._shared)
        ids = [deployed_id(self.trial, number) for number in NUMBERS]
        found = [self.trial.calls.endpoints.machines_of(find_endpoint(self.trial), each) for each in ids]
        self.trial.cloud.endpoints.set_traffic(find_endpoint(self.trial), dict.fromkeys(ids, 50))
        answers = self._ask_both(ids)
        return {
            "machines of their own": sum(each.replicas[1] for each in found if each is not None),
            "on the shared ones": sum(bool(each.shared) for each in found if each is not None),
            "answers": " ".join(sorted(answers)),
            "logged": self.trial.comes("both logged", lambda: self._is_logged(ids), LOGGED_WITHIN),
            "another image": self._deploy_other_image(),
        }

    @property
    def _shared(self) -> Mapping[str, object]:
        return {"shared_machines": pool_of(self.trial)}

    def _make_machine(self) -> None:
        endpoints, calls = self.trial.cloud.endpoints, self.trial.calls.endpoints
        begun = calls.create_shared_machines(pool_of(self.trial), REPLICAS)

        def made() -> bool:
            now = endpoints.operation(begun.name)
            if now is not None and now.error:
                raise RuntimeError(now.error)
            return (now is None or now.done) and endpoints.has_shared_machines(pool_of(self.trial))

        self.trial.wait("shared machine", made, MADE_WITHIN)

    def _ask_both(self, ids: Sequence[str]) -> set[str]:
        """Ask until both have answered; return what they said."""
        answers: set[str] = set()

        def both() -> bool:
            found = self.trial.cloud.endpoints.predict_once(find_endpoint(self.trial), [INSTANCE], ANSWER_S)
            if not isinstance(found, Unanswered) and found.deployed_model_id in ids:
                self.asked[found.deployed_model_id] += 1
                answers.add(f"{round(found.predictions[0]['y'])}")
            return len(self.asked) == len(ids)

        self.trial.wait("both answered", both, SHARED_WITHIN)
        return answers

    def _is_logged(self, ids: Sequence[str]) -> bool:
        table = self.trial.table("log")
        if self.trial.cloud.warehouse.table_schema(table) is None:
            return False
        self.looks += 1
        query = Query(sql=render(TEMPLATE, statement="requests", table=table))
        job_id = self.trial.job_id(f"shared-{self.looks}")
        rows = self.trial.cloud.warehouse.run_query(query, job_id, "trial, the log").rows
        found = {row["deployed_model_id"]: row["requests"] for row in rows}
        return all(found.get(each) == self.asked[each] for each in ids)

    def _deploy_other_image(self) -> str:
        """Deploy a version of another image there, and wait for the end if that is begun."""
        endpoints, endpoint = self.trial.cloud.endpoints, find_endpoint(self.trial)
        version = version_name(self.trial, OTHER_IMAGE)
        refused = self.trial.calls.endpoints.deploy_refused(endpoint, version, REFUSED_ID, self._shared)
        if refused is None:
            self.trial.wait("its end", lambda: not endpoints.running_operations(endpoint), MADE_WITHIN)
        return "deployed" if REFUSED_ID in find_endpoint(self.trial).deployed else "refused"


def image_of(region: str) -> str:
    """Return Vertex AI's own image for TensorFlow, from the multi-region that is nearest."""
    begins = {"europe": "europe", "asia": "asia"}
    return f"{begins.get(region.partition('-')[0], 'us')}-{IMAGE}"
