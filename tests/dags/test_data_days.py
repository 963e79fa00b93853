"""Where data ended (`RETRAINING_DATA_DAYS`): no clock starts a run whatever ran before, and backfills take its days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from .conftest import ROOT, parse


@pytest.fixture(scope="module")
def dags_of_2013() -> Iterator[dict[str, Any]]:
    """Every DAG of the repository as the demonstration has it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETRAINING_DATA_DAYS", "2013-01-01/2013-12-31")
        yield parse(ROOT / "dags")


def test_no_clock_starts_a_run(dags_of_2013) -> None:
    """Neither at first nor after a run of a backfill, after which a plain schedule starts the newest past tick."""
    from airflow.timetables.base import DataInterval, TimeRestriction

    from tests.support.airflow_release import DagSerialization, first_clock_run

    backfilled = DataInterval.exact(datetime(2013, 11, 19, 3, tzinfo=UTC))
    for dag in dags_of_2013.values():
        scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
        assert first_clock_run(scheduled) is None
        after = scheduled.timetable.next_dagrun_info(
            last_automated_data_interval=backfilled, restriction=TimeRestriction(None, None, catchup=False)
        )
        assert after is None


def test_a_backfill_takes_the_ticks_of_those_days(dags_of_2013) -> None:
    """Both ends of the days included, each at the hour of the schedule."""
    from tests.support.airflow_release import DagSerialization

    flights = DagSerialization.from_dict(DagSerialization.to_dict(dags_of_2013["retrain__flight_delays"]))
    assert flights.timetable.periodic
    ticks = list(flights.iter_dagrun_infos_between(datetime(2013, 1, 1, tzinfo=UTC), datetime(2014, 2, 1, tzinfo=UTC)))
    assert len(ticks) == 365
    assert [tick.logical_date.isoformat() for tick in (ticks[0], ticks[-1])] == [
        "2013-01-01T03:00:00+00:00",
        "2013-12-31T03:00:00+00:00",
    ]
