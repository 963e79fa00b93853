"""Registration and deployment: nothing becomes champion untested, nothing older replaces it, nothing is done twice."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from fake_cloud import FakeCloud
from fake_settings import here

from retraining.core.documents import KINDS, Deployment, Document
from retraining.core.errors import ConflictError, JobError
from retraining.hooks.endpoints import Endpoint, deployed_model_id
from retraining.operators import deployment, registration, rollout
from retraining.operators.deployment import DeployModelOperator
from retraining.operators.registration import RegisterModelOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException

EXAMPLES = Path(__file__).resolve().parents[2] / "include" / "contracts" / "examples" / "valid"


def example(kind: str) -> dict[str, Any]:
    """A valid document of a kind, as JSON values."""
    path = min(EXAMPLES.glob(f"{kind}__*.json"))
    return KINDS[kind].parse(path.read_bytes()).to_json()


FOLDER = here(example("plan"))["run_uri"]


class Scene:
    """A run that was promoted, and the cloud around it."""

    def __init__(self) -> None:
        self.cloud = FakeCloud()
        plan = here(example("plan"))
        self.run_key = plan["run_key"]
        self.as_of = plan["as_of"]
        same = {"model": plan["model"], "run_key": self.run_key}
        self.put("plan", plan | {"mode": "live", "deploy": True})
        self.put("decision", example("decision") | same | {"verdict": "promote", "mode": "live"})
        self.put("report", example("report") | same)
        self.report = self.read("report")
        self.cloud.endpoints.predictions = [item["prediction"] for item in self.report["golden"]]

    def put(self, kind: str, values: dict[str, Any]) -> None:
        """Store a document."""
        document: Document = KINDS[kind].parse(__import__("json").dumps(values))
        self.cloud.artifacts.objects[f"{FOLDER}/{kind}.json"] = document.to_bytes()

    def change(self, kind: str, **values: Any) -> None:
        """Store it anew with other values."""
        self.put(kind, self.read(kind) | values)

    def read(self, kind: str) -> dict[str, Any]:
        """A stored document as JSON values."""
        return KINDS[kind].parse(self.cloud.artifacts.objects[f"{FOLDER}/{kind}.json"]).to_json()

    def old_champion(self, run_key: str = "20130101t000000z-000000000000") -> str:
        """A champion that serves; gives its deployed-model id."""
        version = self.cloud.registry.add(run_key, "champion")
        self.cloud.endpoints.endpoint = Endpoint(
            name="projects/p/locations/r/endpoints/flight-delays",
            deployed={"1": version.version_name},
            traffic={"1": 100},
        )
        return "1"


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    """The scene that the operators meet."""
    made = Scene()
    for module in (deployment, registration):
        monkeypatch.setattr(module, "Cloud", lambda: made.cloud)
    monkeypatch.setattr(rollout.time, "sleep", lambda _: None)
    return made


def register(run: Any) -> Any:
    """Run the register task."""
    return run.execute(RegisterModelOperator(task_id="register", run_uri=FOLDER))


def deploy(run: Any, **kwargs: Any) -> Any:
    """Run a wake of the deploy task."""
    return run.execute(DeployModelOperator(task_id="deploy", run_uri=FOLDER, **kwargs))


def test_a_promoted_version_is_challenger_until_it_serves(scene, make_run) -> None:
    """Registered once, deployed, crowned; the endpoint's answers were compared."""
    run = make_run()
    assert register(run)["aliases"] == ["challenger"]
    assert register(run)["aliases"] == ["challenger"]
    assert len(scene.cloud.registry.versions) == 1
    assert deploy(run)["deployed"]
    mine = deployed_model_id(scene.run_key)
    assert scene.cloud.registry.versions["1"].aliases == ("champion",)
    assert scene.read("deployment")["traffic"] == {mine: 100}
    assert scene.read("deployment")["smoke_test"]["requests"] == len(scene.report["golden"])
    assert scene.cloud.endpoints.deploys[0][1] == {"0": 100}
    assert run.xcoms["deploy", "link_endpoint"].endswith("/endpoints/flight-delays?project=p")


def test_the_old_champion_becomes_previous_and_leaves(scene, make_run) -> None:
    """The new version gets no traffic before it is there; the old one goes after the new one answered."""
    old = scene.old_champion()
    run = make_run()
    register(run)
    assert "after version 1" in deploy(run)["words"]
    assert scene.cloud.endpoints.deploys[0][1] == {old: 100, "0": 0}
    assert scene.cloud.registry.versions["1"].aliases == ("previous",)
    assert scene.cloud.registry.versions["2"].aliases == ("champion",)
    assert scene.cloud.endpoints.undeployed == [old]
    assert scene.read("deployment")["previous_version_name"].endswith("@1")


def test_wrong_answers_bring_the_old_traffic_back(scene, make_run) -> None:
    """The smoke test fails for good; the old champion serves as before."""
    old = scene.old_champion()
    run = make_run()
    register(run)
    scene.cloud.endpoints.predictions = [0.123 for _ in scene.report["golden"]]
    with pytest.raises(AirflowFailException, match="differ from the saved model's"):
        deploy(run)
    assert scene.cloud.endpoints.endpoint.traffic == {old: 100}
    assert scene.cloud.endpoints.undeployed == [deployed_model_id(scene.run_key)]
    assert scene.cloud.registry.versions["1"].aliases == ("champion",)
    assert f"{FOLDER}/deployment.json" not in scene.cloud.artifacts.objects


def test_nan_is_a_wrong_answer(scene, make_run) -> None:
    """A comparison with NaN must not pass."""
    run = make_run()
    register(run)
    scene.cloud.endpoints.predictions = [float("nan") for _ in scene.report["golden"]]
    with pytest.raises(AirflowFailException, match="differ"):
        deploy(run)
    assert scene.cloud.endpoints.endpoint.deployed == {}


def test_a_champion_changed_meanwhile_is_not_replaced(scene, make_run) -> None:
    """Compare-and-set: another run was crowned while this one's machines started."""
    old = scene.old_champion()
    run = make_run()
    register(run)
    scene.cloud.endpoints.ready = False
    with pytest.raises(AirflowRescheduleException):
        deploy(run)
    scene.cloud.endpoints.ready = True
    real = scene.cloud.registry.find_by_run

    def crowned_meanwhile(model: str, run_key: str) -> Any:
        other = scene.cloud.registry.add("20130102t000000z-000000000000")
        scene.cloud.registry.merge_aliases(other, ["champion"])
        return real(model, run_key)

    scene.cloud.registry.find_by_run = crowned_meanwhile
    with pytest.raises(ConflictError):
        deploy(run)
    assert scene.cloud.endpoints.endpoint.traffic == {old: 100}


def test_a_slow_deployment_is_started_once(scene, make_run) -> None:
    """Several wakes, one deploy; a retry without memory finds the operation that is at work."""
    run = make_run()
    register(run)
    scene.cloud.endpoints.ready = False
    task = DeployModelOperator(task_id="deploy", run_uri=FOLDER, retries=1)
    for try_number in (1, 1, 2):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task, try_number=try_number)
    scene.cloud.endpoints.ready = True
    assert run.execute(task, try_number=2)["deployed"]
    assert len(scene.cloud.endpoints.deploys) == 1


def test_a_failed_deployment_fails_the_try(scene, make_run) -> None:
    """With the service's words; the old champion is untouched."""
    old = scene.old_champion()
    run = make_run()
    register(run)
    scene.cloud.endpoints.ready = False
    with pytest.raises(AirflowRescheduleException):
        deploy(run)
    scene.cloud.endpoints.error = "the container did not answer its health check"
    with pytest.raises(JobError, match="health check"):
        deploy(run)
    assert scene.cloud.endpoints.endpoint.traffic == {old: 100}


def test_a_recorded_deployment_is_not_done_again(scene, make_run) -> None:
    """Clearing an old run does not touch the endpoint."""
    run = make_run()
    register(run)
    first = deploy(run)
    scene.cloud.endpoints.endpoint = dataclasses.replace(scene.cloud.endpoints.endpoint, traffic={}, deployed={})
    assert deploy(run) == first
    assert len(scene.cloud.endpoints.deploys) == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"plan": {"mode": "backfill", "deploy": False}}, "a backfill records"),
        ({"decision": {"verdict": "reject", "words": "Rejected: too weak."}}, "Rejected: too weak"),
        ({"plan": {"deploy": False}}, "Param deploy"),
    ],
    ids=["backfill", "rejected", "not wanted"],
)
def test_nothing_is_deployed_and_the_document_says_why(scene, make_run, changes, words: str) -> None:
    """The endpoint is left alone."""
    for kind, values in changes.items():
        scene.change(kind, **values)
    result = deploy(make_run())
    assert not result["deployed"]
    assert words in result["words"]
    assert words in Deployment.parse(scene.cloud.artifacts.objects[f"{FOLDER}/deployment.json"]).words
    assert scene.cloud.endpoints.endpoint is None


def test_a_newer_champion_is_not_replaced_by_an_older_run(scene, make_run) -> None:
    """Whatever the decision said when it was taken."""
    run = make_run()
    register(run)
    scene.old_champion("20991231t000000z-000000000000")
    assert "not older than this run's" in deploy(run)["words"]
    assert scene.cloud.endpoints.deploys == []


@pytest.mark.parametrize(
    ("answer", "deployed"),
    [({"approved": True}, True), ({"approved": False, "words": "rejected by ada"}, False), (None, False)],
)
def test_a_person_may_say_no(scene, make_run, answer, deployed: bool) -> None:
    """No answer is a no."""
    run = make_run()
    register(run)
    run.xcoms["approve", "return_value"] = answer
    assert deploy(run, approval_task_id="approve")["deployed"] is deployed


def test_a_backfilled_version_is_known_by_its_date(scene, make_run) -> None:
    """And is nobody's challenger."""
    scene.change("decision", verdict="record", mode="backfill")
    scene.change("plan", mode="backfill", deploy=False)
    assert register(make_run())["aliases"] == [f"as-of-{scene.as_of[:10].replace('-', '')}"]


def test_a_rejected_version_has_no_alias(scene, make_run) -> None:
    """It is registered all the same."""
    scene.change("decision", verdict="reject")
    assert register(make_run())["aliases"] == []


def test_an_older_challenger_does_not_take_the_alias(scene, make_run) -> None:
    """The newer one keeps it."""
    newer = scene.cloud.registry.add("20991231t000000z-000000000000", "challenger")
    assert register(make_run())["aliases"] == []
    assert scene.cloud.registry.versions[newer.version_id].aliases == ("challenger",)
