"""Champion and challenger of different frameworks: who is asked by which image, once, and what if nobody can be."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import EvaluateRequest, Evaluation, ModelScores, Plan, Report, ScoreRequest, digest
from retraining.core.naming import serving, storage, vertex
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.jobs.evaluation import EvaluateOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.planned_run import FORM, fill, plan, stored_plan

CHAMPION_KEY = "20131113t030000z-0123456789ab"
BOTH = ("challenger", "champion")
TREES, BOOSTED = "europe-docker.pkg.dev/p/r/trees:1", "europe-docker.pkg.dev/p/r/boosted:1"


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operators meet; waiting takes no time."""
    return FakeCloud()


def with_image(planned: Plan, image: str | None, **changes: Any) -> Plan:
    """The plan of a run whose models are of another framework, by their image; None: of TensorFlow."""
    values = {**planned.to_json(), **changes}
    if image:
        values["spec"]["training"]["runtime"] |= {"image": image, "models": "own"}
        values["spec"]["deployment"]["container"] = {"image": image, "predict_route": "/p", "health_route": "/h"}
    return Plan.parse(json.dumps(values))


@pytest.fixture
def start(cloud: FakeCloud, make_run: Any) -> Any:
    """Makes a run up to its models, and a champion of an earlier one, each by an image."""

    def run_up_to_models(challenger: str | None, champion: str | None) -> Any:
        run = make_run(params=FORM)
        run.planned = with_image(stored_plan(cloud, plan(cloud, run)), challenger)
        cloud.artifacts.objects[storage.document_uri(run.planned.run_uri, "plan")] = run.planned.to_bytes()
        fill(cloud, run.planned)
        run.execute(SnapshotOperator(task_id="snapshot", cloud=cloud.connect))
        version = cloud.registry.add(CHAMPION_KEY, vertex.CHAMPION)
        folder = storage.run_uri("bucket", "flight_delays", CHAMPION_KEY)
        its_own = {"run_key": CHAMPION_KEY, "dag_run_id": "scheduled__2013-11-13", "run_uri": folder}
        earlier = with_image(stored_plan(cloud, plan(cloud, run)), champion, **its_own)
        run.champion_plan_uri = storage.document_uri(folder, "plan")
        cloud.artifacts.objects[run.champion_plan_uri] = earlier.to_bytes()
        version.labels.update({vertex.MODELS_LABEL: vertex.OWN} if champion else {})
        for uri, image in ((serving.trained_model_uri(run.planned), challenger), (version.model_uri, champion)):
            cloud.artifacts.objects[storage.model_file_uri(uri, own=image is not None)] = b"model"
        return run

    return run_up_to_models


def evaluate(cloud: FakeCloud, run: Any) -> Any:
    """One poke of the task; None: it waits for a job."""
    try:
        return run.execute(EvaluateOperator(task_id="evaluate", retries=0, cloud=cloud.connect))
    except AirflowRescheduleException:
        return None


def end_scoring(cloud: FakeCloud) -> ScoreRequest:
    """Let the newest job write its scores; return what it was asked."""
    container = cloud.jobs.specs[-1]["job_spec"]["worker_pool_specs"][0]["container_spec"]
    command, uri = container["args"][0], container["args"][1].removeprefix("--request=")
    assert command == "score"
    request = ScoreRequest.parse(cloud.artifacts.objects[uri])
    for asked in request.models:
        proof = digest(cloud.artifacts.objects[uri]) if request.digest_required else None
        scores = ModelScores(
            model=request.model, run_key=request.run_key, request_digest=proof, model_uri=asked.model_uri, splits={}
        )
        cloud.artifacts.objects[asked.scores_uri] = scores.to_bytes()
    cloud.jobs.end(cloud.jobs.newest, seconds=60.0)
    return request


def end_comparison(cloud: FakeCloud, run: Any) -> EvaluateRequest:
    """Let the newest job, the judge's, write the evaluation; return what it was asked."""
    container = cloud.jobs.specs[-1]["job_spec"]["worker_pool_specs"][0]["container_spec"]
    assert container["image_uri"] == run.planned.trainer_image
    assert container["args"][0] == "evaluate"
    document = json.loads((EXAMPLES / "evaluation__first_model.json").read_text())
    uri = storage.document_uri(run.planned.run_uri, "evaluation")
    cloud.artifacts.objects[uri] = Evaluation.parse(json.dumps(document)).to_bytes()
    cloud.jobs.end(cloud.jobs.newest, seconds=30.0)
    return EvaluateRequest.parse(cloud.artifacts.objects[storage.document_uri(run.planned.run_uri, "evaluate_request")])


def images(cloud: FakeCloud) -> list[str]:
    """Image of each job that was made."""
    return [spec["job_spec"]["worker_pool_specs"][0]["container_spec"]["image_uri"] for spec in cloud.jobs.specs]


def test_two_of_tensorflow_are_one_job(cloud, start) -> None:
    """As ever: the judge asks both."""
    run = start(None, None)
    assert evaluate(cloud, run) is None
    request = end_comparison(cloud, run)
    assert (request.challenger.scores_uri, request.champion.scores_uri) == (None, None)
    assert evaluate(cloud, run)["seconds"] == 30.0
    assert len(cloud.jobs.specs) == 1


@pytest.mark.parametrize(
    ("challenger", "champion", "sides"),
    [
        pytest.param(TREES, None, [["challenger"]], id="new-framework"),
        pytest.param(None, TREES, [["champion"]], id="back-to-tensorflow"),
        pytest.param(TREES, TREES, [["challenger", "champion"]], id="same-image"),
        pytest.param(BOOSTED, TREES, [["challenger"], ["champion"]], id="two-images"),
    ],
)
def test_each_image_is_asked_once_for_its_models(cloud, start, challenger, champion, sides) -> None:
    """One job an image, then the comparison; nothing is made twice however often the task looks."""
    run = start(challenger, champion)
    for scored in sides:
        assert evaluate(cloud, run) is None
        assert evaluate(cloud, run) is None
        asked_for = end_scoring(cloud)
        assert [asked.scores_uri.split("/")[-2] for asked in asked_for.models] == scored
        assert asked_for.splits == ("test",)
    assert evaluate(cloud, run) is None
    request = end_comparison(cloud, run)
    assert evaluate(cloud, run)["seconds"] == 60.0 * len(sides) + 30.0
    of_side = {"challenger": challenger, "champion": champion}
    assert images(cloud) == [*(of_side[scored[0]] for scored in sides), run.planned.trainer_image]
    assert (request.challenger.scores_uri is None) == (challenger is None)
    assert (request.champion.scores_uri is None) == (champion is None)


def test_a_champion_whose_image_is_gone_is_left_out(cloud, start) -> None:
    """The scores' document says why, and the judge goes on without it."""
    run = start(None, TREES)
    evaluate(cloud, run)
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 9, f"Failed to pull the container image {TREES!r}")
    assert evaluate(cloud, run) is None
    request = end_comparison(cloud, run)
    scores = ModelScores.parse(cloud.artifacts.objects[request.champion.scores_uri])
    assert scores.skipped.startswith("cannot be scored any")
    assert f"{TREES} failed: job " in scores.skipped
    assert scores.splits == {}
    assert evaluate(cloud, run)["uri"].endswith("evaluation.json")


def test_a_champion_whose_plan_is_gone_is_left_out(cloud, start) -> None:
    """Nobody knows its image then."""
    run = start(None, TREES)
    del cloud.artifacts.objects[run.champion_plan_uri]
    evaluate(cloud, run)
    request = end_comparison(cloud, run)
    scores = ModelScores.parse(cloud.artifacts.objects[request.champion.scores_uri])
    assert "plan of its run" in scores.skipped
    assert len(cloud.jobs.specs) == 1


def test_a_challenger_that_its_own_image_cannot_score_fails_the_task(cloud, start) -> None:
    """It cannot be judged at all."""
    run = start(BOOSTED, TREES)
    evaluate(cloud, run)
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, "The replica workerpool0-0 exited with a status of 2.")
    with pytest.raises(AirflowFailException):
        evaluate(cloud, run)
    assert images(cloud) == [BOOSTED]


def test_who_meets_whom_is_settled_before_anybody_is_scored(cloud, start) -> None:
    """A champion that came meanwhile is not compared with by half."""
    run = start(TREES, TREES)
    evaluate(cloud, run)
    cloud.registry.add("20131114t030000z-0123456789ab", vertex.CHAMPION)
    end_scoring(cloud)
    evaluate(cloud, run)
    assert end_comparison(cloud, run).champion.run_key == CHAMPION_KEY


@pytest.mark.parametrize(("proven", "sides"), [((), ()), (("challenger",), ("challenger",)), (BOTH, BOTH)])
def test_an_image_is_asked_for_the_digest_that_it_wrote_before(cloud, start, proven, sides) -> None:
    """By the report of its own training: a champion's image of an earlier release would refuse to be asked."""
    run = start(BOOSTED, TREES)
    folders = {"challenger": run.planned.run_uri, "champion": run.champion_plan_uri.rpartition("/")[0]}
    report = json.loads((EXAMPLES / "report__first_attempt.json").read_text())
    for side, folder in folders.items():
        values = report | {"request_digest": "f" * 64 if side in proven else None}
        cloud.artifacts.objects[storage.document_uri(folder, "report")] = Report.parse(json.dumps(values)).to_bytes()
    asked = []
    for side in BOTH:
        assert evaluate(cloud, run) is None
        if end_scoring(cloud).digest_required:
            asked.append(side)
    assert tuple(asked) == sides
    assert evaluate(cloud, run) is None
    assert end_comparison(cloud, run).digest_required


def test_a_version_says_whose_models_it_is_of() -> None:
    """In its labels."""
    planned = Plan.parse((EXAMPLES / "plan__scheduled.json").read_bytes())
    assert vertex.MODELS_LABEL not in vertex.version_labels(planned)
    assert vertex.version_labels(with_image(planned, TREES))[vertex.MODELS_LABEL] == "own"
