"""A paused model: no run of it begins before the day, whoever starts it; Force does."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.documents import Pause
from retraining.core.naming import storage
from retraining.operators.airflow.dag_run import reason_of_end
from retraining.operators.deployment.version_rollback import RollBackOperator
from tests.support.airflow_release import AirflowFailException, DownstreamTasksSkipped
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.planned_run import FORM, plan

FRIDAY = datetime(2013, 11, 22, 12, tzinfo=UTC)
MONDAY = datetime(2013, 11, 25, tzinfo=UTC)


def ask(cloud: FakeCloud, make_run: Any, *, number: int = 1, model: str = "flight_delays", **params: Any) -> Any:
    """The DAG `rollback`, triggered some seconds after Friday noon."""
    form = {"model": model, "to": "stay", "reason": "complaints", "pause_until": None, **params}
    asked = FRIDAY.replace(second=number)
    run = make_run(dag_id="rollback", run_id=f"manual__{number}", run_after=asked, params=form)
    return run.execute(RollBackOperator(task_id="roll_back", cloud=cloud.connect))


def start(cloud: FakeCloud, make_run: Any, at: datetime = FRIDAY, kind: str = "scheduled", **form: Any) -> Any:
    """The task `plan` of a run."""
    run = make_run(run_id=f"{kind}__{at:%d}", run_type=kind, run_after=at, logical_date=at, params=FORM | form)
    try:
        return run, plan(cloud, run)
    except DownstreamTasksSkipped as skipped:
        return run, skipped


@pytest.fixture
def paused(make_run: Any) -> FakeCloud:
    """Until Monday."""
    cloud = FakeCloud()
    assert ask(cloud, make_run, pause_until="2013-11-25")["words"] == "The champion stays."
    return cloud


@pytest.mark.parametrize("kind", ["scheduled", "manual", "asset_triggered", "backfill"])
def test_a_run_of_a_paused_model_does_nothing(paused, make_run, kind: str) -> None:
    """Nobody is asked for anything, no plan is written; the reason is there for the run's end."""
    stored = dict(paused.artifacts.objects)
    run, outcome = start(paused, make_run, kind=kind)
    assert isinstance(outcome, DownstreamTasksSkipped)
    reason = reason_of_end(run.context(RollBackOperator(task_id="conclude"))["ti"])
    assert "paused until 2013-11-25 00:00 UTC by ada because: complaints. Trigger with Force" in reason
    assert paused.artifacts.objects == stored
    assert not paused.warehouse.asked
    assert not paused.jobs.jobs


def test_force_retrains_all_the_same(paused, make_run) -> None:
    """As a new attempt."""
    _, outcome = start(paused, make_run, kind="manual", force=True)
    assert outcome["run_key"]


def test_the_pause_ends_by_itself(paused, make_run) -> None:
    """With the first run that starts on the day."""
    _, outcome = start(paused, make_run, MONDAY)
    assert outcome["run_key"]


def test_a_person_ends_it_before(paused, make_run) -> None:
    """With `stay` and no day; a poke of the older wish, which comes later, changes nothing."""
    ask(paused, make_run, number=2)
    ask(paused, make_run, number=1, pause_until="2013-11-25")
    _, outcome = start(paused, make_run)
    assert outcome["run_key"]


def test_another_model_is_not_paused(make_run) -> None:
    """One object per model."""
    cloud = FakeCloud()
    ask(cloud, make_run, model="digits", pause_until="2013-11-25")
    _, outcome = start(cloud, make_run)
    assert outcome["run_key"]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"pause_until": "2013-11-22"}, "Param pause_until: 2013-11-22, which has begun"),
        ({"pause_until": "2013-11-25", "model": "flight_delay"}, r"Did you mean 'flight_delays'\?"),
    ],
    ids=["a day that is over", "a model that nobody has"],
)
def test_a_pause_that_cannot_be_is_refused(make_run, params, words: str) -> None:
    """By name, and nothing is written."""
    cloud = FakeCloud()
    with pytest.raises(AirflowFailException, match=words):
        ask(cloud, make_run, **params)
    assert not any(uri.endswith("pause.json") for uri in cloud.artifacts.objects)


def test_a_way_back_that_is_refused_leaves_the_pause(make_run) -> None:
    """It is written first, so that no run begins while machines are waited for."""
    cloud = FakeCloud()
    with refuses(AirflowFailException, found="no version"):
        ask(cloud, make_run, to="previous", pause_until="2013-11-25")
    uri = storage.pause_uri(cloud.settings.bucket, "flight_delays")
    assert Pause.parse(cloud.artifacts.objects[uri]).until == MONDAY
