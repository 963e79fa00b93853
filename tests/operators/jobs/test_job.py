"""VertexJobOperator: exactly one job for one wish, whatever happens around it."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from datetime import timedelta
from typing import Any

import pytest
from google.api_core.exceptions import InvalidArgument, ServiceUnavailable, TooManyRequests

from retraining.core.documents import TrainRequest
from retraining.core.errors import JobError
from retraining.core.jobs.claims import SETTLED_AFTER
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.jobs.job import VertexJobOperator
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.fakes.clock import START
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.job import (
    ASKED,
    REQUEST,
    REQUEST_URI,
    RESULT,
    RESULT_URI,
    SPOT_JOB,
    STORED_URI,
    finish,
    make_task,
)


@pytest.fixture
def cloud() -> FakeCloud:
    """The cloud that the operators meet; waiting takes no time."""
    return FakeCloud()


def test_a_wake_creates_the_job_and_gives_the_slot_back(cloud, make_run) -> None:
    """The request is stored before the job is created, and the job carries the labels."""
    with pytest.raises(AirflowRescheduleException):
        make_run().execute(make_task(cloud))
    assert json.loads(cloud.artifacts.objects["gs://bucket/flight_delays/runs/x/train_request.json"])
    labels = cloud.jobs.specs[0]["labels"]
    assert labels["a"] == "b"
    assert all(re.fullmatch("[0-9a-f]{40}", labels[f"retraining-{name}"]) for name in ("key", "owner", "dag-run"))


def test_the_job_lies_in_the_runs_folder_as_people_submit_it(cloud, make_run) -> None:
    """As JSON, as a command and as a program, without the labels by which tasks find their jobs."""
    with pytest.raises(AirflowRescheduleException):
        make_run().execute(make_task(cloud))
    base = "gs://bucket/flight_delays/runs/x/submit/train"
    texts = [cloud.artifacts.objects[f"{base}.{ending}"].decode() for ending in ("json", "sh", "py")]
    assert json.loads(texts[0])["labels"] == SPOT_JOB["labels"]
    assert texts[1].startswith("gcloud ai custom-jobs create ")
    assert "create_custom_job(" in texts[2]


def test_the_older_a_job_the_longer_its_task_sleeps(cloud, make_run, monkeypatch) -> None:
    """It watches a young one; its lines are all printed in the end."""
    monkeypatch.setattr(cloud, "settings", dataclasses.replace(cloud.settings, watch_s=10))
    run, task = make_run(), make_task(cloud)
    watched, sleeps = [], []
    for age in (0, 99, 600, 1800, 7200):
        cloud.clock.time = START + timedelta(seconds=age)
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
        watched.append((cloud.clock.now() - START).total_seconds() - age)
        sleeps.append(task.poke_interval)
    interval = cloud.settings.wake_interval_s
    assert watched == [10, 10, 0, 0, 0]
    assert sleeps[:2] == [interval, interval]
    assert sleeps == sorted(sleeps)
    assert sleeps[-1] == 5 * interval


def test_later_wakes_find_the_job_and_return_its_result(cloud, make_run) -> None:
    """Two wakes, one job, its result."""
    run, task = make_run(), make_task(cloud)
    for _ in range(2):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
    finish(cloud)
    del cloud.artifacts.objects[RESULT_URI]
    with pytest.raises(JobError, match="left no"):
        run.execute(task)
    cloud.artifacts.objects[RESULT_URI] = RESULT
    assert run.execute(task)["uri"] == STORED_URI
    assert len(cloud.jobs.jobs) == 1


def test_a_stored_result_needs_no_job(cloud, make_run) -> None:
    """What is there is reused."""
    cloud.artifacts.objects[STORED_URI] = RESULT
    result = make_run().execute(make_task(cloud))
    assert (result["job"], result["seconds"], result["spot_seconds"]) == (None, None, None)
    assert not cloud.jobs.jobs


def test_a_job_that_ends_between_two_wakes_is_this_tasks_own(cloud, make_run, caplog) -> None:
    """Its result lies there when the task wakes: its time, its name and its last lines are not lost."""
    run, task = make_run(), make_task(cloud)
    caplog.set_level("INFO", logger="retraining")
    cloud.logs.say("1", "first", second=0)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    cloud.logs.say("1", "odd", second=30, severity="WARNING")
    cloud.logs.say("1", "last", second=60, severity="EMERGENCY")
    finish(cloud, seconds=90.0)
    result = run.execute(task)
    assert (result["job"], result["seconds"]) == (cloud.jobs.newest, 90.0)
    lines = [record for record in caplog.records if record.getMessage().startswith("[workerpool0-0]")]
    assert [(record.levelname, record.getMessage().removeprefix("[workerpool0-0] ")) for record in lines] == [
        ("INFO", "first"),
        ("WARNING", "odd"),
        ("CRITICAL", "last"),
    ]
    assert run.xcoms["train", "link_job"].endswith("/training/1?project=local-project")


def test_a_result_is_taken_when_its_job_has_ended(cloud, make_run) -> None:
    """Stored while the job still runs: what it took is known at its end."""
    run, task = make_run(), make_task(cloud)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    cloud.artifacts.objects[RESULT_URI] = RESULT
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    finish(cloud, seconds=90.0)
    assert run.execute(task)["seconds"] == 90.0
    assert len(cloud.jobs.jobs) == 1


def test_a_cleared_task_still_knows_what_its_result_took(cloud, make_run) -> None:
    """The result stands and no job is made again; it was this run that paid for it."""
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    finish(cloud, seconds=90.0)
    assert run.execute(make_task(cloud), try_number=2, max_tries=3)["seconds"] == 90.0
    assert make_run(run_id="manual__2").execute(make_task(cloud))["job"] is None
    assert len(cloud.jobs.jobs) == 1


def test_lost_jobs_are_paid_for_too(cloud, make_run) -> None:
    """Two preempted spot jobs and one on demand: all seconds count, and which of them were on spot."""
    run, task = make_run(), make_task(cloud)
    for seconds in (10.0, 20.0):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task)
        message = "The replica workerpool0-0 was preempted."
        cloud.jobs.end(cloud.jobs.newest, "JOB_STATE_FAILED", 14, message, seconds=seconds)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    finish(cloud, seconds=40.0)
    result = run.execute(task)
    assert (result["job"], result["seconds"], result["spot_seconds"]) == (cloud.jobs.newest, 70.0, 30.0)


def test_a_malformed_result_fails_for_good(cloud, make_run) -> None:
    """A document that breaks its contract is not trusted, wherever it lies."""
    cloud.artifacts.objects[STORED_URI] = b"{}"
    with pytest.raises(AirflowFailException, match="kind is None"):
        make_run().execute(make_task(cloud))
    del cloud.artifacts.objects[STORED_URI]
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    finish(cloud)
    cloud.artifacts.objects[RESULT_URI] = b"{}"
    with pytest.raises(AirflowFailException, match=f"{RESULT_URI}: kind is None"):
        run.execute(make_task(cloud))
    assert STORED_URI not in cloud.artifacts.objects


@pytest.mark.parametrize(
    ("forged", "named"),
    [
        ({"model": "shop_sales"}, "model 'shop_sales'. Expected 'flight_delays'"),
        ({"run_key": "20131119t030000z-0a1b2c3d4e5f"}, "run_key '20131119t030000z-0a1b2c3d4e5f'"),
        ({"model_uri": "gs://bucket/jobs/shop_sales/runs/x/training/model"}, "the file 'gs://bucket/jobs/shop_sales"),
        ({"model_uri": f"{RESULT_URI.rpartition('/')[0]}/../other/model"}, "the file 'gs://"),
        ({"request_digest": "f" * 64}, f"the result of another request, whose SHA-256 is {'f' * 64}. Expected"),
        ({"request_digest": None}, f"a result without request_digest. Expected request_digest {REQUEST.digest()}"),
    ],
    ids=["another model", "another run", "another model's files", "a way up", "another request", "no request"],
)
def test_a_result_that_is_not_this_requests_fails_for_good(cloud, make_run, forged, named) -> None:
    """Whoever may write where a job writes gets nothing into the record by it."""
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    finish(cloud)
    report = json.loads(RESULT) | forged
    cloud.artifacts.objects[RESULT_URI] = json.dumps(report).encode()
    with pytest.raises(AirflowFailException, match=re.escape(named)) as refused:
        run.execute(make_task(cloud))
    assert str(refused.value).startswith(RESULT_URI)
    assert "delete the object" in str(refused.value)
    assert STORED_URI not in cloud.artifacts.objects
    del cloud.artifacts.objects[RESULT_URI]
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud), max_tries=4)
    finish(cloud)
    assert run.execute(make_task(cloud), max_tries=4)["uri"] == STORED_URI
    assert ASKED["model"] == json.loads(cloud.artifacts.objects[STORED_URI])["model"]


def test_a_stale_result_of_the_same_run_is_not_taken(cloud, make_run) -> None:
    """The request was deleted and its task cleared, so that another seed is asked for: the older job ends late."""
    run, changed = make_run(), REQUEST.model_copy(update={"seed": REQUEST.seed + 1})
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    del cloud.artifacts.objects[REQUEST_URI]
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud, changed), max_tries=4)
    finish(cloud)
    with refuses(AirflowFailException, found=("another request", REQUEST.digest())):
        run.execute(make_task(cloud, changed), max_tries=4)
    assert STORED_URI not in cloud.artifacts.objects
    del cloud.artifacts.objects[RESULT_URI]
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud, changed), max_tries=6)
    finish(cloud, changed)
    assert run.execute(make_task(cloud, changed), max_tries=6)["uri"] == STORED_URI
    assert json.loads(cloud.artifacts.objects[STORED_URI])["request_digest"] == changed.digest()


def test_a_job_of_an_earlier_release_is_believed_as_it_was_then(cloud, make_run) -> None:
    """It was made before the release was brought in, by its request; the task that ends now asks for no digest."""
    earlier = TrainRequest.parse(json.dumps(ASKED))
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud, earlier))
    finish(cloud)
    cloud.artifacts.objects[RESULT_URI] = json.dumps(json.loads(RESULT) | {"request_digest": None}).encode()
    assert run.execute(make_task(cloud))["uri"] == STORED_URI


def test_what_is_written_over_a_result_later_changes_nothing(cloud, make_run) -> None:
    """The record has a copy that no job may write; all that follows reads that one."""
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    finish(cloud)
    first = run.execute(make_task(cloud))
    cloud.artifacts.objects[RESULT_URI] = json.dumps(json.loads(RESULT) | {"best_epoch": 1, "parameters": 1}).encode()
    assert run.execute(make_task(cloud), max_tries=4) == first
    assert cloud.artifacts.objects[STORED_URI] == RESULT


def test_a_result_deleted_from_the_record_is_made_again(cloud, make_run) -> None:
    """`Delete this object, then clear the task`: what the first job left does not come back."""
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    finish(cloud)
    run.execute(make_task(cloud))
    del cloud.artifacts.objects[STORED_URI]
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud), max_tries=4)
    assert len(cloud.jobs.jobs) == 2
    assert RESULT_URI not in cloud.artifacts.objects


def test_a_retry_after_a_crash_finds_the_job(cloud, make_run) -> None:
    """The worker dies right after the create: the next try has the same job."""
    run = make_run()
    cloud.jobs.after_create = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run.execute(make_task(cloud))
    cloud.jobs.after_create = lambda: None
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud), try_number=2)
    assert len(cloud.jobs.jobs) == 1


def test_a_lost_response_makes_no_second_job(cloud, make_run) -> None:
    """The create worked and its answer got lost: the job is looked up before another create."""
    cloud.jobs.after_create = lambda: (_ for _ in ()).throw(ServiceUnavailable("lost"))
    with pytest.raises(AirflowRescheduleException):
        make_run().execute(make_task(cloud))
    assert len(cloud.jobs.jobs) == 1


def refuse_creates(cloud: FakeCloud, *failures: Exception) -> None:
    """The next creates make no job and end so."""
    left = iter(failures)

    def refuse() -> None:
        if failure := next(left, None):
            raise failure

    cloud.jobs.before_create = refuse


def wake_at(cloud: FakeCloud, run: Any, seconds: float) -> int:
    """A wake of a waiting task so long after the beginning; gives how many jobs there are then."""
    cloud.clock.time = START + timedelta(seconds=seconds)
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    return len(cloud.jobs.jobs)


def test_a_create_without_an_answer_is_tried_again_when_no_job_can_come_of_it(cloud, make_run) -> None:
    """503, and no job was made: another create before the first one is settled might be paid twice."""
    run = make_run()
    refuse_creates(cloud, ServiceUnavailable("no"), ServiceUnavailable("no"))
    settled = SETTLED_AFTER.total_seconds()
    assert [wake_at(cloud, run, at) for at in (0, 60, settled - 1, settled, 2 * settled - 1, 2 * settled)] == [
        0
    ] * 5 + [1]


def test_a_create_that_is_never_answered_ends_for_good(cloud, make_run) -> None:
    """Five times, as with jobs that the service failed."""
    run = make_run()
    refuse_creates(cloud, *[ServiceUnavailable("no")] * 9)
    settled = SETTLED_AFTER.total_seconds()
    assert [wake_at(cloud, run, number * settled) for number in range(5)] == [0] * 5
    cloud.clock.time = START + 5 * SETTLED_AFTER
    with pytest.raises(AirflowFailException, match=r"d: .*internal error.*clear"):
        run.execute(make_task(cloud))


def test_a_refused_create_need_not_be_waited_for(cloud, make_run) -> None:
    """No quota: again after a minute. Wrong: the task fails, and cleared, or tried again, it creates at once."""
    run = make_run()
    refuse_creates(cloud, TooManyRequests("quota metrics exceed quota limits"), InvalidArgument("bad machine"))
    assert [wake_at(cloud, run, at) for at in (0, 59)] == [0, 0]
    cloud.clock.time = START + timedelta(seconds=60)
    with pytest.raises(AirflowFailException, match="bad machine"):
        run.execute(make_task(cloud))
    assert wake_at(cloud, run, 120) == 1


def test_a_cleared_task_cancels_its_old_job_and_makes_a_new_one(cloud, make_run) -> None:
    """Clearing raises max_tries: another generation."""
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud), try_number=2, max_tries=3)
    assert len(cloud.jobs.jobs) == 2
    assert cloud.jobs.cancelled == [next(iter(cloud.jobs.jobs))]


def test_another_run_or_task_has_its_own_job(cloud, make_run) -> None:
    """Nobody takes or cancels somebody else's job."""
    for run_id in ("manual__1", "manual__2"):
        with pytest.raises(AirflowRescheduleException):
            make_run(run_id=run_id).execute(make_task(cloud))
    assert len(cloud.jobs.jobs) == 2
    assert not cloud.jobs.cancelled


def test_log_lines_are_printed_exactly_once(cloud, make_run, caplog) -> None:
    """Over three wakes, with a line that becomes visible after a younger one."""
    run, task = make_run(), make_task(cloud)
    caplog.set_level("INFO", logger="retraining")
    cloud.logs.say("1", "zero", second=0)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    cloud.logs.say("1", "forty", second=40)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    cloud.logs.say("1", "late thirty", second=30)
    cloud.logs.say("1", "fifty", second=50)
    finish(cloud)
    result = cloud.artifacts.objects.pop(RESULT_URI)
    with pytest.raises(JobError, match="left no"):
        run.execute(task)
    cloud.artifacts.objects[RESULT_URI] = result
    printed = [record.getMessage() for record in caplog.records if record.getMessage().startswith("[workerpool0-0]")]
    assert printed == [f"[workerpool0-0] {text}" for text in ("zero", "forty", "late thirty", "fifty")]


def test_another_try_prints_from_the_beginning(cloud, make_run, caplog) -> None:
    """Another try has another log file."""
    run, task = make_run(), make_task(cloud)
    caplog.set_level("INFO", logger="retraining")
    cloud.logs.say("1", "zero", second=0)
    for try_number in (1, 2):
        with pytest.raises(AirflowRescheduleException):
            run.execute(task, try_number=try_number)
    assert sum(record.getMessage().endswith("zero") for record in caplog.records) == 2


def test_a_stopped_process_leaves_the_job_to_the_next_try(cloud, make_run) -> None:
    """Heartbeats that fail, a restarted scheduler or a worker shut down are no wish to end the job."""
    run, task = make_run(), make_task(cloud)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    task.on_kill()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud), try_number=2)
    finish(cloud)
    assert run.execute(make_task(cloud), try_number=2)["job"] == cloud.jobs.newest
    assert (len(cloud.jobs.jobs), cloud.jobs.cancelled) == (1, [])


def test_leftover_jobs_of_the_run_are_cancelled_at_its_end(cloud, make_run) -> None:
    """A task that was failed while asleep leaves its job running; other runs' jobs are not touched."""
    run = make_run()
    for other in (run, make_run(run_id="manual__2")):
        with pytest.raises(AirflowRescheduleException):
            other.execute(make_task(cloud))
    first = next(iter(cloud.jobs.jobs))
    assert run.execute(CancelJobsOperator(task_id="cancel_jobs", cloud=cloud.connect)) == [first]
    assert cloud.jobs.cancelled == [first]


def test_a_job_that_no_list_shows_yet_is_cancelled_at_the_runs_end(cloud, make_run, monkeypatch) -> None:
    """The claim names it."""
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    monkeypatch.setattr(cloud.jobs, "find_jobs", lambda *_: [])
    assert run.execute(CancelJobsOperator(task_id="cancel_jobs", cloud=cloud.connect)) == [cloud.jobs.newest]


@pytest.mark.parametrize("after_s", [30, 240, None])
def test_the_runs_end_waits_for_a_create_without_an_answer(cloud, make_run, after_s) -> None:
    """Whoever began it is gone: the job is cancelled when it shows itself; nobody waits longer than it can take."""
    run = make_run()
    cloud.jobs.before_create = lambda: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        run.execute(make_task(cloud))
    cloud.jobs.before_create = lambda: None
    (label,) = {uri.split("/")[-2] for uri in cloud.artifacts.objects if "/claims/" in uri}
    (key,) = {uri.split("/")[-1].removesuffix(".json") for uri in cloud.artifacts.objects if "/claims/" in uri}
    task = CancelJobsOperator(task_id="cancel_jobs", cloud=cloud.connect)
    for seconds in range(0, 600, 30):
        cloud.clock.time = START + timedelta(seconds=seconds)
        if seconds == after_s:
            cloud.jobs.create({"labels": {"retraining-dag-run": label, "retraining-key": key}})
        with contextlib.suppress(AirflowRescheduleException):
            run.execute(task)
            break
    assert cloud.jobs.cancelled == list(cloud.jobs.jobs)
    assert seconds == (SETTLED_AFTER.total_seconds() if after_s is None else after_s)


def test_a_raw_job_is_its_own_result(cloud, make_run) -> None:
    """A templated CustomJob instead of a job request."""
    run, task = make_run(), VertexJobOperator(task_id="train", custom_job=SPOT_JOB, cloud=cloud.connect)
    with pytest.raises(AirflowRescheduleException):
        run.execute(task)
    cloud.jobs.end(cloud.jobs.newest)
    assert run.execute(task) == {"job": cloud.jobs.newest, "state": "JOB_STATE_SUCCEEDED", "seconds": None}


def test_a_job_request_and_a_raw_job_exclude_each_other() -> None:
    """One of the two."""
    with pytest.raises(ValueError, match="custom_job"):
        VertexJobOperator(task_id="train")


def test_links_are_pushed_while_the_job_runs(cloud, make_run) -> None:
    """A person can open job and logs before the task ends."""
    run = make_run()
    with pytest.raises(AirflowRescheduleException):
        run.execute(make_task(cloud))
    assert run.xcoms["train", "link_job"].endswith("/training/1?project=local-project")
    assert "job_id%3D%221%22" in run.xcoms["train", "link_job_logs"]


def test_a_link_that_was_not_pushed_is_empty(cloud, make_run) -> None:
    """Airflow asks every link at the end of a wake; a reused result has no job to link to."""
    cloud.artifacts.objects[STORED_URI] = RESULT
    task = make_task(cloud)
    make_run().execute(task)
    assert [link.get_link(task, ti_key=None) for link in task.operator_extra_links] == ["", ""]
