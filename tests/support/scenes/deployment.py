"""A promoted run before its deployment, and the cloud around it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from retraining.core.documents import KINDS, Document
from retraining.core.naming.vertex import deployed_model_id
from retraining.hooks.endpoints import Endpoint
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import here


def example(kind: str) -> dict[str, Any]:
    """A valid document of a kind, or of a kind and name, as JSON values."""
    path = min(EXAMPLES.glob(f"{kind}*.json" if "__" in kind else f"{kind}__*.json"))
    return KINDS[kind.split("__")[0]].parse(path.read_bytes()).to_json()


class Scene:
    """A run that was promoted, and the cloud around it."""

    def __init__(self, cloud: FakeCloud | None = None, run_key: str = "") -> None:
        self.cloud = cloud or FakeCloud()
        plan = example("plan")
        plan = here(plan | {"run_key": run_key or plan["run_key"], "dag_id": "retrain__flight_delays"})
        self.folder, self.run_key, self.as_of = plan["run_uri"], plan["run_key"], plan["as_of"]
        same = {"model": plan["model"], "run_key": self.run_key}
        self.put("plan", plan | {"mode": "live", "deploy": True})
        self.put("decision", example("decision") | same | {"verdict": "promote", "mode": "live", "champion": None})
        self.put("report", example("report") | same)
        for kind in ("checks__passed", "manifest__three_spans", "evaluation__duel"):
            self.put(kind.split("__")[0], example(kind) | same)
        self.report = self.read("report")
        self.cloud.model_files.digests[self.report["model_uri"]] = self.report["model_digest"]
        self.right_answers()

    @property
    def mine(self) -> str:
        """Id of this run's deployed model."""
        return deployed_model_id(self.run_key)

    @property
    def endpoint(self) -> Endpoint:
        """As it stands; empty before it is made."""
        return self.cloud.endpoints.get("flight_delays") or Endpoint(name="", deployed={}, traffic={})

    def right_answers(self) -> None:
        """The endpoint says what the saved model says."""
        self.cloud.endpoints.predictions = [item["prediction"] for item in self.report["golden"]]

    def wrong_answers(self) -> None:
        """It says something else."""
        self.cloud.endpoints.predictions = [0.123 for _ in self.report["golden"]]

    def put(self, kind: str, values: dict[str, Any]) -> None:
        """Store a document."""
        document: Document = KINDS[kind].parse(json.dumps(values))
        self.cloud.artifacts.objects[f"{self.folder}/{kind}.json"] = document.to_bytes()

    def change(self, kind: str, **values: Any) -> None:
        """Store it anew with other values."""
        self.put(kind, self.read(kind) | values)

    def read(self, kind: str) -> dict[str, Any]:
        """A stored document as JSON values."""
        return KINDS[kind].parse(self.cloud.artifacts.objects[f"{self.folder}/{kind}.json"]).to_json()

    def decided_against(self, version_id: str, run_key: str) -> None:
        """Whom the decision was taken against."""
        against = {"version_id": version_id, "run_key": run_key, "as_of": "2013-01-01T00:00:00Z"}
        self.change("decision", champion=against)

    def deployment(self, **values: Any) -> None:
        """Store the plan anew with other values in its spec's section `deployment`."""
        spec = self.read("plan")["spec"]
        self.change("plan", spec=spec | {"deployment": spec["deployment"] | values})

    def answers(self, *, old: str, moved: float = 0.0) -> None:
        """Log 200 answers of an old version and of this run's, which may say something else."""
        rows = [{"deployed_model_id": old, "answer": f"{number / 400}"} for number in range(200)]
        rows += [{"deployed_model_id": self.mine, "answer": f"{number / 400 + moved}"} for number in range(200)]
        self.cloud.warehouse.rows["answers"] = rows

    def promoted(self, run_key: str) -> None:
        """An earlier run's decision, which promoted its version."""
        values = self.read("decision") | {"run_key": run_key, "verdict": "promote"}
        folder = self.folder.replace(self.run_key, run_key)
        document: Document = KINDS["decision"].parse(json.dumps(values))
        self.cloud.artifacts.objects[f"{folder}/decision.json"] = document.to_bytes()

    def old_champion(self, run_key: str = "20130101t000000z-000000000000") -> str:
        """A champion that serves, and that the decision was taken against; gives its deployed-model id."""
        version = self.cloud.registry.add(run_key)
        self.promoted(run_key)
        self.cloud.registry.merge_aliases(version, ["champion", "default"])
        self.decided_against(version.version_id, run_key)
        deployed_id = deployed_model_id(run_key)
        self.cloud.endpoints.endpoint = Endpoint(
            name="projects/p/locations/r/endpoints/flight-delays",
            deployed={deployed_id: version.version_name},
            traffic={deployed_id: 100},
        )
        return deployed_id

    def holder(self, alias: str) -> str | None:
        """Id of the version that has an alias."""
        found = self.cloud.registry.find_by_alias("flight_delays", alias)
        return found.version_id if found else None


FOLDER = Scene().folder


def register(scene: Scene, run: Any) -> Any:
    """Run the register task."""
    return run.execute(RegisterModelOperator(task_id="register", run_uri=FOLDER, cloud=scene.cloud.connect))


def answered(scene: Scene, run: Any, approval: Any) -> None:
    """Let the task `approve` of a run have left an answer; None: it asks a person."""
    whose = {"model": scene.read("plan")["model"], "run_key": scene.run_key, "task_try": "1"}
    if approval is not None:
        approval = {"asked": True, "person": None, "answered": None} | approval
    values = whose | {"dag_id": run.dag_id, "dag_run_id": run.run_id, "approval": approval}
    scene.put("approval", {"kind": "approval", "schema_version": 1} | values)


def deploy(scene: Scene, run: Any, **kwargs: Any) -> Any:
    """Run a wake of the deploy task."""
    return run.execute(DeployModelOperator(task_id="deploy", run_uri=FOLDER, cloud=scene.cloud.connect, **kwargs))


def deploy_at_last(scene: Scene, run: Any, **kwargs: Any) -> Any:
    """Wake the deploy task until it ends."""
    for _ in range(20):
        with contextlib.suppress(AirflowRescheduleException):
            return deploy(scene, run, **kwargs)
    raise AssertionError("it never ends")
