"""A version of one stage is taken over by the next: judged on its own newest days, without a training."""

from __future__ import annotations

import json
from typing import Any

import pytest

from retraining.core.documents import EvaluateRequest, Plan
from retraining.core.naming import serving, vertex
from retraining.operators.jobs.requests import request_evaluation
from retraining.operators.monitoring.measurement import watch_age
from retraining.operators.monitoring.watch import begin_watch
from retraining.operators.record.run_record import Record
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.bucket import Killed, nothing
from tests.support.refusals import refuses
from tests.support.scenes.planned_run import fill
from tests.support.scenes.promotion import MODEL, NEXT_DAY, TRAINED, Stages, kept, name_of, plan_of
from tests.support.scenes.recorded_run import RecordedRun


@pytest.fixture
def stages(make_run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> Stages:
    """Development, staging and production, with a bucket each."""
    return Stages(make_run, monkeypatch, tmp_path)


@pytest.fixture
def source(stages: Stages) -> RecordedRun:
    """A run whose version is champion of staging."""
    made = stages.promoted()
    assert stages.champion(made) == plan_of(made).run_key
    return made


def change(stages: Stages, uri: str, **changes: Any) -> None:
    """Write a document again, with other values."""
    stages.objects[uri] = json.dumps(json.loads(stages.objects[uri]) | changes).encode()


@pytest.fixture
def trained(stages: Stages, source: RecordedRun) -> RecordedRun:
    """The same, whose manifest has the three days among what it was trained on."""
    splits = json.loads(stages.objects[source.uri("manifest")])["splits"]
    change(stages, source.uri("manifest"), splits={**splits, "train": splits["test"]})
    return source


def record_of(run: RecordedRun) -> Record:
    """The documents of a run."""
    return Record(run.cloud.artifacts, run.folder)


def test_a_version_is_judged_registered_and_deployed_without_a_training(stages, source) -> None:
    taken = stages.take_over(source)
    taken.clear()
    jobs = [job.labels[vertex.TASK_LABEL] for job in stages.production.jobs.jobs.values()]
    assert jobs == ["export", "evaluate"]
    planned, model_uri = plan_of(taken), serving.trained_model_uri(plan_of(taken))
    assert model_uri.startswith("gs://bucket/jobs/flight_delays/runs/")
    assert stages.objects[f"{model_uri}/saved_model.pb"] == MODEL
    report, before = (json.loads(stages.objects[run.uri("report")]) for run in (taken, source))
    assert report == before | {"run_key": planned.run_key, "model_uri": model_uri}
    assert stages.champion(taken) == planned.run_key
    version = stages.production.registry.find_by_alias("flight_delays", vertex.CHAMPION)
    assert version.labels[vertex.PROMOTED_FROM_LABEL] == "staging"
    assert version.labels[vertex.PROMOTED_RUN_LABEL] == plan_of(source).run_key
    card = json.loads(stages.objects[taken.uri("model_card")])
    assert card["promoted_from"] == name_of(source)
    assert any("trained by run" in caveat and "stage staging" in caveat for caveat in card["caveats"])
    assert not any(uri.endswith("train_request.json") for uri in stages.objects if uri.startswith(taken.folder))


def test_the_plan_keeps_what_it_was_made_by(stages, source) -> None:
    """And the run's folder has it, so that nothing later reads the other stage."""
    taken = stages.take_over(source)
    value = plan_of(taken).taken_from
    assert (value.stage, value.run_key, value.as_of) == ("staging", plan_of(source).run_key, TRAINED)
    assert value.window == plan_of(source).window
    for kind in value.documents:
        assert stages.objects[kept(taken, kind)] == stages.objects[source.uri(kind)]
    assert {"plan", "manifest", "report", "evaluation", "decision", "registration"} == value.documents.keys()
    assert plan_of(taken).run_key != plan_of(stages.run(stages.production, NEXT_DAY)).run_key
    assert plan_of(taken).machines.keys() == {"export", "evaluate"}


def test_a_third_stage_takes_over_what_the_second_took_over(stages) -> None:
    """It goes by what the first one trained on."""
    first = stages.promoted("dev")
    second = stages.run(stages.environment("staging"), NEXT_DAY, taken_from=name_of(first))
    second.clear()
    third = stages.take_over(second)
    third.clear()
    value = plan_of(third).taken_from
    assert (value.stage, value.run_key) == ("staging", plan_of(second).run_key)
    assert (value.as_of, value.window) == (TRAINED, plan_of(first).window)
    assert stages.objects[kept(third, "manifest")] == stages.objects[first.uri("manifest")]
    assert stages.champion(third) == plan_of(third).run_key


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_of_the_copy_changes_nothing(stages, source, done) -> None:
    whole = stages.take_over(source)
    whole.clear("snapshot")
    expected = dict(stages.objects)
    changes = 0
    for at in range(1, 50):
        for uri in [uri for uri in expected if uri.startswith(serving.trained_model_uri(plan_of(whole)))]:
            stages.objects.pop(uri, None)
        stages.objects.pop(whole.uri("report"), None)
        begun = stages.production.artifacts.changes

        def die(number: int, is_done: bool, begun: int = begun, at: int = at) -> None:
            if (number - begun, is_done) == (at, done):
                raise Killed

        stages.production.artifacts.around = die
        try:
            whole.run_task("train")
        except Killed:
            changes += 1
        else:
            break
        finally:
            stages.production.artifacts.around = nothing
        whole.run_task("train")
        assert {uri: stages.objects[uri] for uri in expected if "/training/model" in uri or "report.json" in uri} == {
            uri: data for uri, data in expected.items() if "/training/model" in uri or "report.json" in uri
        }
    assert changes == 3  # two files and the report


def test_a_model_that_was_written_again_is_not_believed(stages, source) -> None:
    """What the stage's job left counts only by the digest in its report."""
    taken = stages.take_over(source)
    model_uri = json.loads(stages.objects[source.uri("report")])["model_uri"]
    stages.objects[f"{model_uri}/saved_model.pb"] = b"another"
    taken.run_tasks("snapshot", "check_data", "export")
    with refuses(AirflowFailException, found=f"a copy of {model_uri}", way_out=("delete this folder", "clear train")):
        taken.run_task("train")
    assert taken.uri("report") not in stages.objects
    stages.objects[f"{model_uri}/saved_model.pb"] = MODEL
    for uri in [uri for uri in stages.objects if uri.startswith(serving.trained_model_uri(plan_of(taken)))]:
        del stages.objects[uri]
    taken.run_task("train")
    assert taken.uri("report") in stages.objects


def test_a_report_that_was_exchanged_in_the_runs_folder_is_refused(stages, source) -> None:
    taken = stages.take_over(source)
    stages.objects[kept(taken, "report")] += b"\n"
    taken.run_tasks("snapshot", "check_data", "export")
    with refuses(AirflowFailException, where="taken_from/report.json", found="SHA-256", way_out="from plan on"):
        taken.run_task("train")


def test_the_judge_searches_what_fingerprints_do_not_prove(stages, trained) -> None:
    """Files of the stage that trained it; one that is gone stops the run before the judge is paid."""
    taken = stages.take_over(trained)
    stages.production.warehouse.rows["fingerprint"][0]["bit_xor"] = "7"
    taken.run_tasks("snapshot", "check_data", "export", "train")
    files = json.loads(stages.objects[trained.uri("manifest")])["splits"]["train"]["files"]
    changed = [file["uri"] for file in files if file["span"] == "2013-11-16"]
    assert changed
    with refuses(AirflowFailException, where=changed[0], found="no such object", way_out="Promote a newer run"):
        taken.run_task("evaluate")
    assert "evaluate" not in [job.labels[vertex.TASK_LABEL] for job in stages.production.jobs.jobs.values()]
    for uri in changed:
        stages.objects[uri] = b"a shard"
    taken.run_task("evaluate")
    request = record_of(taken).read_document(EvaluateRequest)
    assert [file.uri for file in request.initial.prove_unseen] == changed
    assert request.initial.run_key == plan_of(trained).run_key


def test_a_later_run_meets_the_version_without_the_other_stage(stages, trained) -> None:
    """By days and fingerprints; what these do not prove is said, and no file of the other stage is read."""
    stages.take_over(trained).clear()
    for uri in [uri for uri in stages.objects if uri.startswith("gs://staging/") or uri.endswith("span.json")]:
        del stages.objects[uri]
    later = stages.run(stages.production, NEXT_DAY.replace(day=22))
    later.run_tasks("snapshot", "check_data", "export", "train")
    request = request_evaluation(stages.production, record_of(later)).request
    assert isinstance(request, EvaluateRequest)
    assert request.champion is not None
    assert (request.unproven, request.prove_unseen) == (None, ())
    for uri in [uri for uri in stages.objects if uri.endswith("span.json")]:
        del stages.objects[uri]
    other = stages.run(stages.production, NEXT_DAY.replace(day=23))
    stages.production.warehouse.rows["fingerprint"][0]["bit_xor"] = "7"
    other.run_tasks("snapshot", "check_data", "export", "train")
    request = request_evaluation(stages.production, record_of(other)).request
    assert "are of stage staging, and are not read" in request.unproven
    assert request.trained_on_known
    assert request.prove_unseen == ()


def test_its_age_is_that_of_its_training(stages, source) -> None:
    """So that the monitor does not take it for younger than its data."""
    taken = stages.take_over(source)
    taken.clear()
    version = stages.production.registry.find_by_alias("flight_delays", vertex.CHAMPION)
    watch = begin_watch(stages.production, record_of(taken), plan_of(taken).spec, version, NEXT_DAY, "test")
    (signal,) = watch_age(watch).signals
    assert signal.value == 1.0


STAGE_ERRORS = [
    ({"taken_from": "stagin/{key}"}, "no stage 'stagin'", "Did you mean 'staging'?"),
    ({"taken_from": "production/{key}"}, "stage production twice", "Name the stage that the version comes from"),
    ({"taken_from": "nowhere/{key}"}, "no bucket", "Add bucket to stage nowhere"),
    ({"taken_from": "dev/{key}"}, "no run {key} of flight_delays in stage dev", "retraining runs flight_delays"),
    ({"taken_from": "staging/20131119t030000z-0123456789ab"}, "no run 20131119t", "List them"),
    ({"taken_from": "gs://staging/flight_delays/runs/{key}"}, "'gs://staging", "Correct it"),
    ({"taken_from": "staging/{key} to dev"}, "for stage dev, and this environment is stage production", "Order it"),
    ({"taken_from": "staging/{key}", "learning_rate": 0.5}, "learning_rate is 0.001 there, 0.5 here", "same files"),
    ({"taken_from": "staging/{key}", "as_of": "2013-11-12T03:00:00Z"}, "test days begin on 2013-11-04", "later"),
]


@pytest.mark.parametrize(("form", "found", "way_out"), STAGE_ERRORS)
def test_what_cannot_be_taken_over_is_refused_before_anything_is_paid(stages, source, form, found, way_out) -> None:
    key = plan_of(source).run_key
    filled = {name: value.format(key=key) if isinstance(value, str) else value for name, value in form.items()}
    before = set(stages.objects)
    with refuses(AirflowFailException, found=found.format(key=key), way_out=way_out):
        stages.run(stages.production, NEXT_DAY, **filled)
    assert not stages.production.jobs.jobs
    assert not [uri for uri in set(stages.objects) - before if uri.endswith("plan.json")]


def test_a_run_that_was_rejected_or_did_not_end_is_refused(stages, source) -> None:
    change(stages, source.uri("decision"), verdict="reject")
    with refuses(AirflowFailException, found="was not promoted there", way_out="another one"):
        stages.take_over(source)
    source.delete("decision")
    with refuses(AirflowFailException, found="was not evaluated", way_out="Let it come to its end"):
        stages.take_over(source)


@pytest.mark.parametrize("kind", ["report", "manifest", "registration", "evaluation"])
def test_a_run_of_which_a_document_is_gone_is_refused(stages, source, kind) -> None:
    source.delete(kind)
    with refuses(AirflowFailException, where=source.uri(kind), found="no such document"):
        stages.take_over(source)


def test_documents_of_somebody_else_are_refused(stages, source) -> None:
    """Another model's, one that was written after the decision, a model in a bucket of no stage."""
    whole = dict(stages.objects)
    change(stages, source.uri("registration"), model="digits")
    with refuses(AirflowFailException, found=f"of run {plan_of(source).run_key} of digits"):
        stages.take_over(source)
    stages.objects[source.uri("registration")] = whole[source.uri("registration")]
    stages.objects[source.uri("evaluation")] += b"\n"
    with refuses(AirflowFailException, where=source.uri("evaluation"), expected="the decision there was taken from"):
        stages.take_over(source)
    stages.objects[source.uri("evaluation")] = whole[source.uri("evaluation")]
    change(stages, source.uri("report"), model_uri="gs://somebody/jobs/model")
    with refuses(AirflowFailException, found="gs://somebody/jobs/model", expected="gives stage staging: staging"):
        stages.take_over(source)


def test_a_model_that_is_gone_is_refused(stages, source) -> None:
    model_uri = json.loads(stages.objects[source.uri("report")])["model_uri"]
    del stages.objects[f"{model_uri}/saved_model.pb"]
    with refuses(AirflowFailException, found="its model is gone", way_out="clear train of that run there"):
        stages.take_over(source)


def test_rows_that_no_file_holds_are_refused(stages, source) -> None:
    manifest = json.loads(stages.objects[source.uri("manifest")])
    manifest["splits"]["train"]["rows"] += 5
    change(stages, source.uri("manifest"), splits=manifest["splits"])
    with refuses(AirflowFailException, found="5 rows that it read from its table itself"):
        stages.take_over(source)


def test_other_sql_and_other_images_are_refused(stages, source) -> None:
    sql = stages.include / "sql" / "flight_delays" / "examples.sql"
    text = sql.read_text()
    sql.write_text(f"{text}\n-- another\n")
    with refuses(AirflowFailException, found="SQL of flight_delays/examples.sql: SHA-256"):
        stages.take_over(source)
    sql.write_text(text)
    settings = stages.production.settings
    other = settings.trainer_image.replace(":1", ":2")
    object.__setattr__(settings, "trainer_image", other)
    try:
        with refuses(AirflowFailException, found="RETRAINING_TRAINER_IMAGE is", way_out="images by digest"):
            stages.take_over(source)
    finally:
        object.__setattr__(settings, "trainer_image", other.replace(":2", ":1"))


def test_an_older_version_and_the_champion_itself_are_refused(stages, source) -> None:
    """An older one never replaces a newer one; and the champion is here already."""
    taken = stages.take_over(source)
    taken.clear()
    with refuses(AirflowFailException, found="is that very one", way_out="leave the champion"):
        stages.take_over(source, NEXT_DAY.replace(day=22))
    own = stages.run(stages.production, NEXT_DAY.replace(day=23))
    fill(stages.production, plan_of(own))
    version = stages.production.registry.find_by_alias("flight_delays", vertex.CHAMPION)
    version.labels[vertex.RUN_LABEL] = plan_of(own).run_key
    with refuses(AirflowFailException, found=("trained as of 2013-11-20", "as of 2013-11-23"), way_out="newer run"):
        stages.take_over(source, NEXT_DAY.replace(day=24))


def test_without_stages_nothing_is_taken_over(stages, source) -> None:
    form = {"taken_from": name_of(source)}
    object.__setattr__(stages.production.settings, "stage", None)
    with refuses(AirflowFailException, where="RETRAINING_STAGE", found="not set", way_out="Set RETRAINING_STAGE"):
        stages.run(stages.production, NEXT_DAY, **form)
    (stages.include / "environments.yaml").unlink()
    with refuses(AirflowFailException, where="Param taken_from", found="environments.yaml"):
        stages.run(stages.production, NEXT_DAY, **form)


def test_an_ordinary_run_says_nothing_of_it(stages) -> None:
    """Its plan and its key are as they were."""
    planned = stages.run(stages.production)
    assert "taken_from" not in json.loads(stages.objects[planned.uri("plan")])
    assert isinstance(plan_of(planned), Plan)
