"""A region's quota: never more runs than it says, whoever dies; nobody waits for ever, nothing leaks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from retraining.core.errors import QuotaError, SpecError
from retraining.core.jobs.claims import SETTLED_AFTER
from retraining.core.jobs.places import HEARD_WITHIN, Places
from retraining.core.naming import storage
from tests.support.refusals import refuses
from tests.support.scenes.job_stage import RUNS_FOR, Held, Killed, announcements, kill_at
from tests.support.scenes.night import Night, Task

URI = storage.places_uri("bucket", "us-central1")


@pytest.fixture
def make_night(tmp_path, monkeypatch) -> Any:
    """A region with a quota."""
    return lambda quota="{machines: 4}": Night(tmp_path, monkeypatch, quota)


def test_twenty_models_of_one_night_stay_within_four_machines(make_night) -> None:
    """All are done, and the quota is used: never more than four at once, and not much less."""
    night = make_night()
    night.add(*(Task(name=f"m{number}", machines=1 + number % 3) for number in range(20)))
    night.play(seed=1)
    assert night.most["machines"] == 4
    assert len(night.jobs.jobs) == 20
    assert night.clock.now() - min(task.asked for task in night.tasks.values()) < 20 * RUNS_FOR


def test_who_waits_wakes_seldom_and_machines_hardly_stand_idle(make_night) -> None:
    """Forty models for four machines: a night little longer than its jobs, at far fewer wakes than one a minute."""
    night = make_night("{machines: 4}")
    night.add(*(Task(name=f"m{number}") for number in range(40)))
    began = night.clock.now()
    wakes = night.play_by_sleeps()
    took = night.clock.now() - began
    assert night.most["machines"] == 4
    assert took < 10 * (RUNS_FOR + timedelta(minutes=3))
    waited = sum((task.began - began for task in night.tasks.values() if task.began), timedelta())
    assert wakes < waited / timedelta(minutes=2)


@pytest.mark.parametrize("seed", range(10))
def test_never_above_the_quota_whoever_dies_and_whatever_comes_between(make_night, seed) -> None:
    """Wakes are killed at any call, others happen between their calls, lists lag, creates land late."""
    night = make_night("{machines: 3, jobs: 2}")
    night.jobs.lag = timedelta(seconds=(0, 30, 150)[seed % 3])
    late = timedelta(seconds=90 if night.jobs.lag else 230)
    night.jobs.landings = iter([None, timedelta(seconds=80), late][: seed % 4])
    night.add(*(Task(name=f"m{number}", machines=1 + number % 3) for number in range(5)))
    night.play(seed, kills=0.3, nested=0.5)
    assert night.most["machines"] <= 3
    assert night.most["jobs"] <= 2


def test_two_never_take_the_last_place(make_night) -> None:
    """The other's whole wake between any two calls of the first one's."""
    steps = len(announcements(lambda around: make_night("{jobs: 1}").poke(Task(name="a"), around)))
    assert steps > 20
    for step in range(steps):
        night = make_night("{jobs: 1}")
        first, second = Task(name="a"), Task(name="b")
        night.add(first, second)
        held = Held(lambda around, night=night, first=first: night.poke(first, around))
        held.advance(step // 2)
        night.poke(second)
        held.advance()
        assert len(night.jobs.jobs) <= 1, step
        night.play(seed=step)
        assert night.most["jobs"] == 1
        assert len(night.jobs.jobs) == 2


def test_the_place_of_whoever_died_anywhere_comes_free_by_itself(make_night) -> None:
    """Killed at each call, and never woken again: the other's job is made within the time in which one may land."""
    steps = len(announcements(lambda around: make_night("{jobs: 1}").poke(Task(name="a"), around)))
    for step in range(steps):
        night = make_night("{jobs: 1}")
        dead, other = Task(name="a"), Task(name="b")
        night.add(dead, other)
        with pytest.raises(Killed):
            night.poke(dead, kill_at(step))
        gone = night.clock.now()
        del night.tasks["a"]
        night.play(seed=step)
        made = max(job.created for job in night.jobs.jobs.values()) - gone
        assert made <= max(SETTLED_AFTER, RUNS_FOR) + timedelta(minutes=3), step
        assert night.most["jobs"] == 1


def test_a_held_up_look_counts_what_landed_meanwhile(make_night) -> None:
    """Between the list and the answer a create landed and its time ran out: it is counted all the same."""
    night = make_night("{jobs: 1}")
    first, second = Task(name="a"), Task(name="b")
    night.add(first, second)
    lands = SETTLED_AFTER - timedelta(seconds=10)
    night.jobs.landings = iter([lands])
    night.poke(first)
    night.clock.time += lands - timedelta(seconds=5)

    def hold(what: str) -> None:
        if what == "find_active!":  # the list is read, the job is not in it yet
            night.clock.time += timedelta(seconds=20)

    night.poke(second, hold)
    night.look()
    assert len(night.jobs.jobs) == 1


def test_a_large_job_is_not_overtaken_for_ever_by_small_ones(make_night) -> None:
    """Small ones come all night; the one of four machines begins once those before it have ended."""
    night = make_night()
    night.add(*(Task(name=f"early{number}") for number in range(4)))
    for task in night.tasks.values():
        night.poke(task)
    large = Task(name="large", machines=4)
    night.add(large)
    night.poke(large)
    for number in range(20):
        night.clock.time += timedelta(seconds=60)
        night.add(Task(name=f"late{number}"))
        for task in [each for each in night.tasks.values() if not each.done]:
            night.poke(task)
    assert large.began
    assert large.began - large.asked <= RUNS_FOR + timedelta(minutes=3)
    assert night.most["machines"] == 4


def order_of(night: Night, *tasks: Task) -> list[str]:
    """Whose jobs were made, in their order, when all wait for the one place."""
    first = Task(name="first")
    night.add(first, *tasks)
    for task in (first, *tasks):
        night.poke(task)
    night.play(seed=3)
    began = {task.began: task.name for task in tasks if task.began}
    return [began[when] for when in sorted(began)]


def test_nightly_runs_go_before_backfills_and_walk_forwards(make_night) -> None:
    """Those that came at the same time; and a backfill that waited longer than the head start goes first."""
    waits = (
        Task(name="walk", dag_id="walk_forward__flight_delays"),
        Task(name="backfill", run_type="backfill"),
        Task(name="nightly"),
        Task(name="scoring", dag_id="score__flight_delays"),
    )
    assert set(order_of(make_night("{jobs: 1}"), *waits)[:2]) == {"nightly", "scoring"}


def test_a_backfill_that_waited_long_goes_before_a_run_that_has_just_come(make_night) -> None:
    """So that a region that is always full starves nobody."""
    night = make_night("{jobs: 1}")
    running, backfill = Task(name="running"), Task(name="backfill", run_type="backfill")
    night.add(running, backfill)
    number = 0
    while not backfill.began:
        if all(task.done or task.began for task in night.tasks.values() if task is not backfill):
            number += 1
            night.add(*(Task(name=f"nightly{number}-{copy}") for copy in range(2)))
        for task in [each for each in night.tasks.values() if not each.done]:
            night.poke(task)
        night.clock.time += timedelta(seconds=300)
        assert night.clock.now() - running.asked < timedelta(hours=12)
    assert backfill.began - backfill.asked > timedelta(hours=5)


def test_the_model_of_higher_priority_goes_first(make_night) -> None:
    """What the file says when it is asked, not when the run was planned."""
    night = make_night("{jobs: 1}")
    text = (night.include / "models" / "flight_delays.yaml").read_text()
    other = text.replace("name: flight_delays", "name: other\npriority: 9", 1)
    (night.include / "models" / "other.yaml").write_text(other)
    waits = (Task(name="usual"), Task(name="urgent", dag_id="retrain__other"))
    assert order_of(night, *waits) == ["urgent", "usual"]


def test_who_is_not_heard_of_holds_nobody_back_for_long(make_night) -> None:
    """Its run was ended by a person while it waited at the head."""
    night = make_night("{jobs: 1}")
    first, gone, last = Task(name="first"), Task(name="gone"), Task(name="last")
    night.add(first, gone, last)
    for task in (first, gone, last):
        night.poke(task)
    del night.tasks["gone"]
    night.play(seed=5)
    assert last.began - last.asked <= max(RUNS_FOR, HEARD_WITHIN) + timedelta(minutes=3)


def test_a_job_that_waited_too_long_fails_by_name(make_night) -> None:
    """Its place in the order goes with it."""
    night = make_night("{jobs: 1}")
    night.write_quota("{jobs: 1}", wait_hours=12)
    first, second = Task(name="first"), Task(name="second")
    night.add(first, second)
    night.poke(first)
    night.poke(second)
    for _ in range(12 * 15):
        night.clock.time += timedelta(seconds=240)
        for job in night.jobs.jobs.values():  # one that never ends
            night.jobs.jobs[job.name] = type(job)(**{**vars(job), "created": night.clock.now()})
        if night.clock.now() - second.asked < timedelta(hours=12):
            night.poke(second)
    words = "the job second of retrain__flight_delays waited 12 hours for room: 1 jobs, with 0 before it"
    with refuses(QuotaError, where="quotas.yaml, regions.us-central1", found=words, way_out="clear the task"):
        night.poke(second)
    places = Places.parse(night.artifacts.objects[URI], URI, night.clock.now())
    assert "key-second" not in places.entries


def test_a_job_larger_than_the_quota_is_refused_and_a_smaller_one_is_made(make_night) -> None:
    """Airflow would let it wait for ever."""
    night = make_night("{machines: 2, cpus: 0}")
    with refuses(QuotaError, found="the job big of retrain__flight_delays needs 3 machines of 2, 12 cpus of 0"):
        night.poke(Task(name="big", machines=3))
    assert not night.jobs.jobs
    night.write_quota("{machines: 3}")
    night.poke(Task(name="big", machines=3))
    assert len(night.jobs.jobs) == 1


def test_names_that_nothing_has_are_refused_before_a_job_is_made(make_night) -> None:
    """Also where a file came past `check-models`."""
    night = make_night("{accelerators: {NVIDIA_TESLA_T5: 1}}")
    with refuses(SpecError, way_out="Did you mean 'NVIDIA_TESLA_T4'?"):
        night.poke(Task(name="a"))
    assert not night.jobs.jobs


def test_without_the_file_or_for_another_region_nothing_is_asked_and_nothing_limited(make_night) -> None:
    """As it was before there were quotas."""
    night = make_night("{jobs: 1}")
    night.write(None)
    tasks = [Task(name=f"m{number}") for number in range(5)]
    for task in tasks[:2]:
        assert "find_active" not in announcements(lambda around, task=task: night.poke(task, around))
    night.write("regions: {europe-west4: {jobs: 1}}\n")
    for task in tasks[2:]:
        assert "find_active" not in announcements(lambda around, task=task: night.poke(task, around))
    assert len(night.jobs.jobs) == 5
    assert URI not in night.artifacts.objects


def test_what_cannot_be_read_is_begun_anew_once_no_job_of_it_can_land(make_night, caplog) -> None:
    """Nothing fails, nothing is lost: what runs is counted, who waits asks again."""
    night = make_night("{jobs: 2}")
    night.artifacts.objects[URI] = b"{broken"
    task = Task(name="a")
    night.add(task)
    night.poke(task)
    assert not night.jobs.jobs
    assert "is begun anew" in caplog.text
    night.play(seed=1)
    assert task.began - task.asked <= SETTLED_AFTER + timedelta(minutes=3)


def test_jobs_that_ran_before_there_was_a_quota_count(make_night) -> None:
    """They have no place; Vertex AI lists them."""
    night = make_night("{jobs: 1}")
    night.write(None)
    early, late = Task(name="early"), Task(name="late")
    night.add(early, late)
    night.poke(early)
    night.write_quota("{jobs: 1}")
    night.poke(late)
    assert len(night.jobs.jobs) == 1
    night.play(seed=2)
    assert night.most["jobs"] == 1


def test_a_pool_does_not_count_a_task_that_sleeps() -> None:
    """Why quotas are no pools of Airflow: of forty tasks that wait for their jobs it would count none."""
    from airflow.models.pool import Pool
    from airflow.utils.state import TaskInstanceState

    for with_deferred in (False, True):
        pool = Pool(pool="machines", slots=4, include_deferred=with_deferred)
        assert TaskInstanceState.RUNNING in pool.get_occupied_states()
        assert TaskInstanceState.UP_FOR_RESCHEDULE not in pool.get_occupied_states()
        assert TaskInstanceState.SCHEDULED not in pool.get_occupied_states()
