"""Registration and deployment: nothing becomes champion untested, nothing older replaces it, nothing is done twice."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.documents import Deployment
from retraining.core.errors import ConflictError, JobError
from retraining.core.naming.vertex import deployed_model_id
from retraining.operators.deployment.approval import RequestApprovalOperator
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.evaluation.decision import DecideOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.refusals import refuses
from tests.support.scenes.deployment import FOLDER, Scene, answered, deploy, deploy_at_last, example, register


@pytest.fixture
def scene() -> Scene:
    """The scene that the operators meet."""
    return Scene()


def test_a_promoted_version_is_challenger_until_it_serves(scene, make_run) -> None:
    """Registered once, deployed, crowned; the endpoint's answers were compared."""
    run = make_run()
    assert register(scene, run)["aliases"] == ["challenger", "default"]
    assert register(scene, run)["aliases"] == ["challenger", "default"]
    assert len(scene.cloud.registry.versions) == 1
    assert deploy(scene, run)["deployed"]
    mine = deployed_model_id(scene.run_key)
    assert scene.cloud.registry.versions["1"].aliases == ("champion", "default")
    assert scene.read("deployment")["traffic"] == {mine: 100}
    assert scene.read("deployment")["smoke_test"]["requests"] == len(scene.report["golden"])
    assert len(scene.cloud.endpoints.deploys) == 1
    assert run.xcoms["deploy", "link_endpoint"].endswith("/endpoints/flight-delays?project=p")


@pytest.mark.parametrize("verdict", ["promote", "reject"])
def test_what_replaced_a_version_has_a_link_to_the_way_back(scene, make_run, verdict: str) -> None:
    """The page of the model's DAG `rollback__…`; none beside a run that changed nothing."""
    scene.old_champion()
    scene.change("decision", verdict=verdict)
    run = make_run()
    register(scene, run)
    assert deploy(scene, run)["deployed"] is (verdict == "promote")
    address = run.xcoms.get(("deploy", "link_roll_back"), "")
    assert address.endswith("/dags/rollback__flight_delays") is (verdict == "promote")


def test_a_version_gets_the_machines_of_its_spec(scene, make_run) -> None:
    """Replicas and what they come and go for, as the plan has them."""
    asked = {"machine": "n1-standard-4", "min_replicas": 2, "max_replicas": 5, "autoscale_cpu_percent": 70}
    spec = scene.read("plan")["spec"]
    scene.change("plan", spec=spec | {"deployment": spec["deployment"] | asked})
    run = make_run()
    register(scene, run)
    assert deploy(scene, run)["deployed"]
    assert [dict(machine) for machine in scene.cloud.endpoints.machines] == [
        {"machine_type": "n1-standard-4", **{name: asked[name] for name in asked if name != "machine"}}
    ]


def test_wrong_answers_bring_the_old_traffic_back(scene, make_run) -> None:
    """The smoke test fails for good; the old champion serves as before."""
    old = scene.old_champion()
    run = make_run()
    register(scene, run)
    scene.cloud.endpoints.predictions = [0.123 for _ in scene.report["golden"]]
    with refuses(AirflowFailException, found="differ from the saved"):
        deploy(scene, run)
    assert scene.cloud.endpoints.endpoint.traffic == {old: 100}
    assert scene.cloud.endpoints.undeployed == [deployed_model_id(scene.run_key)]
    assert scene.cloud.registry.versions["1"].aliases == ("champion", "default")
    assert f"{FOLDER}/deployment.json" not in scene.cloud.artifacts.objects


def test_nan_is_a_wrong_answer(scene, make_run) -> None:
    """A comparison with NaN must not pass."""
    run = make_run()
    register(scene, run)
    scene.cloud.endpoints.predictions = [float("nan") for _ in scene.report["golden"]]
    with pytest.raises(AirflowFailException, match="differ"):
        deploy(scene, run)
    assert scene.cloud.endpoints.endpoint.deployed == {}


def test_without_smoke_requests_no_machine_is_paid_for(scene, make_run) -> None:
    """What could never be proven is refused before anything is deployed."""
    run = make_run()
    register(scene, run)
    scene.change("report", golden=[])
    with pytest.raises(AirflowFailException, match="no golden requests"):
        deploy(scene, run)
    assert scene.endpoint.deployed == {}
    assert scene.cloud.endpoints.deploys == []


def test_a_champion_changed_meanwhile_is_not_replaced(scene, make_run) -> None:
    """Compare-and-set: another run was crowned while this one's machines started."""
    old = scene.old_champion()
    run = make_run()
    register(scene, run)
    scene.cloud.endpoints.ready = False
    with pytest.raises(AirflowRescheduleException):
        deploy(scene, run)
    scene.cloud.endpoints.ready = True
    real = scene.cloud.registry.find_by_run

    def crowned_meanwhile(model: str, run_key: str) -> Any:
        other = scene.cloud.registry.add("20130102t000000z-000000000000")
        scene.cloud.registry.merge_aliases(other, ["champion"])
        return real(model, run_key)

    scene.cloud.registry.find_by_run = crowned_meanwhile
    with pytest.raises(ConflictError):
        deploy(scene, run)
    assert scene.cloud.endpoints.endpoint.traffic == {old: 100}
    assert scene.cloud.endpoints.endpoint.deployed.keys() == {old}


def test_a_slow_deployment_is_started_once(scene, make_run) -> None:
    """Several wakes, one deploy; a retry without memory finds the operation that is at work."""
    run = make_run()
    register(scene, run)
    scene.cloud.endpoints.ready = False
    task = DeployModelOperator(task_id="deploy", run_uri=FOLDER, cloud=scene.cloud.connect, retries=1)
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
    register(scene, run)
    scene.cloud.endpoints.ready = False
    with pytest.raises(AirflowRescheduleException):
        deploy(scene, run)
    scene.cloud.endpoints.error = "the container did not answer its health check"
    with pytest.raises(JobError, match="health check"):
        deploy(scene, run)
    assert scene.cloud.endpoints.endpoint.traffic == {old: 100}


def test_a_recorded_deployment_is_not_done_again(scene, make_run) -> None:
    """Clearing an old run does not touch the endpoint."""
    run = make_run()
    register(scene, run)
    first = deploy(scene, run)
    scene.cloud.endpoints.endpoint = dataclasses.replace(scene.cloud.endpoints.endpoint, traffic={}, deployed={})
    assert deploy(scene, run) == first
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
    result = deploy(scene, make_run())
    assert not result["deployed"]
    assert words in result["words"]
    assert words in Deployment.parse(scene.cloud.artifacts.objects[f"{FOLDER}/deployment.json"]).message
    assert scene.cloud.endpoints.endpoint is None


def test_a_newer_champion_is_not_replaced_by_an_older_run(scene, make_run) -> None:
    """Whatever the decision said when it was taken."""
    run = make_run()
    register(scene, run)
    scene.old_champion("20991231t000000z-000000000000")
    assert "not older" in deploy(scene, run)["words"]
    assert scene.cloud.endpoints.deploys == []


@pytest.mark.parametrize(
    ("answer", "deployed"),
    [
        ({"approved": True, "words": "approved by ada", "person": "ada", "answered": "2013-11-20T09:30:00Z"}, True),
        ({"approved": False, "words": "rejected by ada", "person": "ada"}, False),
        ({"approved": True, "asked": False, "words": "nobody was asked: so"}, True),
        (None, False),
    ],
)
def test_a_person_may_say_no(scene, make_run, answer, deployed: bool) -> None:
    """No answer is a no; the document has who answered, and when."""
    scene.deployment(approval="always")
    run = make_run()
    register(scene, run)
    answered(scene, run, answer)
    assert deploy(scene, run, approval_task_id="approve")["deployed"] is deployed
    assert scene.read("deployment")["approval"] == (
        answer and {"asked": True, "person": None, "answered": None} | answer
    )


def test_a_backfilled_version_is_known_by_its_date(scene, make_run) -> None:
    """And is nobody's challenger."""
    scene.change("decision", verdict="record", mode="backfill")
    scene.change("plan", mode="backfill", deploy=False)
    scene.old_champion()
    assert register(scene, make_run())["aliases"] == [f"as-of-{scene.as_of[:10].replace('-', '')}"]


def test_a_rejected_version_has_no_alias(scene, make_run) -> None:
    """It is registered all the same."""
    scene.old_champion()
    scene.change("decision", verdict="reject")
    assert register(scene, make_run())["aliases"] == []


def test_an_older_challenger_does_not_take_the_alias(scene, make_run) -> None:
    """The newer one keeps it."""
    newer = scene.cloud.registry.add("20991231t000000z-000000000000", "challenger")
    assert register(scene, make_run())["aliases"] == []
    assert scene.cloud.registry.versions[newer.version_id].aliases == ("challenger", "default")


def test_a_deployment_that_brought_nothing_is_asked_for_again(scene, make_run) -> None:
    """Its operation is done without an error, and the endpoint does not have the model."""
    run = make_run()
    register(scene, run)
    scene.cloud.endpoints.lost = 2
    assert deploy_at_last(scene, run)["deployed"]
    assert len(scene.cloud.endpoints.deploys) == 3


def test_a_deployment_that_never_brings_anything_ends(scene, make_run) -> None:
    """Not after seven days: after three deployments, with the way out; nothing is left."""
    run = make_run()
    register(scene, run)
    scene.cloud.endpoints.lost = 99
    with refuses(JobError, found="3 deployments"):
        deploy_at_last(scene, run)
    assert len(scene.cloud.endpoints.deploys) == 3
    assert not scene.endpoint.deployed
    scene.cloud.endpoints.lost = 0
    assert deploy_at_last(scene, run)["deployed"]


def test_an_operation_that_never_ends_is_cancelled_and_named(scene, make_run) -> None:
    """After two hours the champion serves alone as before, and the next try works."""
    old = scene.old_champion()
    run = make_run()
    register(scene, run)
    scene.cloud.endpoints.ready = False
    for wait_s in (0, 7000):
        scene.cloud.clock.sleep(wait_s)
        with pytest.raises(AirflowRescheduleException):
            deploy(scene, run)
    scene.cloud.clock.sleep(300)
    with refuses(JobError, found="operations/1", expected="2 hours"):
        deploy(scene, run)
    assert scene.endpoint.traffic == {old: 100}
    assert scene.cloud.endpoints.running == {}
    scene.cloud.endpoints.ready = True
    assert deploy_at_last(scene, run)["deployed"]


def test_another_worker_that_just_asked_is_waited_for(scene, make_run) -> None:
    """Its create may still be on its way: only when it has given no sign for two minutes is it asked again."""
    run = make_run()
    register(scene, run)
    real = scene.cloud.endpoints.start_deploy
    scene.cloud.endpoints.start_deploy = lambda *_: (_ for _ in ()).throw(TimeoutError("no answer"))
    with pytest.raises(AirflowRescheduleException):  # an outage, which is waited for
        deploy(scene, run)
    asked: list[Any] = []
    scene.cloud.endpoints.start_deploy = lambda *args: asked.append(args) or real(*args)
    scene.cloud.clock.sleep(60)
    with pytest.raises(AirflowRescheduleException):
        deploy(scene, run)
    assert not asked
    scene.cloud.clock.sleep(61)
    assert deploy(scene, run)["deployed"]
    assert len(asked) == 1


def test_a_champion_that_the_decision_did_not_meet_is_not_replaced(scene, make_run) -> None:
    """A person went back while the run waited; what the message says brings a version that met that champion."""
    run = make_run()
    register(scene, run)
    other = scene.cloud.registry.add("20130102t000000z-000000000000")
    scene.cloud.registry.merge_aliases(other, ["champion"])
    words = deploy(scene, run)["words"]
    assert words == (
        "Nothing deployed: version 2 is champion now, and the decision was taken against no version. "
        "Evaluate again: trigger retrain__flight_delays with Force, so that a new attempt meets it."
    )
    assert scene.cloud.endpoints.endpoint is None
    attempt = Scene(scene.cloud, "20131120t030000z-ffffffffffff")
    attempt.put("evaluate_request", attempt_request(attempt, other))
    duel = example("evaluation__duel") | {"model": "flight_delays", "run_key": attempt.run_key, "rows": 5000}
    attempt.put("evaluation", duel | {"difference": duel["difference"] | {"low": 0.002}})
    del scene.cloud.artifacts.objects[f"{attempt.folder}/decision.json"]
    again = make_run(run_id="manual__2")
    assert (
        again.execute(DecideOperator(task_id="decide", run_uri=attempt.folder, cloud=scene.cloud.connect))["verdict"]
        == "promote"
    )
    assert attempt.read("decision")["champion"]["version_id"] == "2"
    again.execute(RegisterModelOperator(task_id="register", run_uri=attempt.folder, cloud=scene.cloud.connect))
    assert again.execute(DeployModelOperator(task_id="deploy", run_uri=attempt.folder, cloud=scene.cloud.connect))[
        "deployed"
    ]
    assert scene.holder("champion") == "3"
    assert scene.holder("previous") == "2"


def test_a_person_is_not_asked_for_what_would_be_refused(scene, make_run) -> None:
    """The approval looks at the champion too."""
    scene.deployment(approval="always")
    run = make_run()
    register(scene, run)
    scene.cloud.registry.merge_aliases(scene.cloud.registry.add("20130102t000000z-000000000000"), ["champion"])
    task = RequestApprovalOperator(
        task_id="approve", run_uri=FOLDER, cloud=scene.cloud.connect, subject="?", answer_within=timedelta(hours=1)
    )
    found = run.execute(task)
    assert not found["approved"]
    assert "Evaluate again" in found["words"]
    assert "Evaluate again" in deploy(scene, run, approval_task_id="approve")["words"]


def test_a_rejected_first_version_is_default_only_until_a_better_one_is_there(scene, make_run) -> None:
    """Vertex AI gives `default` to the first version, and one version must have it."""
    scene.change("decision", verdict="reject")
    assert register(scene, make_run())["aliases"] == ["default"]
    later = Scene(scene.cloud, "20131121t030000z-ffffffffffff")
    later.change("plan", as_of="2013-11-21T03:00:00Z")
    run = make_run(run_id="manual__2")
    found = run.execute(RegisterModelOperator(task_id="register", run_uri=later.folder, cloud=scene.cloud.connect))
    assert found["aliases"] == ["challenger", "default"]
    assert scene.cloud.registry.versions["1"].aliases == ()
    assert run.execute(DeployModelOperator(task_id="deploy", run_uri=later.folder, cloud=scene.cloud.connect))[
        "deployed"
    ]
    assert scene.holder("default") == scene.holder("champion") == "2"


def attempt_request(attempt: Scene, champion: Any) -> dict[str, Any]:
    """The request of the judge that meets a champion."""
    request = example("evaluate_request") | {"model": "flight_delays", "run_key": attempt.run_key}
    met = {"version_name": champion.version_name, "version_id": champion.version_id, "run_key": champion.run_key}
    return request | {"champion": request["champion"] | met | {"as_of": "2013-01-02T00:00:00Z"}}
