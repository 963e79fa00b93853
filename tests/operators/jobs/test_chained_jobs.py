"""`jobs: chained`: a run pays for one machine start; what dies, fails or is cleared costs what is not done yet."""

from __future__ import annotations

import itertools
import json

import pytest

from retraining.core.errors import ContractError
from retraining.core.jobs.chains import Going
from retraining.core.naming import storage
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.dying import Death, DyingCloud
from tests.support.scenes.chained_run import TASKS, WORKS_S, ChainedRun, stages_of

EXIT_2 = "The replica workerpool0-0 exited with a non-zero status of 2. Termination reason: Error."
EXIT_1 = "The replica workerpool0-0 exited with a non-zero status of 1. Termination reason: Error."
PREEMPTED = "The replica workerpool0-0 was preempted."


@pytest.fixture
def run() -> ChainedRun:
    """A run that nothing happened to yet."""
    return ChainedRun()


def test_one_job_does_all_and_each_task_has_its_part_of_the_time(run: ChainedRun) -> None:
    results = {task: run.finish(task) for task in TASKS}
    (job,) = run.jobs
    assert {result["job"] for result in results.values()} == {job.name}
    assert job.succeeded
    assert all(result["seconds"] >= WORKS_S for result in results.values())
    assert sum(result["seconds"] for result in results.values()) == run.paid_seconds
    for task in TASKS:
        assert run.wanted[task].adopted_uri in run.cloud.artifacts.objects


def test_the_job_may_take_as_long_as_its_tasks_and_the_waits_between_them(run: ChainedRun) -> None:
    run.wake("export")
    (spec,) = run.cloud.jobs.specs
    assert [task for task, _ in stages_of(spec)] == [*TASKS]
    assert spec["job_spec"]["scheduling"]["timeout"] == f"{(2 + 6 + 2) * 3600 + 2 * 900}s"
    assert spec["job_spec"]["worker_pool_specs"][0]["replica_count"] == 1


def test_the_machine_is_asked_for_the_next_task_only_when_the_one_before_was_believed(run: ChainedRun) -> None:
    """A result that is not this request's ends the run there; nothing is trained on it."""

    def forge(_name: str, _task: str) -> bool:
        manifest = {**run.result_of("export"), "run_key": "20131120t030000z-ffffffffffff"}
        run.cloud.artifacts.put(run.wanted["export"].result_uri, json.dumps(manifest).encode())
        return True

    run.fails = forge
    with pytest.raises(ContractError):
        run.finish("export")
    assert run.wanted["train"].request_uri not in run.cloud.artifacts.objects


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("task", TASKS)
def test_a_task_that_dies_at_any_call_pays_nothing_twice(task: str, after: bool) -> None:
    for at in itertools.count(1):
        run = ChainedRun()
        for each in TASKS[: TASKS.index(task)]:
            run.finish(each)
        dying = DyingCloud(run.cloud, at, after=after)
        died = False
        for _ in range(8):
            try:
                if run.wake(task, dying):
                    break
            except Death:
                died = True
                run.cloud.clock.sleep(400)  # its claim is settled
            run.work()
        for each in TASKS[TASKS.index(task) :]:
            run.finish(each)
        assert len(run.jobs) == 1, f"at call {at}, {dying.calls[at - 1 :][:1]}"
        assert not [job for job in run.jobs if job.active]
        if not died:
            return


@pytest.mark.parametrize(
    ("task", "jobs"), [("export", [[*TASKS], [*TASKS]]), ("train", [[*TASKS], ["train", "evaluate"]])]
)
def test_a_machine_that_is_taken_away_is_followed_by_one_that_does_the_rest(run: ChainedRun, task, jobs) -> None:
    taken: list[str] = []

    def take(name: str, about: str) -> bool:
        if about != task or taken:
            return False
        taken.append(name)
        run.end(name, "JOB_STATE_FAILED", 14, PREEMPTED)
        return True

    run.fails = take
    results = {each: run.finish(each) for each in TASKS}
    assert [[each for each, _ in stages_of(spec)] for spec in run.cloud.jobs.specs] == jobs
    assert sum(result["seconds"] for result in results.values()) == run.paid_seconds


def test_a_machine_that_dies_in_the_evaluation_is_followed_by_an_evaluation_alone(run: ChainedRun) -> None:
    taken: list[str] = []

    def take(name: str, about: str) -> bool:
        if about == "evaluate" and not taken:
            taken.append(name)
            run.end(name, "JOB_STATE_FAILED", 14, PREEMPTED)
        return bool(taken) and about == "evaluate" and taken[0] == name

    run.fails = take
    for each in TASKS:
        run.finish(each)
    assert [[each for each, _ in stages_of(spec)] for spec in run.cloud.jobs.specs] == [[*TASKS], ["evaluate"]]


def test_what_the_data_make_wrong_in_the_training_is_not_tried_again(run: ChainedRun) -> None:
    """The machine's failure is that of the task that it worked for, and its exit code means what it always does."""
    run.finish("export")

    def fail(name: str, _task: str) -> bool:
        run.end(name, "JOB_STATE_FAILED", 3, EXIT_2)
        return True

    run.fails = fail
    with pytest.raises(AirflowFailException, match="user error"):
        run.finish("train")
    assert len(run.jobs) == 1


def test_program_errors_are_counted_over_both_jobs(run: ChainedRun) -> None:
    run.finish("export")

    def fail(name: str, _task: str) -> bool:
        run.end(name, "JOB_STATE_FAILED", 3, EXIT_1)
        return True

    run.fails = fail
    with pytest.raises(AirflowFailException, match="program error"):
        run.finish("train")
    assert len(run.jobs) == 2, "one retry"


def test_a_machine_that_nobody_asked_in_time_costs_no_retry(run: ChainedRun) -> None:
    """Airflow stood still for longer than the machine waits: the training has a job of its own, which goes on."""
    run.finish("export")
    run.end(run.jobs[0].name)
    run.finish("train")
    run.finish("evaluate")
    assert [[each for each, _ in stages_of(spec)] for spec in run.cloud.jobs.specs] == [[*TASKS], ["train", "evaluate"]]


def test_a_machine_that_ends_just_as_it_is_asked_is_followed_by_another(run: ChainedRun) -> None:
    run.finish("export")
    run.works = False
    run.wake("train")
    run.end(run.jobs[0].name)
    run.works = True
    run.finish("train")
    assert len(run.jobs) == 2


def test_a_cleared_training_ends_the_machine_and_is_done_anew(run: ChainedRun) -> None:
    run.finish("export")
    run.works = False
    run.wake("train")
    run.generations["train"] = 1
    run.works = True
    run.finish("train")
    run.finish("evaluate")
    assert run.cloud.jobs.cancelled == [run.jobs[0].name]
    assert len(run.jobs) == 2


def test_a_training_that_failed_for_good_is_done_anew_when_it_is_cleared(run: ChainedRun) -> None:
    run.finish("export")
    run.wake("train")
    run.end(run.jobs[0].name, "JOB_STATE_FAILED", 3, EXIT_2)
    with pytest.raises(AirflowFailException):
        run.wake("train")
    run.generations["train"] = 1
    run.finish("train")
    assert len(run.jobs) == 2


@pytest.mark.parametrize("task", ["export", "train"])
def test_a_task_that_is_cleared_after_its_end_leaves_the_machine_at_work(run: ChainedRun, task) -> None:
    run.finish("export")
    run.finish("train")
    run.works = False
    run.wake("evaluate")
    run.generations[task] = 1
    assert run.wake(task)["uri"] == run.wanted[task].adopted_uri
    assert not run.cloud.jobs.cancelled
    run.works = True
    run.finish("evaluate")
    assert len(run.jobs) == 1


def test_a_report_that_a_person_deleted_is_made_anew_by_a_job_of_its_own(run: ChainedRun) -> None:
    for task in TASKS:
        run.finish(task)
    run.cloud.artifacts.take(run.wanted["train"].adopted_uri)
    run.generations["train"] = 1
    run.finish("train")
    assert [[each for each, _ in stages_of(spec)] for spec in run.cloud.jobs.specs][1:] == [["train", "evaluate"]]


def test_lines_of_a_task_are_its_own(run: ChainedRun, caplog) -> None:
    """The log of the machine has all tasks' lines; of those before a task's beginning it prints none."""
    run.wake("export")
    number = run.jobs[0].job_id
    run.cloud.logs.say(number, "120 shards", second=30)
    run.finish("export")
    end = (run.cloud.clock.now() - run.cloud.jobs.jobs[run.jobs[0].name].created).total_seconds()
    caplog.clear()
    run.wake("train")
    run.cloud.logs.say(number, "epoch 1", second=end + 60)
    run.finish("train")
    printed = [record.getMessage() for record in caplog.records if record.getMessage().startswith("[worker")]
    assert printed == ["[workerpool0-0] epoch 1"]


def test_somebody_gives_a_sign_for_as_long_as_the_machine_is_waited_for(run: ChainedRun) -> None:
    """`maintain` ends jobs that nobody looks at: the sign is looked for under the key of the job's maker."""
    run.finish("export")
    uri = storage.poke_uri(run.cloud.settings.bucket, "export-0")
    before = run.cloud.artifacts.found[uri].created if uri in run.cloud.artifacts.found else None
    run.cloud.clock.sleep(60)
    run.wake("train")
    assert run.cloud.artifacts.found[uri].created != before


def test_what_is_written_of_a_chain_and_cannot_be_read_is_named(run: ChainedRun) -> None:
    run.finish("export")
    uri = storage.chained_job_uri(run.plan.run_uri)
    run.cloud.artifacts.put(uri, b'{"job": 3}')
    with pytest.raises(ContractError, match=r"chained/job\.json.*clear the task"):
        run.wake("train")


def test_a_job_of_another_run_is_neither_taken_nor_ended(run: ChainedRun) -> None:
    """Whoever can write the note may name any job of the project: it goes on, and the training has its own."""
    run.finish("export")
    foreign = run.cloud.jobs.create(
        {"labels": {"retraining-dag-run": "another", "retraining-key": "k", "retraining-owner": "another"}}
    )
    note = Going(job=foreign.name, tasks=TASKS)
    run.cloud.artifacts.put(storage.chained_job_uri(run.plan.run_uri), note.to_bytes())
    run.cloud.jobs.specs[-1] = run.cloud.jobs.specs[0]
    run.works = False
    run.wake("train")
    run.generations["train"] = 1
    run.wake("train")
    assert foreign.name not in run.cloud.jobs.cancelled
    assert run.cloud.jobs.jobs[foreign.name].active
    assert run.jobs[-1].labels["retraining-owner"] == "train"
    assert not [uri for uri in run.cloud.artifacts.objects if uri.endswith(f"-{foreign.job_id}.json")]
