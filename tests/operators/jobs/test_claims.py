"""Exactly one job is paid for: killed anywhere, two processes at once, creates that come late, lists that lag."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from google.api_core.exceptions import ServiceUnavailable

from retraining.core.jobs.claims import SETTLED_AFTER
from retraining.core.jobs.job import JobType
from retraining.core.naming import storage
from retraining.operators.jobs.claims import cancel_all
from tests.support.fakes.clock import START
from tests.support.scenes.job_stage import Held, Killed, Process, World, announcements, kill_at

PREEMPTED = ("JOB_STATE_FAILED", 14, "The replica workerpool0-0 was preempted.")


def fresh(type_: JobType = JobType.CUSTOM) -> World:
    """Nothing has happened yet."""
    return World(type_=type_)


def after_a_lost_job() -> World:
    """The first job was preempted; the next wake makes another."""
    world = World()
    world.wake()
    world.jobs.end(world.jobs.newest, *PREEMPTED, seconds=0)
    world.at(60)
    return world


def kills(make: Callable[[], World]) -> Iterator[World]:
    """The worlds after a wake that was killed, at each of its calls, before and after it."""
    for number in range(len(announcements(make().wake))):
        world = make()
        with pytest.raises(Killed):
            world.wake(kill_at(number))
        yield world


@pytest.mark.parametrize("type_", list(JobType))
def test_killed_anywhere_one_job_is_made(type_) -> None:
    """Before and after every call of the wake that creates it."""
    worlds = list(kills(lambda: fresh(type_)))
    assert len(worlds) > 15
    for world in worlds:
        assert world.until_done(try_number=2)["job"] == world.jobs.newest
        assert len(world.jobs.jobs) == 1


def test_killed_anywhere_one_job_follows_a_lost_one() -> None:
    """The claim is taken anew for each job of a generation."""
    for world in kills(after_a_lost_job):
        assert world.until_done(try_number=2)["job"] == world.jobs.newest
        assert len(world.jobs.jobs) == 2


@pytest.mark.parametrize("make", [fresh, after_a_lost_job])
def test_a_call_that_fails_or_whose_answer_is_lost_makes_no_second_job(make) -> None:
    """503 before and after the work of every call of the wake: `poke` leaves the rest to the next wake."""
    for number in range(len(announcements(make().wake))):
        world = make()
        before = len(world.jobs.jobs)
        with contextlib.suppress(ServiceUnavailable):
            world.wake(kill_at(number, ServiceUnavailable))
        assert world.until_done()["job"] == world.jobs.newest
        assert len(world.jobs.jobs) == before + 1


@pytest.mark.parametrize("lag_s", [30, 240, 290, 700])
def test_killed_anywhere_while_lists_lag_one_job_is_paid(lag_s) -> None:
    """Up to the time that a create is given to settle there is one job; later the oldest stays."""
    for world in kills(fresh):
        world.jobs.lag = timedelta(seconds=lag_s)
        result = world.until_done(try_number=2)
        assert [job.name for job in world.jobs.kept] == [result["job"]]
        assert result["job"] == min(world.jobs.jobs.values(), key=lambda job: str(job.created)).name
        assert len(world.jobs.jobs) == 1 or lag_s >= SETTLED_AFTER.total_seconds()


def test_a_job_that_no_list_shows_is_known_by_its_claim() -> None:
    """Created and answered: later wakes ask for it by name."""
    world = fresh()
    world.jobs.lag = timedelta(hours=9)
    assert world.until_done()["job"] == world.jobs.newest
    assert len(world.jobs.jobs) == 1


@pytest.mark.parametrize("lands_after_s", [0, 61, 90, 200, 299])
@pytest.mark.parametrize("lag_s", [0, 30])
def test_a_create_that_lands_after_its_deadline_is_not_repeated(lands_after_s, lag_s) -> None:
    """The caller gave up after 60 s; the server went on."""
    world = fresh()
    world.jobs.lag = timedelta(seconds=lag_s if lands_after_s < 200 else 0)
    world.jobs.landings = iter([timedelta(seconds=lands_after_s)])
    assert world.until_done()["job"] == world.jobs.newest
    assert len(world.jobs.jobs) == 1


@pytest.mark.parametrize("lands_after_s", [301, 400, 1000])
def test_of_two_jobs_the_oldest_stays(lands_after_s) -> None:
    """Later than anybody waits for: the job that came late is cancelled at the next wake."""
    world = fresh()
    world.jobs.landings = iter([timedelta(seconds=lands_after_s)])
    result = world.until_done()
    world.at(2000)
    world.wake()
    assert len(world.jobs.jobs) == 2
    assert [job.name for job in world.jobs.kept] == [result["job"]]


@pytest.mark.parametrize("lands_after_s", [200, 280])
def test_a_job_that_lands_during_a_look_is_not_made_again(lands_after_s) -> None:
    """Jobs were listed before it came, and the clock was read when nothing of the create was expected any more."""
    calls = 0
    while True:
        world = fresh()
        world.jobs.landings = iter([timedelta(seconds=lands_after_s)])
        world.wake()
        world.at(120)
        heard = itertools.count()

        def sleep(_: str, heard: itertools.count = heard, calls: int = calls, world: World = world) -> None:
            if next(heard) == calls:
                world.at(SETTLED_AFTER.total_seconds() + 1)

        world.wake(sleep, try_number=2)
        world.until_done(try_number=2)
        assert len(world.jobs.jobs) == 1, calls
        if next(heard) <= calls:
            break
        calls += 1
    assert calls >= 4


def test_a_run_that_ends_waits_for_a_job_that_lands_during_its_look() -> None:
    """The list of the teardown is older than the job; the clock that is read afterwards was taken for the list's."""
    world = fresh()
    world.jobs.landings = iter([timedelta(seconds=280)])
    world.wake()
    world.at(200)

    def sleep(what: str) -> None:
        if what == "find_jobs!":
            world.at(SETTLED_AFTER.total_seconds() + 1)

    process = Process(world, sleep)
    left, certain, _ = cancel_all(process, "run", [JobType.CUSTOM])
    assert (left, certain) == ([], False)
    left, certain, _ = cancel_all(world, "run", [JobType.CUSTOM])
    assert (len(left), certain) == (1, True)


def test_a_claim_that_was_slept_over_creates_nothing() -> None:
    """A process that stood still between claim and create would come after another one's create."""
    world = fresh()

    def sleep(what: str) -> None:
        if what == "write_if!":
            world.at(100)

    assert world.wake(sleep) is None
    assert not world.jobs.jobs
    world.until_done(try_number=2)
    assert len(world.jobs.jobs) == 1


def two(first: Callable[..., Any], second: Callable[..., Any], switch: tuple[int, int]) -> None:
    """Two processes: the first does some calls, the second some, the first the rest, the second the rest."""
    processes = [Held(first), Held(second)]
    for process, calls in zip(processes, switch, strict=True):
        process.advance(calls)
    for process in processes:
        process.advance()


def switches(wake: Callable[..., Any]) -> Iterator[tuple[int, ...]]:
    """All places where the two may be switched."""
    calls = sum(not what.endswith("!") for what in announcements(wake))
    return itertools.product(range(calls + 1), repeat=2)


@pytest.mark.parametrize("lag_s", [0, 240])
@pytest.mark.parametrize("make", [fresh, after_a_lost_job])
def test_two_processes_of_a_task_make_one_job(make, lag_s) -> None:
    """A lost heartbeat: the old process goes on while the next try runs. Switched at every call."""
    for switch in switches(make().wake):
        world = make()
        before = len(world.jobs.jobs)
        world.jobs.lag = timedelta(seconds=lag_s)
        two(world.wake, lambda around, world=world: world.wake(around, try_number=2), switch)
        assert world.until_done(try_number=2)["job"] == world.jobs.newest
        assert len(world.jobs.jobs) == before + 1, switch


def test_an_older_generation_that_still_runs_ends_no_newer_job() -> None:
    """Cleared while its process goes on: what the newer one made stays, what the older one makes is cancelled."""
    for switch in switches(fresh().wake):
        world = fresh()
        two(world.wake, lambda around, world=world: world.wake(around, generation=4), switch)
        result = world.until_done(generation=4)
        newer = [job.name for job in world.jobs.jobs.values() if job.labels["retraining-key"] == "key-4"]
        assert newer == [result["job"]], switch
        assert [job.name for job in world.jobs.kept] == newer, switch


def test_twins_of_an_earlier_release_are_told_apart_at_every_wake() -> None:
    """No claim stands: the oldest stays. The cancelled one is no failure, also where it was the one waited for."""
    world = fresh()
    world.wake()
    first = world.jobs.newest
    world.at(1)
    world.jobs.create(world.jobs.specs[0])
    world.artifacts.objects.clear()
    world.at(60)
    assert world.wake() is None
    assert [job.name for job in world.jobs.kept] == [first]
    world.at(120)
    world.jobs.create(world.jobs.specs[0])
    assert world.until_done()["job"] == first
    assert [job.name for job in world.jobs.kept] == [first]


def test_a_job_that_is_waited_for_and_cancelled_as_the_younger_one_is_no_failure() -> None:
    """The list showed the older one late: the next wake waits for that one, and makes no third."""
    world = fresh()
    world.jobs.lag = timedelta(seconds=400)
    with pytest.raises(Killed):
        world.wake(kill_at(announcements(fresh().wake).index("create!")))
    older = world.jobs.newest
    world.at(301)
    world.wake()
    younger = world.jobs.newest
    assert younger != older
    world.at(401)
    world.wake()
    assert world.jobs.cancelled == [younger]
    assert world.until_done()["job"] == older
    assert len(world.jobs.jobs) == 2


@pytest.mark.parametrize("ahead_h", [1, 6])
@pytest.mark.parametrize("died", [True, False], ids=["died", "landed"])
def test_a_clock_that_is_ahead_holds_nothing_for_longer(ahead_h: float, died: bool) -> None:
    """Its process was killed around its create: another one's wake waits as for any claim, and no job is paid twice."""
    where = "create" if died else "create!"
    world = fresh()
    world.at(ahead_h * 3600)
    with pytest.raises(Killed):
        world.wake(kill_at(announcements(fresh().wake).index(where)))
    for name, job in world.jobs.jobs.items():  # the service's clock is right
        world.jobs.jobs[name] = dataclasses.replace(job, created=START)
    world.at(60)
    assert world.wake(try_number=2) is None or not died
    world.at(60 + SETTLED_AFTER.total_seconds())
    world.wake(try_number=2)
    assert len(world.jobs.jobs) == 1


def test_a_claim_that_cannot_be_read_keeps_no_job_from_being_cancelled() -> None:
    """It is named; all that a list or another claim shows is ended."""
    world = fresh()
    world.wake()
    label = {"retraining-dag-run": "run"}
    bad = f"{storage.claims_uri(world.settings.bucket, 'run')}/bad.json"
    world.artifacts.objects[bad] = b"{"
    assert world.jobs.find_jobs(label)
    left, certain, unreadable = cancel_all(world, "run", [JobType.CUSTOM])
    assert left == world.jobs.cancelled == [world.jobs.newest]
    assert certain
    assert [error.where for error in unreadable] == [bad]
