"""A scoring in the cloud of memory: one job whatever dies, the destination whole or untouched, bad input refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import KINDS, Spending
from retraining.core.errors import ConflictError
from retraining.core.scoring.plan import explain
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.bucket import Killed
from tests.support.refusals import refuses
from tests.support.scenes.scoring import DESTINATION, QUERY, ROWS, SPEC, ScoringScene, change_section, columns

ALL = ("plan", "snapshot", "predict", "write", "cancel_jobs", "clean_up")


@pytest.fixture(autouse=True)
def _places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file allows two datasets and two folders of a bucket to the form."""
    change_section(
        monkeypatch,
        tmp_path,
        allow_sources=["retraining", "gs://b-b/in/"],
        allow_destinations=["flights", "gs://b-b/out/"],
    )


@pytest.fixture
def scene(make_run: Any) -> ScoringScene:
    """A champion, and a table to score."""
    return ScoringScene(make_run)


def test_a_table_is_scored_into_a_day_of_the_destination(scene) -> None:
    """By the champion; what was in between is gone, and the claim with it."""
    run = scene.start()
    scene.execute(run, *ALL)
    cloud, plan = scene.cloud, scene.plan(run)
    (job,) = cloud.jobs.specs
    assert job["model"].endswith("models/flight_delays@1")
    assert job["input_config"]["bigquery_source"] == {"input_uri": f"bq://{plan.input_table}"}
    assert job["instance_config"] == {"instance_type": "object", "key_field": scene.key}
    (written,) = scene.tables.written
    day, holder = f"{DESTINATION}$20131120", "manual__1 of score__flight_delays, 0"
    assert [each.value for each in written.parameters] == [day, 1, holder, "2013-11-20T03:00:00Z", "2013-11-20"]
    result = json.loads(cloud.artifacts.objects[f"{plan.run_uri}/scoring.json"])
    assert (result["rows"], result["seconds"], result["version"]["asked"]) == (ROWS, 90, "champion")
    assert result["cost_usd"] > 0
    (noted,) = [data for uri, data in cloud.artifacts.objects.items() if uri.endswith("/flight_delays/spending.json")]
    assert {key: (each.work, each.usd) for key, each in Spending.parse(noted).spent.items()} == {
        plan.run_key: ("scoring", result["cost_usd"])
    }
    left = [table for table in cloud.warehouse.schemas if plan.run_key.replace("-", "_") in table or "pred" in table]
    assert left == [f"local-project.retraining.scored_flight_delays__{plan.run_key.replace('-', '_')}"]
    assert not [uri for uri in cloud.artifacts.objects if "/destinations/" in uri]


def test_of_several_outputs_the_labels_own_is_the_column(scene) -> None:
    """The others stand in the answer as the model gave it; a signature without the label's own is refused."""
    inputs = {each.name: "float32" for each in SPEC.features}
    scene.sign(scene.trained, inputs, arrival_delay="float32", score="float32", air_time="float32")
    run = scene.start()
    scene.execute(run, *ALL)
    assert scene.plan(run).output == "score"
    assert "`score`" in scene.tables.written[0].sql
    scene.sign(scene.trained, inputs, arrival_delay="float32", air_time="float32")
    with refuses(AirflowFailException, found="air_time, arrival_delay", expected="output score"):
        scene.execute(scene.start("manual__2", force=True), "plan")


def test_a_version_that_takes_the_key_is_sent_it(scene) -> None:
    """With each row of a table, in the type of its signature; files are refused before anything is paid."""
    inputs = {each.name: "string" if each.kind == "categorical" else "float32" for each in SPEC.features}
    scene.sign(scene.trained, inputs | {scene.key: "string"}, score="float32", **{scene.key: "string"})
    run = scene.start()
    scene.execute(run, *ALL)
    plan = scene.plan(run)
    assert (plan.key_input, plan.output) == ("STRING", "score")
    assert scene.key not in [feature.name for feature in plan.features]
    (job,) = scene.cloud.jobs.specs
    assert job["instance_config"] == {"instance_type": "object", "key_field": "row_key"}
    with refuses(AirflowFailException, found="the key", way_out="into a table"):
        scene.execute(scene.start("manual__2", files="gs://b-b/in/*.jsonl", destination="gs://b-b/out/a"), "plan")
    assert len(scene.cloud.jobs.specs) == 1


def test_the_plan_says_what_it_may_cost(scene) -> None:
    """Before anything is paid."""
    run = scene.start(replicas=3)
    scene.execute(run, "plan")
    price = scene.plan(run).estimate_usd
    assert price.at_most == pytest.approx(6 * price.per_hour["predict"], abs=0.01)
    assert f"at most {price.at_most:.2f}" in explain(scene.plan(run))[-1]


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_killed_at_any_write_and_run_again_there_is_one_job(make_run, done) -> None:
    """Each task is called again after a death around each of its writes to storage."""
    number = 0
    while True:
        number += 1
        scene = ScoringScene(make_run)
        run, deaths = scene.start(), []

        def die(change: int, after: bool, at: int = number, deaths: list[int] = deaths) -> None:
            if change == at and after is done and not deaths:
                deaths.append(change)
                raise Killed

        scene.cloud.artifacts.around = die
        for task_id in ALL:
            for _ in range(10):
                try:
                    scene.execute(run, task_id)
                    break
                except (Killed, AirflowRescheduleException):
                    scene.cloud.clock.sleep(600)
                    if scene.cloud.jobs.jobs:
                        scene.finish()
            else:
                pytest.fail(f"{task_id} did not end after a death at write {number}")
        assert len(scene.cloud.jobs.specs) == 1, number
        assert len(scene.tables.written) == 1, number
        if not deaths:
            break
    assert number > 8


def test_a_cleared_scoring_that_is_done_does_nothing_again(scene) -> None:
    """Nor does another run with the same inputs; with Force it is scored again."""
    scene.execute(scene.start(), *ALL)
    scene.execute(scene.start(), *ALL, max_tries=4)
    scene.execute(scene.start("manual__2"), *ALL)
    assert (len(scene.cloud.jobs.specs), len(scene.tables.written)) == (1, 1)
    scene.execute(scene.start("manual__3", force=True), *ALL)
    assert (len(scene.cloud.jobs.specs), len(scene.tables.written)) == (2, 2)


def test_a_failed_write_keeps_what_was_paid_for(scene) -> None:
    """The destination is as it was; a cleared task goes on with the same predictions."""
    scene.answer(missing=7, missing_keys=["a", "b", "c", "d", "e"])
    run = scene.start()
    scene.execute(run, "plan", "snapshot", "predict")
    errors = scene.cloud.jobs.get(scene.cloud.jobs.newest).output_table.replace("predictions", "errors")
    scene.cloud.warehouse.schemas[errors] = columns(key="STRING", errors="RECORD")
    scene.cloud.warehouse.rows["errors"] = [{"errors": 7, "examples": ["no number"]}]
    words = rf"7 of 12 rows have no answer: {scene.key} a, b, c, d, e, …; 7 are in {errors}: no number\..*stays as it"
    with pytest.raises(AirflowFailException, match=words):
        scene.execute(run, "write")
    assert scene.tables.written == []
    assert scene.execute(run, "cancel_jobs", "clean_up") == []
    scene.answer()
    scene.execute(run, "write", "clean_up", max_tries=4)
    assert (len(scene.cloud.jobs.specs), len(scene.tables.written)) == (1, 1)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"answers": ROWS + 1}, "13 answers for 12 rows"),
        ({"unreadable": 2, "example": '"late"'}, '2 answers like "late". Expected a number as .score.'),
    ],
)
def test_answers_that_are_not_one_per_row_are_not_written(scene, changes, words) -> None:
    """Doubled, or of another form."""
    scene.answer(**changes)
    with pytest.raises(AirflowFailException, match=words):
        scene.execute(scene.start(), "plan", "snapshot", "predict", "write")
    assert scene.tables.written == []


def test_a_job_some_of_whose_rows_failed_is_not_made_again(scene) -> None:
    """Vertex AI calls it partially succeeded; the count of the answers says which rows."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot")
    with pytest.raises(AirflowRescheduleException):
        run.execute(scene.task("predict"))
    scene.finish()
    scene.cloud.jobs.end(scene.cloud.jobs.newest, "JOB_STATE_PARTIALLY_SUCCEEDED", 0, "some", 90)
    scene.execute(run, "predict", "write")
    assert len(scene.cloud.jobs.specs) == 1


def test_a_job_that_fails_by_its_model_fails_the_task_once(scene) -> None:
    """It would fail again, and cost again."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot")
    with pytest.raises(AirflowRescheduleException):
        run.execute(scene.task("predict"))
    scene.cloud.jobs.end(scene.cloud.jobs.newest, "JOB_STATE_FAILED", 3, "the model does not load")
    with pytest.raises(AirflowFailException, match=r"(?s)not load.* Force"):
        run.execute(scene.task("predict"))
    assert len(scene.cloud.jobs.specs) == 1


def test_what_the_service_did_to_a_job_brings_another(scene) -> None:
    """As with every other job."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot")
    with pytest.raises(AirflowRescheduleException):
        run.execute(scene.task("predict"))
    scene.cloud.jobs.end(scene.cloud.jobs.newest, "JOB_STATE_FAILED", 13, "internal error")
    with pytest.raises(AirflowRescheduleException):
        run.execute(scene.task("predict"))
    scene.execute(run, "predict", "write")
    assert len(scene.cloud.jobs.specs) == 2


def test_cancel_jobs_ends_a_job_that_nobody_waits_for(scene) -> None:
    """Of the run that was marked as failed."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot")
    with pytest.raises(AirflowRescheduleException):
        run.execute(scene.task("predict"))
    assert scene.execute(run, "cancel_jobs") == [scene.cloud.jobs.newest]


def test_two_runs_do_not_write_one_day_at_once(scene) -> None:
    """The later one is told who does, before it pays; it goes on when the first has ended."""
    first, second = scene.start("manual__1"), scene.start("manual__2", force=True)
    scene.execute(first, "plan", "snapshot")
    with refuses(ConflictError, where="scores$20131120", found="manual__1 of score__", way_out="wakes/dest"):
        scene.execute(second, "plan", "snapshot")
    scene.execute(first, "predict", "write", "clean_up")
    scene.execute(second, "snapshot", "predict", "write", "clean_up")
    assert len(scene.tables.written) == 2


def test_another_day_is_written_meanwhile(scene) -> None:
    """The claim is on the day."""
    scene.execute(scene.start("manual__1"), "plan", "snapshot")
    scene.execute(scene.start("manual__2", as_of="2013-11-19T03:00:00Z"), *ALL)
    assert len(scene.tables.written) == 1


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"table": "retraining.flight_delay_scores"}, "destination is retraining.flight_delay_scores, which is the so"),
        ({"table": "local-project.retraining.flight_delay_scores"}, "it reads local-project.*, which is the destinat"),
        ({"destination": "flights.flights"}, "tomorrow.sql: it reads local-project.flights.flights, which is the des"),
        ({"version": "champoin"}, "version of flight_delays: 'champoin'. Expected one of: .*Did you mean 'champion'"),
        ({"version": "7"}, "version of flight_delays: '7'. Expected one of: 1, "),
        ({"table": "a.b", "query": "c.sql"}, "table and query. Expected one of them"),
        ({"query": "flight_delays/nothing.sql"}, "no file 'flight_delays/nothing.sql'"),
        ({"machine": "n1-standard-4x"}, "'n1-standard-4x'. Expected a machine type"),
        ({"rows": 5}, "no Param 'rows'"),
    ],
)
def test_a_form_that_cannot_be_is_refused_by_the_plan(scene, params, words) -> None:
    """By name, for good; nothing is written."""
    with pytest.raises(AirflowFailException, match=words):
        scene.execute(scene.start(**params), "plan")
    assert not [uri for uri in scene.cloud.artifacts.objects if "/scoring/" in uri]


def test_a_version_whose_signature_takes_no_rows_is_refused(scene) -> None:
    """It reads what is no feature of its run."""
    scene.sign(scene.trained, {"pixels": "uint8"})
    with refuses(AirflowFailException, where="flight_delays@1", found="inputs pixels"):
        scene.execute(scene.start(), "plan")


def test_a_version_that_no_run_made_is_refused(scene) -> None:
    """Nobody knows what it reads."""
    scene.cloud.registry.add("", "uploaded", labels={})
    with refuses(AirflowFailException, where="@2", found="no run"):
        scene.execute(scene.start(version="uploaded"), "plan")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ({"carrier": None}, f"{QUERY}: no column 'carrier'"),
        ({"distance": "STRING"}, "distance is STRING, not INTEGER or"),
        ({"carrier": "FLOAT"}, "carrier is FLOAT, not STRING or"),
    ],
)
def test_a_source_without_a_feature_is_refused_before_anything_is_made(scene, source, words) -> None:
    """Each column is named."""
    types = {column["name"]: column["type"] for column in scene.source} | source
    scene.cloud.warehouse.schemas[QUERY] = columns(**{name: type_ for name, type_ in types.items() if type_})
    with pytest.raises(AirflowFailException, match=words):
        scene.execute(scene.start(), "plan", "snapshot")
    assert scene.cloud.warehouse.asked == [f"dry {QUERY}"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"row_count": 0, "keys": 0}, "no row to score"),
        ({"without_key": 2, "keys": 10}, "2 of 12 rows have no"),
        ({"keys": 11}, "12 rows have 11 different"),
    ],
)
def test_rows_that_cannot_be_told_apart_are_refused_before_the_job(scene, row, words) -> None:
    """Their answers could not be either."""
    scene.cloud.warehouse.rows["instances"][0].update(row)
    with pytest.raises(AirflowFailException, match=words):
        scene.execute(scene.start(), "plan", "snapshot")


def test_a_destination_that_holds_something_else_is_left_alone(scene) -> None:
    """Its rows would be replaced."""
    scene.cloud.warehouse.schemas[DESTINATION] = columns(name="STRING")
    with refuses(AirflowFailException, found="columns name STRING", expected="none"):
        scene.execute(scene.start(), "plan", "snapshot")


def test_instances_that_expired_are_made_again_when_they_are_the_same(scene) -> None:
    """Else the answers would be of other rows."""
    run = scene.start()
    scene.execute(run, "plan", "snapshot")
    table = scene.plan(run).input_table
    del scene.cloud.warehouse.schemas[table]
    with pytest.raises(AirflowFailException, match=f"{table}: it has expired"):
        run.execute(scene.task("predict"))
    scene.execute(run, "snapshot", max_tries=1)
    del scene.cloud.warehouse.schemas[table]
    scene.cloud.warehouse.rows["instances"] = [{"row_count": 9, "keys": 9, "without_key": 0, "fingerprint": "8"}]
    with refuses(AirflowFailException, found="other rows"):
        scene.execute(run, "snapshot", max_tries=2)


def test_a_folder_of_another_model_is_refused(scene) -> None:
    """Whoever may write an XCom could point a task anywhere."""
    run = scene.start()
    scene.execute(run, "plan")
    run.xcoms["plan", "return_value"]["run_uri"] = "gs://bucket/digits/scoring/20131120t030000z-0123456789ab"
    with refuses(AirflowFailException, where="run_uri from XCom"):
        scene.execute(run, "snapshot")


def test_the_documents_are_as_their_contracts_say(scene) -> None:
    """All four."""
    run = scene.start()
    scene.execute(run, *ALL)
    for kind in ("scoring_plan", "scoring_input", "predictions", "scoring"):
        KINDS[kind].parse(scene.cloud.artifacts.objects[f"{scene.plan(run).run_uri}/{kind}.json"])
