"""Where data ended (`data.days`, `RETRAINING_DATA_DAYS`) no clock starts a run, and backfills take its days."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from demo.system import DATA_DAYS

from .conftest import ROOT, copy_bundle, parse, write_spec


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


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The demonstration with models of one's own: of data that goes on, and that ended in another year."""
    bundle = copy_bundle(tmp_path_factory.mktemp("demonstration"))
    ended = ["1999-12-01", "2001-02-03"]
    write_spec(bundle, "goes_on")
    write_spec(bundle, "long_over", data__days=ended)
    write_spec(bundle, "unscheduled", data__days=ended, schedule=None)
    write_spec(bundle, "hourly", data__days=["1950-01-01", "2001-02-03"], schedule="0 * * * *")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETRAINING_INCLUDE", str(bundle / "dags" / "include"))
        patch.setenv("RETRAINING_DATA_DAYS", DATA_DAYS)
        yield parse(bundle / "dags")


def ticks_of(dag: Any, first: str, last: str) -> list[str]:
    from tests.support.airflow_release import DagSerialization

    scheduled = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    assert scheduled.timetable.periodic  # else Airflow refuses a backfill, HTTP 422
    ends = (datetime.fromisoformat(f"{day}T00:00Z") for day in (first, last))
    return [tick.logical_date.isoformat() for tick in scheduled.iter_dagrun_infos_between(*ends)]


def test_a_model_of_ones_own_keeps_its_clock_in_the_demonstration(demonstration) -> None:
    """2013 is of the flights, the departures and the digits alone."""
    from tests.support.airflow_release import DagSerialization, first_clock_run

    own = DagSerialization.from_dict(DagSerialization.to_dict(demonstration["retrain__goes_on"]))
    flights = DagSerialization.from_dict(DagSerialization.to_dict(demonstration["retrain__flight_delays"]))
    assert first_clock_run(own) is not None
    assert first_clock_run(flights) is None
    assert len(ticks_of(demonstration["retrain__flight_delays"], "2013-01-01", "2014-01-01")) == 365
    assert ticks_of(demonstration["retrain__goes_on"], "2024-05-01", "2024-05-03")[0] == "2024-05-01T03:00:00+00:00"


@pytest.mark.parametrize("model", ["long_over", "unscheduled"])
def test_a_backfill_of_ones_own_takes_its_own_days(demonstration, model: str) -> None:
    """By its own cron expression, or once a day; and no clock starts a run or a monitor."""
    from tests.support.airflow_release import DagSerialization, first_clock_run

    dag = demonstration[f"retrain__{model}"]
    ticks = ticks_of(dag, "1999-01-01", "2024-01-01")
    assert (ticks[0], ticks[-1]) == ("1999-12-01T03:00:00+00:00", "2001-02-03T03:00:00+00:00")
    for own in (dag, demonstration[f"monitor__{model}"], demonstration[f"score__{model}"]):
        assert first_clock_run(DagSerialization.from_dict(DagSerialization.to_dict(own))) is None


def test_of_many_ticks_the_newest_are_kept(demonstration) -> None:
    """Each is stored with the DAG, and half a century of hours would not be read in time."""
    ticks = ticks_of(demonstration["retrain__hourly"], "1900-01-01", "2024-01-01")
    assert (len(ticks), ticks[-1]) == (1000, "2001-02-03T23:00:00+00:00")
