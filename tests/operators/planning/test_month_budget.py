"""A month's budgets before anything is paid: what a run may cost is noted, refused, and corrected at its end."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents import ScoringResult, Spending, Spent, TaskTiming, Timings
from retraining.core.naming import storage
from retraining.core.spec.budgets import load_budgets
from retraining.operators.planning import run_plan
from retraining.operators.record.spending import note_run, note_scoring, own_budget
from tests.support.airflow_release import AirflowFailException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.refusals import refuses
from tests.support.scenes.planned_run import FORM, SPEC, plan, stored_plan

NOW, MODEL = datetime(2026, 1, 31, 22, tzinfo=UTC), "flight_delays"
OTHER = "20260105t030000z-0a1b2c3d4e5f"


@pytest.fixture
def cloud() -> FakeCloud:
    """Two hours before the month ends."""
    cloud = FakeCloud()
    cloud.clock.time = NOW
    return cloud


@pytest.fixture
def write_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes the file of the budgets."""

    def write(text: str) -> Any:
        (tmp_path / "budgets.yaml").write_text(text)
        monkeypatch.setattr(run_plan, "load_budgets", lambda _: load_budgets(tmp_path))
        return load_budgets(tmp_path)

    return write


def start(cloud: FakeCloud, make_run: Any, day: int = 20, **form: Any) -> Any:
    at = datetime(2013, 11, day, 3, tzinfo=UTC)
    run = make_run(run_id=f"manual__{day}", run_type="manual", run_after=at, logical_date=at, params=FORM | form)
    return stored_plan(cloud, plan(cloud, run))


def spent(cloud: FakeCloud, month: str = "2026-01", model: str = MODEL) -> dict[str, Spent]:
    stored = cloud.artifacts.objects.get(storage.spending_uri(cloud.settings.bucket, month, model))
    return Spending.parse(stored).spent if stored else {}


def store(cloud: FakeCloud, usd: float, model: str = MODEL, owner: str = SPEC.owner) -> None:
    done = Spent(work="run", begun=NOW, usd=usd, ended=True)
    document = Spending(model=model, owner=owner, month="2026-01", spent={OTHER: done})
    uri = storage.spending_uri(cloud.settings.bucket, "2026-01", model)
    cloud.artifacts.objects[uri] = document.to_bytes()


def test_a_run_is_noted_as_it_begins_and_corrected_at_its_end(cloud, make_run) -> None:
    """Also where the month changes meanwhile: it counts where it began; a report made again counts once."""
    planned = start(cloud, make_run)
    assert planned.estimate_usd is not None
    assert spent(cloud) == {
        planned.run_key: Spent(work="run", begun=NOW, usd=planned.estimate_usd.at_most, ended=False),
    }
    cloud.clock.time = NOW.replace(month=2, day=1)
    timings = Timings(
        model=MODEL,
        run_key=planned.run_key,
        prices_date=None,
        tasks=tuple(
            TaskTiming(task=task, seconds=60.0, reused=False, machine="n1-standard-4", estimated_usd=usd)
            for task, usd in (("export", 0.25), ("train", 0.5), ("evaluate", None))
        ),
    )
    for _ in range(2):
        note_run(cloud, planned, timings)
    assert spent(cloud) == {planned.run_key: Spent(work="run", begun=NOW, usd=0.75, ended=True, partial=True)}
    assert spent(cloud, "2026-02") == {}


def test_a_run_over_the_budget_is_refused_before_anything_is_paid(cloud, make_run, write_budgets) -> None:
    """Nothing of it stays, and over_budget lets it pass."""
    write_budgets(f"models: {{{MODEL}: 1.5}}\n")
    store(cloud, 1.0)
    with refuses(AirflowFailException, found="1.00 spent, 1.00 expected of this one, of 1.50 USD in 2026-01"):
        start(cloud, make_run)
    assert set(spent(cloud)) == {OTHER}
    assert not [uri for uri in cloud.artifacts.objects if uri.endswith("plan.json")]
    planned = start(cloud, make_run, over_budget=True)
    assert set(spent(cloud)) == {OTHER, planned.run_key}


def test_the_same_run_again_is_no_other_run(cloud, make_run, write_budgets) -> None:
    """A task that was killed after it was noted counts once."""
    write_budgets(f"models: {{{MODEL}: 2.0}}\n")
    store(cloud, 1.0)
    assert start(cloud, make_run).run_key == start(cloud, make_run).run_key
    with refuses(AirflowFailException, found="1.00 expected of runs under way"):
        start(cloud, make_run, day=21)


def test_other_models_count_in_their_teams_and_in_all(cloud, make_run, write_budgets) -> None:
    store(cloud, 1.0)
    store(cloud, 8.0, "parcels", "logistics")
    write_budgets(f"teams: {{{SPEC.owner}: 2.5}}\n")
    start(cloud, make_run)
    write_budgets("total: 10.5\n")
    with refuses(AirflowFailException, found="of 10.50 USD", expected="the month's budget of all models"):
        start(cloud, make_run, day=21)


def test_a_scoring_counts_and_says_nothing_of_what_a_run_costs(cloud, make_run, write_budgets) -> None:
    """It is noted again by a task that runs again, once; its team is that of the model's runs."""
    write_budgets(f"models: {{{MODEL}: 9.0}}\n")
    store(cloud, 1.0)
    scored = ScoringResult.parse((EXAMPLES / "scoring__day.json").read_text()).model_copy(
        update={"model": MODEL, "cost_usd": 7.5}
    )
    for _ in range(2):
        note_scoring(cloud, scored)
    assert sorted((each.work, each.usd) for each in spent(cloud).values()) == [("run", 1.0), ("scoring", 7.5)]
    with refuses(AirflowFailException, found="8.50 spent, 1.00 expected of this one, of 9.00 USD"):
        start(cloud, make_run)


def test_a_broken_object_of_another_model_stops_no_run(cloud, make_run, write_budgets, capsys) -> None:
    """It is left out of the sum, and the log says so; the page of its own model is made without a budget."""
    store(cloud, 1.0)
    uri = storage.spending_uri(cloud.settings.bucket, "2026-01", "parcels")
    cloud.artifacts.objects[uri] = b"{"
    write_budgets("total: 5\n")
    assert start(cloud, make_run).run_key in spent(cloud)
    said = capsys.readouterr().out
    assert "left out of the month's budgets" in said
    assert uri in said
    own = storage.spending_uri(cloud.settings.bucket, "2026-01", MODEL)
    cloud.artifacts.objects[own] = b"{"
    shown = own_budget(cloud, write_budgets(f"models: {{{MODEL}: 5}}\n"), SPEC)
    assert shown is not None
    assert shown.spent == 0


def test_a_new_month_begins_with_nothing(cloud, make_run, write_budgets) -> None:
    """What the last one's runs cost says what this one's will."""
    write_budgets(f"models: {{{MODEL}: 1.5}}\n")
    store(cloud, 1.0)
    cloud.clock.time = datetime(2026, 2, 1, tzinfo=UTC)
    planned = start(cloud, make_run)
    assert spent(cloud, "2026-02")[planned.run_key].usd == 1.0


def test_the_page_has_the_models_own_budget(cloud, write_budgets) -> None:
    """Not its team's; from warn_at on it warns."""
    store(cloud, 1.0)
    shown = own_budget(cloud, write_budgets(f"models: {{{MODEL}: 1.2}}\n"), SPEC)
    assert shown is not None
    assert (shown.month, shown.usd, shown.spent, shown.warned) == ("2026-01", 1.2, 1.0, True)
    assert own_budget(cloud, write_budgets("total: 5\n"), SPEC) is None
    assert own_budget(cloud, None, SPEC) is None


def test_a_broken_file_stops_before_anything_is_paid(cloud, make_run, write_budgets, monkeypatch) -> None:
    def load(_: Path) -> Any:
        return write_budgets("currency: EUR\n")

    monkeypatch.setattr(run_plan, "load_budgets", load)
    with refuses(AirflowFailException, where="budgets.yaml, line 1", found="currency"):
        start(cloud, make_run)
    assert not spent(cloud)
    assert not [uri for uri in cloud.artifacts.objects if uri.endswith("plan.json")]
