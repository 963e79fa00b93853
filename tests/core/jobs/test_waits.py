"""How long a waiting task looks and sleeps, by the settings' defaults: a minute's sleep, ten seconds' watch."""

from __future__ import annotations

from datetime import timedelta

import pytest

from retraining.core.jobs import waits
from retraining.core.jobs.places import HEARD_WITHIN

WAKE_S, WATCH_S = 60, 10


@pytest.mark.parametrize(
    ("age_s", "sleeps_s"), [(-7200, 60), (0, 60), (600, 60), (1200, 120), (3000, 300), (3600, 300), (864_000, 300)]
)
def test_a_sleep_grows_with_the_jobs_age(age_s: int, sleeps_s: int) -> None:
    """Within one interval and five; a clock that is ahead or behind changes nothing."""
    assert waits.sleep_for(timedelta(seconds=age_s), WAKE_S) == sleeps_s


@pytest.mark.parametrize(
    ("age_s", "watch_s", "watched_s"),
    [(-60, 10, 10), (0, 10, 10), (99, 10, 10), (100, 10, 0), (9999, 10, 0), (900, 120, 120), (0, 0, 0)],
)
def test_a_young_job_is_watched(age_s: int, watch_s: int, watched_s: int) -> None:
    """It may end while one looks; at an older one there is a single look."""
    assert waits.watch_for(timedelta(seconds=age_s), watch_s) == watched_s


@pytest.mark.parametrize(("ahead", "sleeps_s"), [(0, 60), (1, 120), (4, 300), (99, 300)])
def test_who_is_next_asks_soonest(ahead: int, sleeps_s: int) -> None:
    assert waits.queue_for(ahead, WAKE_S) == sleeps_s


@pytest.mark.parametrize(("wake_s", "longest_s"), [(2, 10), (60, 300), (120, 300), (600, 600)])
def test_no_setting_makes_a_sleep_after_which_somebody_is_taken_for_gone(wake_s: int, longest_s: int) -> None:
    """Whoever waits for room and is not heard of has none set aside; ten minutes were a person's choice."""
    assert waits.sleep_for(timedelta(days=9), wake_s) == waits.queue_for(99, wake_s) == longest_s
    assert 2 * timedelta(seconds=waits.LONGEST_S) < HEARD_WITHIN


@pytest.mark.parametrize("hours", [1, 2, 8])
def test_a_job_hour_costs_few_seconds_of_a_worker(hours: int) -> None:
    """At four seconds to start a task's process: under the goal of 150, the end is seen at most a tenth late."""
    age, slot_s, start_s = 0.0, 0.0, 4.0
    while age < hours * 3600:
        watched = waits.watch_for(timedelta(seconds=age), WATCH_S)
        slot_s += start_s + watched
        late = watched + waits.sleep_for(timedelta(seconds=age + watched), WAKE_S)
        assert late <= max(WAKE_S + WATCH_S, 0.1 * (age + WATCH_S) + WATCH_S)
        age += late
    assert slot_s / hours < 150
