"""TuneOperator: a study's jobs exactly once, its memory, and nights without one."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta
from typing import Any

import pytest

from retraining.core.documents import Plan, Report, Tuning, TuningRequest
from retraining.core.jobs.job import JobType
from retraining.core.naming import storage, vertex
from retraining.core.naming.run_keys import RunKey
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.record.run_record import Record
from retraining.operators.tuning.study import TuneOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.fakes.settings import here

SECTION = {
    "max_trials": 5,
    "recall": 2,
    "parameters": [{"name": "learning_rate", "kind": "double", "min": 1e-4, "max": 0.1, "scale": "log"}],
}


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operator meets; waiting takes no time."""
    return FakeCloud()


def begin(cloud: FakeCloud, *, days: int = 0, search: str = "auto", learning_rate: float = 0.001) -> Plan:
    """Store the plan of a run so many days after the example's."""
    example = Plan.parse((EXAMPLES / "plan__scheduled.json").read_bytes())
    as_of = example.as_of + timedelta(days=days)
    key = str(RunKey.of(as_of, days))
    values = here({**example.to_json(), "as_of": as_of.strftime("%Y-%m-%dT%H:%M:%SZ"), "run_key": key})
    uri = values["run_uri"]
    values["spec"]["training"]["hyperparameters"] = {"learning_rate": learning_rate}
    values["spec"]["tuning"] = {**SECTION, "search": search}
    plan = Plan.parse(json.dumps(values))
    Record(cloud.artifacts, uri).write_once(plan)
    return plan


def task_of(cloud: FakeCloud, plan: Plan) -> TuneOperator:
    """The run's task."""
    return TuneOperator(task_id="tune", run_uri=plan.run_uri, retries=2, cloud=cloud.connect)


def wake(cloud: FakeCloud, run: Any, plan: Plan) -> dict[str, Any] | None:
    """One wake; None when the task will come again."""
    try:
        result: dict[str, Any] = run.execute(task_of(cloud, plan))
    except AirflowRescheduleException:
        return None
    return result


def succeed(cloud: FakeCloud, *scores: float | None, flag: str = "learning_rate", values: tuple[float, ...]) -> None:
    """The newest job ends with these trials."""
    cloud.jobs.end(cloud.jobs.newest)
    cloud.jobs.reported[cloud.jobs.newest] = [
        {
            "id": str(number),
            "state": "INFEASIBLE" if score is None else "SUCCEEDED",
            "parameters": [{"parameter_id": flag, "value": value}],
            "final_measurement": {} if score is None else {"metrics": [{"metric_id": "val_auc", "value": score}]},
            "seconds": 5.0,
        }
        for number, (score, value) in enumerate(zip(scores, values, strict=True), start=1)
    ]


def test_the_first_study_is_one_job_and_its_best_trial_is_used(cloud, make_run) -> None:
    """Wakes, a job, trials, a document, a memory."""
    plan, run = begin(cloud), make_run()
    assert wake(cloud, run, plan) is None
    assert wake(cloud, run, plan) is None
    assert len(cloud.jobs.jobs) == 1
    assert cloud.jobs.specs[0]["max_trial_count"] == 5
    succeed(cloud, 0.6, None, 0.7, values=(0.01, 0.09, 0.003))
    result = wake(cloud, run, plan)
    assert result is not None
    assert result["hyperparameters"] == {"learning_rate": 0.003}
    settled = Record(cloud.artifacts, plan.run_uri).read_document(Tuning)
    assert (settled.source, settled.best, settled.seconds) == ("study", "search-3", 15.0)
    assert storage.study_uri(plan.bucket, plan.model, plan.run_key) in cloud.artifacts.objects
    assert wake(cloud, run, plan) == result
    assert len(cloud.jobs.jobs) == 1


def test_checkpoints_of_trials_that_were_stopped_early_go_with_the_study(cloud, make_run) -> None:
    """Not before the jobs have ended; another run's stay."""
    plan, run = begin(cloud), make_run()
    stays = [f"{plan.run_uri}/tuning/search/report/1.json", f"{plan.run_uri}/training/checkpoints/step-000000010/a"]
    goes = f"{plan.run_uri}/tuning/search/checkpoints/2/step-000000010/state.json"
    for uri in (*stays, goes):
        cloud.artifacts.write_once(uri, b"{}")
    wake(cloud, run, plan)
    assert goes in cloud.artifacts.objects
    succeed(cloud, 0.6, 0.7, values=(0.01, 0.003))
    assert wake(cloud, run, plan)
    assert goes not in cloud.artifacts.objects
    assert all(uri in cloud.artifacts.objects for uri in stays)


def test_the_next_study_repeats_the_best_first_and_searches_around_them(cloud, make_run) -> None:
    """Two jobs, one after the other, together as many trials as the file says; a third wake makes no third job."""
    first = begin(cloud)
    run = make_run()
    wake(cloud, run, first)
    succeed(cloud, 0.6, 0.65, 0.7, values=(0.01, 0.09, 0.003))
    wake(cloud, run, first)
    plan, run = begin(cloud, days=7), make_run(run_id="scheduled__2")
    assert wake(cloud, run, plan) is None
    recall = cloud.jobs.specs[-1]
    assert recall["max_trial_count"] == 2
    assert recall["study_spec"]["parameters"][0]["parameter_id"] == "prior"
    succeed(cloud, 0.5, 0.66, flag="prior", values=(0.0, 1.0))
    assert wake(cloud, run, plan) is None
    assert wake(cloud, run, plan) is None
    search = cloud.jobs.specs[-1]
    assert search["max_trial_count"] == 3
    bounds = search["study_spec"]["parameters"][0]["double_value_spec"]
    assert bounds["min_value"] > 0.003  # around 0.09, the second of last week and the best of this run
    assert len(cloud.jobs.jobs) == 3
    succeed(cloud, 0.61, 0.62, 0.63, values=(0.05, 0.06, 0.07))
    assert wake(cloud, run, plan)
    settled = Record(cloud.artifacts, plan.run_uri).read_document(Tuning)
    assert settled.best == "recall-2"
    assert settled.hyperparameters["learning_rate"] == 0.09
    assert [trial.phase for trial in settled.trials] == ["recall"] * 2 + ["search"] * 3


def keep(cloud: FakeCloud, plan: Plan, days: int) -> str:
    """Store a study of a run so many days after the plan's; gives its address."""
    example = json.loads((EXAMPLES / "tuning__study.json").read_bytes())
    as_of = plan.as_of + timedelta(days=days)
    key = str(RunKey.of(as_of, days))
    example |= {"model": plan.model, "as_of": as_of.strftime("%Y-%m-%dT%H:%M:%SZ"), "run_key": key}
    uri = storage.study_uri(plan.bucket, plan.model, key)
    cloud.artifacts.write_once(uri, Tuning.parse(json.dumps(example)).to_bytes())
    return uri


def test_what_another_release_wrote_is_passed_over_by_name(cloud, make_run, caplog) -> None:
    """A study, and the champion's documents: the night goes on with what it can read."""
    plan, run = begin(cloud), make_run()
    keep(cloud, plan, -3)
    strange = keep(cloud, plan, -2)
    cloud.artifacts.objects[strange] = b'{"kind": "tuning", "version": 99}'
    champion = str(RunKey.of(plan.as_of - timedelta(days=1), "champion"))
    cloud.registry.add(champion, vertex.CHAMPION)
    made = Record(cloud.artifacts, storage.run_uri(plan.bucket, plan.model, champion))
    cloud.artifacts.objects[made.uri(Plan)] = b'{"kind": "plan", "version": 99}'
    with caplog.at_level("WARNING"):
        result = wake(cloud, run, plan)
    assert result is not None
    assert not result["searched"]
    request = Record(cloud.artifacts, plan.run_uri).read_document(TuningRequest)
    assert (request.reason, request.earlier_studies) == ("recent", 2)
    assert request.last_study is not None
    assert request.last_study.as_of == plan.as_of - timedelta(days=3)
    assert strange in caplog.text
    assert made.uri(Plan) in caplog.text


def test_a_backfill_knows_the_studies_before_it_however_many_came_later(cloud, make_run) -> None:
    """It reads the newest of its own past, and counts all of them."""
    plan = begin(cloud, search="always")
    for days in (*range(-30, 0), *range(1, 60)):
        keep(cloud, plan, days)
    wake(cloud, make_run(), plan)
    request = Record(cloud.artifacts, plan.run_uri).read_document(TuningRequest)
    assert request.last_study is not None
    assert request.last_study.as_of == plan.as_of - timedelta(days=1)
    assert request.earlier_studies == 30


def test_a_study_that_comes_later_does_not_change_one_that_is_under_way(cloud, make_run) -> None:
    """What was decided is stored: another run's study between two wakes makes no other job."""
    plan, run = begin(cloud, days=7), make_run()
    wake(cloud, run, plan)
    other, beside = begin(cloud), make_run(run_id="backfill__1")
    wake(cloud, beside, other)
    succeed(cloud, 0.6, values=(0.01,))
    wake(cloud, beside, other)
    before = len(cloud.jobs.jobs)
    wake(cloud, run, plan)
    assert len(cloud.jobs.jobs) == before


def test_a_crash_after_the_create_makes_no_second_job(cloud, make_run) -> None:
    """A paid study is found again."""
    plan, run = begin(cloud), make_run()
    cloud.jobs.after_create = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run.execute(task_of(cloud, plan))
    cloud.jobs.after_create = lambda: None
    assert wake(cloud, run, plan) is None
    assert len(cloud.jobs.jobs) == 1


def test_the_night_after_trains_with_what_the_study_found_for_the_champion(cloud, make_run) -> None:
    """The study's values, unless a person changed the file since."""
    first, run = begin(cloud), make_run()
    wake(cloud, run, first)
    succeed(cloud, 0.6, 0.7, values=(0.01, 0.003))
    wake(cloud, run, first)
    report = json.loads((EXAMPLES / "report__resumed.json").read_bytes())
    report |= {"model": first.model, "run_key": first.run_key, "hyperparameters": {"learning_rate": 0.003}}
    Record(cloud.artifacts, first.run_uri).write_once(Report.parse(json.dumps(report)))
    cloud.registry.add(first.run_key, vertex.CHAMPION)
    result = wake(cloud, make_run(run_id="scheduled__2"), begin(cloud, days=1))
    assert result is not None
    assert (result["searched"], result["hyperparameters"]) == (False, {"learning_rate": 0.003})
    changed = begin(cloud, days=2, learning_rate=0.02)
    result = wake(cloud, make_run(run_id="scheduled__3"), changed)
    assert result is not None
    assert result["hyperparameters"] == {"learning_rate": 0.02}
    assert len(cloud.jobs.jobs) == 1


def test_a_study_with_a_failed_job_fails_the_task_with_the_way_out(cloud, make_run) -> None:
    """Trials that fail for the program's reasons are not bought again."""
    plan, run = begin(cloud), make_run()
    wake(cloud, run, plan)
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, "Too many failed trials: 3 of 3 failed")
    with pytest.raises(AirflowFailException, match=r"failed trials[\s\S]*on never"):
        run.execute(task_of(cloud, plan))
    assert len(cloud.jobs.jobs) == 1


def recalling(cloud, make_run, trials: int) -> tuple[Plan, Any]:
    """A second study whose repetition, of so many trials, is under way."""
    first, run = begin(cloud), make_run()
    wake(cloud, run, first)
    succeed(cloud, *(0.6, 0.7)[:trials], values=(0.01, 0.003)[:trials])
    wake(cloud, run, first)
    plan, run = begin(cloud, days=7), make_run(run_id="scheduled__2")
    assert wake(cloud, run, plan) is None
    assert cloud.jobs.specs[-1]["max_trial_count"] == trials
    return plan, run


@pytest.mark.parametrize("message", ["status of 1", "status of 2"], ids=["program", "refused values"])
@pytest.mark.parametrize("trials", [1, 2])
def test_a_repetition_whose_trials_all_fail_leads_to_a_search_of_the_whole_space(
    cloud, make_run, trials, message
) -> None:
    """The next night would repeat the same ones; the study is stored, with what failed."""
    plan, run = recalling(cloud, make_run, trials)
    succeed(cloud, *[None] * trials, flag="prior", values=(0.0, 1.0)[:trials])
    words = f"Too many failed trials. Trial 1: the replica exited with a non-zero {message}"
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, words)
    assert wake(cloud, run, plan) is None
    search = cloud.jobs.specs[-1]
    assert search["max_trial_count"] == 5 - trials
    assert search["study_spec"]["parameters"][0]["double_value_spec"] == {"min_value": 1e-4, "max_value": 0.1}
    assert wake(cloud, run, plan) is None
    assert len(cloud.jobs.jobs) == 3
    succeed(cloud, 0.61, 0.65, values=(0.05, 0.06))
    assert wake(cloud, run, plan)
    settled = Record(cloud.artifacts, plan.run_uri).read_document(Tuning)
    assert (settled.best, len(settled.jobs)) == ("search-2", 2)
    assert [trial.state for trial in settled.trials] == ["INFEASIBLE"] * trials + ["SUCCEEDED"] * 2
    assert storage.study_uri(plan.bucket, plan.model, plan.run_key) in cloud.artifacts.objects


def test_a_repetition_bears_single_trials_that_fail(cloud, make_run) -> None:
    """The job goes on to its end, and the search around the one that works."""
    plan, run = recalling(cloud, make_run, 2)
    assert cloud.jobs.specs[-1]["max_failed_trial_count"] == 2
    succeed(cloud, None, 0.66, flag="prior", values=(0.0, 1.0))
    assert wake(cloud, run, plan) is None
    bounds = cloud.jobs.specs[-1]["study_spec"]["parameters"][0]["double_value_spec"]
    assert bounds["max_value"] < 0.1


def test_a_repetition_that_the_service_failed_is_ordered_again(cloud, make_run) -> None:
    """That says nothing of the trials."""
    plan, run = recalling(cloud, make_run, 1)
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 13, "Internal error")
    assert wake(cloud, run, plan) is None
    assert len(cloud.jobs.jobs) == 3
    assert cloud.jobs.specs[-1]["study_spec"]["parameters"][0]["parameter_id"] == "prior"


def test_a_search_of_fewer_trials_than_may_fail_is_no_failure(cloud, make_run) -> None:
    """One trial is left after the repetition; the file bears two."""
    plan, run = recalling(cloud, make_run, 2)
    values = plan.to_json()
    values["spec"]["tuning"] |= {"max_trials": 3, "parallel_trials": 1}
    values["run_key"] = key = str(RunKey.of(plan.as_of, "few"))
    values["run_uri"] = storage.run_uri(plan.bucket, plan.model, key)
    plan = Plan.parse(json.dumps(values))
    Record(cloud.artifacts, plan.run_uri).write_once(plan)
    run = make_run(run_id="scheduled__few")
    wake(cloud, run, plan)
    succeed(cloud, 0.5, 0.66, flag="prior", values=(0.0, 1.0))
    wake(cloud, run, plan)
    assert cloud.jobs.specs[-1]["max_trial_count"] == 1
    succeed(cloud, None, values=(0.05,))
    cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 3, "Too many failed trials: 1 of 1 failed")
    assert wake(cloud, run, plan)
    assert Record(cloud.artifacts, plan.run_uri).read_document(Tuning).best == "recall-2"


def test_a_study_made_beside_another_is_cancelled(cloud, make_run) -> None:
    """While both search, and when the older one has ended: the younger one is nobody's."""
    plan, run = begin(cloud), make_run()
    wake(cloud, run, plan)
    older = cloud.jobs.newest
    cloud.jobs.create(cloud.jobs.specs[0])
    assert wake(cloud, run, plan) is None
    assert cloud.jobs.cancelled == [cloud.jobs.newest]
    cloud.jobs.create(cloud.jobs.specs[0])
    cloud.jobs.end(older)
    cloud.jobs.reported[older] = []
    with contextlib.suppress(AirflowFailException):  # no trial, no study
        wake(cloud, run, plan)
    assert [job.name for job in cloud.jobs.jobs.values() if job.active] == []
    assert older not in cloud.jobs.cancelled


def test_what_a_failed_run_left_searching_is_cancelled(cloud, make_run, monkeypatch) -> None:
    """Of a model with tuning."""
    plan, run = begin(cloud), make_run()
    wake(cloud, run, plan)
    assert run.execute(CancelJobsOperator(task_id="cancel_jobs", types=tuple(JobType), cloud=cloud.connect)) == [
        cloud.jobs.newest
    ]
    assert cloud.jobs.cancelled == [cloud.jobs.newest]


def test_a_night_without_a_study_pays_for_nothing(cloud, make_run) -> None:
    """The file, or the Param, says never."""
    plan = begin(cloud, search="never")
    result = wake(cloud, make_run(), plan)
    assert result == {
        "searched": False,
        "trials": 0,
        "words": "the Param tune (tuning.search) is never",
        "hyperparameters": {"learning_rate": 0.001},
    }
    assert not cloud.jobs.jobs
    assert Record(cloud.artifacts, plan.run_uri).read_document(TuningRequest).reason == "unwanted"
