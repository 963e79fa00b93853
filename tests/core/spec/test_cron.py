"""Schedules: what Airflow takes is taken, what it cannot schedule is refused. Airflow itself is asked."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest

from retraining.core.spec.section import PRESETS, check_cron

TAKEN = [
    "0 3 * * *",
    "*/5 0-6 1,15 jan-mar mon",
    "30 2 * * 7",
    "5-50/15 * * * *",
    "0 0 1 12 SUN",
    "0 0 ? * *",
    "0 3 * * mon#1",
    "0 3 L * *",
    "0 22-3 * * *",
    "@midnight",
    "0 0 29 2 *",
    *PRESETS,
]
REFUSED = [
    "0 3 * *",
    "60 3 * * *",
    "0 24 * * *",
    "0 0 0 * *",
    "0 0 * mai *",
    "*/0 * * * *",
    "0 0 30 2 *",
    "@nightly",
    "H * * * *",
    "",
    "* " * 200,
]


def scheduled_by_airflow(expression: str) -> bool:
    """Whether Airflow makes a timetable of it that has a next tick."""
    from airflow.timetables.base import TimeRestriction
    from airflow.timetables.trigger import CronTriggerTimetable
    from pendulum import datetime

    restriction = TimeRestriction(earliest=datetime(2000, 1, 1), latest=None, catchup=True)
    try:
        table = CronTriggerTimetable(expression, timezone="UTC", run_immediately=timedelta(0))
        table.validate()
        return table.next_dagrun_info(last_automated_data_interval=None, restriction=restriction) is not None
    except Exception:  # noqa: BLE001 - whatever it says, it does not schedule it
        return False


@pytest.mark.parametrize("expression", TAKEN)
def test_what_airflow_takes_is_taken(expression):
    assert scheduled_by_airflow(expression)
    assert check_cron(expression) == expression


@pytest.mark.parametrize("expression", REFUSED, ids=lambda value: value[:20])
def test_what_airflow_cannot_schedule_is_refused(expression):
    assert not scheduled_by_airflow(expression)
    with pytest.raises(ValueError, match=r"is no time that Airflow knows|characters; expected at most 200"):
        check_cron(expression)


def test_both_say_the_same_of_made_up_expressions():
    """Seeded: fields of bits that are right, wrong, or right elsewhere."""
    rng = random.Random(1)
    bits = [
        "*",
        "0",
        "5",
        "59",
        "60",
        "31",
        "*/7",
        "1-5",
        "5-1",
        "mon",
        "jan",
        "L",
        "?",
        "#2",
        "fri#5",
        "1,2",
        "-1",
        "x",
    ]
    for _ in range(150):
        expression = " ".join(rng.choice(bits) for _ in range(rng.choice([4, 5, 5, 5, 5, 6])))
        try:
            taken = check_cron(expression) == expression
        except ValueError:
            taken = False
        assert taken == scheduled_by_airflow(expression), expression
