"""A region's quota before anything is paid: a run, or a scoring, one of whose jobs would never find room is refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from retraining.core.errors import QuotaError
from retraining.core.spec.quotas import load_quotas
from retraining.operators.planning import possible_runs
from tests.support.airflow_release import AirflowFailException
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.planned_run import FORM, plan, stored_plan

AT = datetime(2013, 11, 20, 3, tzinfo=UTC)


@pytest.fixture
def write_quotas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the file of the quotas."""

    def write(text: str) -> None:
        (tmp_path / "quotas.yaml").write_text(text)
        monkeypatch.setattr(possible_runs, "load_quotas", lambda _: load_quotas(tmp_path))

    return write


def test_a_run_that_would_wait_for_ever_is_refused_by_its_plan_and_passes_once_there_is_enough(
    make_run, write_quotas
) -> None:
    """Nothing of it is stored; another region's quota does not matter."""
    cloud = FakeCloud()
    run = make_run(run_id="manual__20", run_type="manual", run_after=AT, logical_date=AT, params=FORM)
    write_quotas("regions: {us-central1: {machines: 0}, europe-west4: {jobs: 0}}\n")
    with refuses(AirflowFailException, found="the job export of flight_delays needs 1 machines of 0") as failed:
        plan(cloud, run)
    assert isinstance(getattr(failed.value, "error", None), QuotaError)
    assert not [uri for uri in cloud.artifacts.objects if uri.endswith("/plan.json")]
    write_quotas("regions: {us-central1: {machines: 100}, europe-west4: {jobs: 0}}\n")
    assert stored_plan(cloud, plan(cloud, run)).model == "flight_delays"
