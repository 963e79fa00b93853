"""A month's budgets: what counts, whose it is, which of many runs pass, and what a refusal says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from retraining.core.documents.spending import Spending, Spent
from retraining.core.errors import BudgetError, SpecError
from retraining.core.planning.spending import expected_usd, month_before, month_of, require_within, standing
from retraining.core.spec.budgets import Budgets, load_budgets
from tests.support.refusals import refuses
from tests.support.small_model import make_plan, make_spec

MONTH, FIRST = "2013-11", datetime(2013, 11, 1, 3, tzinfo=UTC)
KEYS = [f"201311{day:02d}t030000z-0a1b2c3d4e5f" for day in range(1, 31)]


def spent(usd: float | None = 1.0, *, at: int = 0, **changes: Any) -> Spent:
    values = {"work": "run", "begun": FIRST + timedelta(seconds=at), "usd": usd, "ended": True, **changes}
    return Spent.model_validate(values)


def spending(model: str = "late", owner: str = "retraining", **each: Spent) -> Spending:
    found = {KEYS[int(name.removeprefix("run"))]: value for name, value in each.items()}
    return Spending(model=model, owner=owner, month=MONTH, spent=found)


def require(budgets: Budgets, *spendings: Spending, key: int = 9, needed: float | None = 1.0, **spec: Any) -> list[str]:
    the_spec = make_spec(**spec)
    stands = standing(budgets, the_spec, KEYS[key], spendings, needed)
    return require_within(budgets, the_spec.name, stands, needed, MONTH)


@pytest.mark.parametrize(
    ("limits", "passes"),
    [
        ({}, True),
        ({"models": {"late": 4.0}}, True),
        ({"models": {"late": 3.9}}, False),
        ({"each_model": 3.9}, False),
        ({"each_model": 3.9, "models": {"late": 50}}, True),
        ({"models": {"other": 0.1}}, True),
        ({"teams": {"retraining": 9.0}}, True),
        ({"teams": {"retraining": 8.9}}, False),
        ({"teams": {"payments": 0.1}}, True),
        ({"total": 16.0}, True),
        ({"total": 15.9}, False),
    ],
)
def test_a_run_is_held_to_its_own_its_teams_and_all_models_budget(limits: Any, passes: bool) -> None:
    """3 are spent by the model, 5 by another one of its team, 7 by another team's; the run needs 1."""
    spendings = (
        spending(run1=spent(2.0), run2=spent(1.0)),
        spending("other", run1=spent(5.0)),
        spending("third", "payments", run1=spent(7.0)),
    )
    budgets = Budgets.model_validate({"warn_at": 1.0, **limits})
    if passes:
        assert require(budgets, *spendings) == []
    else:
        with refuses(BudgetError, where="late, budgets.yaml", found="1.00 expected of this one", way_out="over_budget"):
            require(budgets, *spendings)


def test_of_many_runs_at_once_the_first_ones_pass() -> None:
    """Ten runs of a dollar, a budget of three and a half: three pass, whatever the order in which they look."""
    runs = {f"run{place}": spent(at=place % 4, ended=False) for place in range(10)}
    budgets, passed = Budgets(models={"late": 3.5}), []
    for place in range(10):
        try:
            require(budgets, spending(**runs), key=place)
            passed.append(place)
        except BudgetError:
            continue
    assert passed == [0, 4, 8]


def test_what_is_under_way_counts_and_is_named() -> None:
    found = spending(run1=spent(2.0), run2=spent(1.5, ended=False), run9=spent(1.0, at=60, ended=False))
    with refuses(
        BudgetError,
        found="2.00 spent, 1.50 expected of runs under way, 1.00 expected of this one, of 4.00 USD in 2013-11",
        expected="the month's budget of late",
        way_out="Wait for the next month",
    ):
        require(Budgets(models={"late": 4.0}), found)


def test_the_log_warns_before_the_end_and_goes_on_where_that_is_wanted() -> None:
    found = spending(run1=spent(2.5, partial=True))
    assert require(Budgets(models={"late": 4.0}), found) == [
        "the month's budget of late, 2013-11: at least 2.50 spent, 1.00 expected of this one, of 4.00 USD (88%)"
    ]
    assert require(Budgets(models={"late": 4.0}, warn_at=0.9), found) == []
    (over,) = require(Budgets(models={"late": 2.0}, over="warn"), found)
    assert over.startswith("over the month's budget of late, 2013-11: at least 2.50 spent")


def test_a_run_whose_price_nobody_knows_is_refused_where_there_is_a_budget() -> None:
    with refuses(BudgetError, found="price unknown", way_out="include/prices"):
        require(Budgets(total=100.0), needed=None)
    assert require(Budgets(total=100.0, over="warn"), needed=None) == []
    assert require(Budgets(), needed=None) == []


def test_a_run_is_expected_to_cost_what_the_models_runs_did() -> None:
    """Of those that ended and have a price, not of itself and not its scorings; the first one its upper bound."""
    plan = make_plan()
    own = Spending(model="late", owner="retraining", month=MONTH, spent={plan.run_key: spent(99.0)})
    earlier = spending(
        run1=spent(1.0),
        run2=spent(3.0),
        run3=spent(None),
        run4=spent(50.0, ended=False),
        run5=spent(0.01, work="scoring"),
    )
    assert expected_usd(plan, [own, earlier]) == 2.0
    assert expected_usd(plan, [own]) == (plan.estimate_usd.at_most if plan.estimate_usd else None)


@pytest.mark.parametrize("moment", [datetime(2013, 1, 31, 23, 59, 59, tzinfo=UTC), datetime(2013, 1, 1, tzinfo=UTC)])
def test_months_follow_each_other(moment: datetime) -> None:
    assert (month_before(moment), month_of(moment)) == ("2012-12", "2013-01")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("total: 0", "total"),
        ("total: 100 EUR", "total"),
        ("currency: EUR", "currency"),
        ("models: {late: -1}", "models.late"),
        ("over: maybe", "over"),
        ("totl: 5", "totl"),
        ("warn_at: 80", "warn_at"),
    ],
)
def test_a_wrong_file_is_refused_by_its_line(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "budgets.yaml").write_text(f"# what it may cost\n{text}\n")
    with refuses(SpecError, where="budgets.yaml, line 2", found=words):
        load_budgets(tmp_path)


def test_a_folder_without_the_file_has_no_budgets(tmp_path: Path) -> None:
    assert load_budgets(tmp_path) is None


def test_names_that_nothing_has_are_refused() -> None:
    with refuses(SpecError, where="budgets.yaml, models", found="'lat'", way_out="late"):
        Budgets(models={"lat": 1.0}).require_known({"late": "retraining"})
    with refuses(SpecError, where="budgets.yaml, teams", found="'retrainig'", way_out="retraining"):
        Budgets(teams={"retrainig": 1.0}).require_known({"late": "retraining"})
