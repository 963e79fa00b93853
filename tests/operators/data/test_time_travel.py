"""A run that reads its tables as they were: as far back as BigQuery knows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.operators.data.test_hash_split import SPEC
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.data_tasks import DataRun

START = datetime(2013, 11, 20, 3, tzinfo=UTC)


@pytest.fixture
def night(make_run, include: Path) -> DataRun:
    """A run with time travel."""
    spec = SPEC.replace("  key: id\n", "  key: id\n  time_travel: true\n")
    run = make_run(dag_id="retrain__travelled", run_after=START)
    made = DataRun(include, "travelled", run, spec, cloud=FakeCloud().connect)
    made.write("SELECT id, size, odd FROM shop.rows FOR SYSTEM_TIME AS OF @as_of")
    return made


def test_a_time_that_bigquery_has_forgotten_is_refused_by_plan(night) -> None:
    """Before a statement runs."""
    with refuses(AirflowFailException, where="time_travel", found=("2013-11-12", "8 days"), expected="7 days"):
        night.plan(as_of="2013-11-12T03:00:00Z")
    assert night.plan(as_of="2013-11-13T03:00:00Z")["as_of"].startswith("2013-11-13")
