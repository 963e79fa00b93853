"""Jobs: found by their labels, looked at, cancelled; their lines, each read once."""

from __future__ import annotations

import pytest
from google.api_core.exceptions import NotFound

from retraining.core.jobs.job import JobType, machines_of
from retraining.hooks.logs import Cursor
from tests.support.scenes.port_stage import FOREVER, make_job, until


def test_a_job_is_found_by_all_of_its_labels(stage, cloud, unique) -> None:
    """Oldest first, while it works and after; nobody else's."""
    assert cloud.jobs.find_jobs({"owner": unique}) == []
    names = [cloud.jobs.create(make_job(owner=unique, key=key)).name for key in ("a", "b", "a")]
    assert [job.name for job in cloud.jobs.find_jobs({"owner": unique})] == names
    assert [job.name for job in cloud.jobs.find_jobs({"owner": unique, "key": "a"})] == [names[0], names[2]]
    assert cloud.jobs.find_jobs({"owner": unique, "key": "c"}) == []
    assert cloud.jobs.find_jobs({"owner": unique}, (JobType.TUNING,)) == []
    assert len(set(names)) == 3
    stage.say_and_end(cloud.jobs.get(names[0]))
    assert [job.name for job in cloud.jobs.find_jobs({"owner": unique})] == names


def test_two_equal_creates_make_two_jobs(cloud, unique) -> None:
    """The service has no request id: whoever creates looks before."""
    first, second = (cloud.jobs.create(make_job(FOREVER, owner=unique)) for _ in range(2))
    assert first.name != second.name
    for job in (first, second):
        cloud.jobs.cancel(job.name)


def test_a_new_job_is_active_and_says_what_was_asked(cloud, unique) -> None:
    """Its labels, with the environment's; its machines; its folder."""
    asked = make_job(FOREVER, owner=unique)
    asked["job_spec"]["scheduling"]["strategy"] = "SPOT"
    asked["job_spec"]["base_output_directory"] = {"output_uri_prefix": f"gs://{cloud.settings.bucket}/{unique}"}
    made = cloud.jobs.create(asked)
    assert made.active
    assert made.seconds is None
    assert made.labels == {"owner": unique, **cloud.environment.labels}
    seen = cloud.jobs.get(made.name)
    assert (seen.spot, seen.folder_uri, seen.error_code) == (True, f"gs://{cloud.settings.bucket}/{unique}", 0)
    assert seen.machines == machines_of(asked)
    assert sum(group.count for group in seen.machines) == 1
    assert cloud.jobs.find_by_name(made.name).labels == made.labels
    cloud.jobs.cancel(made.name)


def test_a_job_that_is_not_there(cloud, unique) -> None:
    """None where that is an answer, the service's NotFound where it is not; cancelling it changes nothing."""
    made = cloud.jobs.create(make_job(FOREVER, owner=unique))
    gone = f"{made.name}0"
    assert cloud.jobs.find_by_name(gone) is None
    with pytest.raises(NotFound):
        cloud.jobs.get(gone)
    with pytest.raises(NotFound):
        cloud.jobs.trials(gone.replace("customJobs", "hyperparameterTuningJobs"))
    cloud.jobs.cancel(gone)
    assert cloud.jobs.get(made.name).active
    cloud.jobs.cancel(made.name)


def test_a_cancelled_job_ends(cloud, unique) -> None:
    """By name; it is no success, and a second time changes nothing."""
    made = cloud.jobs.create(make_job(FOREVER, owner=unique))
    cloud.jobs.cancel(made.name)
    cloud.jobs.cancel(made.name)
    until(cloud, lambda: not cloud.jobs.get(made.name).active)
    assert cloud.jobs.get(made.name).state == "JOB_STATE_CANCELLED"


def test_a_job_that_has_ended_is_not_cancelled(stage, cloud, unique) -> None:
    """It stays a success, and how long it ran stays known."""
    ended = stage.say_and_end(cloud.jobs.create(make_job(owner=unique)))
    assert ended.seconds >= 0
    cloud.jobs.cancel(ended.name)
    assert cloud.jobs.get(ended.name) == ended
    assert ended.state == "JOB_STATE_SUCCEEDED"


def test_active_jobs_are_found_by_a_labels_name(stage, cloud, unique) -> None:
    """Whatever its value; those that ended are not."""
    running = cloud.jobs.create(make_job(FOREVER, **{unique: "a"}))
    stage.say_and_end(cloud.jobs.create(make_job(**{unique: "b"})))
    assert [job.name for job in cloud.jobs.find_active(unique)] == [running.name]
    assert cloud.jobs.find_active(unique, (JobType.TUNING,)) == []
    cloud.jobs.cancel(running.name)
    until(cloud, lambda: not cloud.jobs.find_active(unique))


def test_each_line_is_read_once(stage, cloud, unique) -> None:
    """In order of time; a cursor goes on where it was, also as text between two pokes."""
    made = cloud.jobs.create(make_job("print('one'); print('two')", owner=unique))
    stage.say_and_end(made, "one", "two")
    cursor = Cursor()
    lines = [line for line in cloud.logs.read_new(made.job_id, cursor) if line.task == "workerpool0-0"]
    assert [line.text for line in lines] == ["one", "two"]
    assert lines == sorted(lines, key=lambda line: line.time)
    assert cloud.logs.read_new(made.job_id, Cursor.from_json(cursor.to_json())) == []
    assert cloud.logs.read_new(f"{made.job_id}000", Cursor()) == []
