"""Whether a run fits into the month's budgets, by what the month's runs cost so far and what those under way may.

In: the budgets of `include/budgets.yaml`, the models' `Spending` of the month, the run's plan. Out: where the budgets
stand with this run, as sentences; or a refusal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import fmean

from retraining.core.documents.plan import Plan
from retraining.core.documents.spending import Spending, Spent
from retraining.core.errors import BudgetError
from retraining.core.spec.budgets import FILE, Budget, Budgets
from retraining.core.spec.model import ModelSpec


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where a budget stands.

    Attributes:
        budget: Which.
        spent: By runs and scorings that ended.
        reserved: Expected of runs that began before this one and have not ended.
        needed: Expected of this one.
        unknown: How many of them have a part without a list price.
    """

    budget: Budget
    spent: float
    reserved: float
    needed: float
    unknown: int

    @property
    def share(self) -> float:
        """Of the budget, with this run."""
        return (self.spent + self.reserved + self.needed) / self.budget.usd

    @property
    def is_over(self) -> bool:
        """Whether this run would go over it."""
        return self.share > 1

    def explain(self) -> str:
        """Return the sums in words."""
        at_least = "at least " if self.unknown else ""
        under_way = f", {self.reserved:.2f} expected of runs under way" if self.reserved else ""
        own = f", {self.needed:.2f} expected of this one" if self.needed else ""
        return f"{at_least}{self.spent:.2f} spent{under_way}{own}, of {self.budget.usd:.2f} USD"


def month_of(moment: datetime) -> str:
    """Return the month, in the zone of the time, as `2026-11`."""
    return f"{moment:%Y-%m}"


def month_before(moment: datetime) -> str:
    """Return the month before that of a time."""
    return month_of(moment.replace(day=1) - timedelta(days=1))


def expected_usd(plan: Plan, earlier: Iterable[Spending]) -> float | None:
    """Return what a run may cost: the mean of the model's runs that ended, of the first one its upper bound.

    Args:
        plan: Of the run.
        earlier: What the model spent, in this month and before.
    """
    known = [
        each.usd
        for spending in earlier
        for key, each in spending.spent.items()
        if each.work == "run" and key != plan.run_key and each.ended and each.usd is not None
    ]
    if known:
        return fmean(known)
    return plan.estimate_usd.at_most if plan.estimate_usd else None


def standing(
    budgets: Budgets, spec: ModelSpec, key: str, spendings: Sequence[Spending], needed: float | None
) -> tuple[Standing, ...]:
    """Return where the budgets of a model stand; its own first.

    Of runs under way those count that began before this one, so that of many at once the first ones pass.

    Args:
        budgets: Of the file.
        spec: The model.
        key: Of the run; it is among what the model spent.
        spendings: Of the month, of all models.
        needed: What the run may cost; None: nobody knows.
    """
    own = next((each.spent[key] for each in spendings if each.model == spec.name and key in each.spent), None)
    return tuple(sum_up(budget, spendings, key, own, needed) for budget in budgets.of(spec))


def sum_up(
    budget: Budget,
    spendings: Iterable[Spending],
    key: str = "",
    own: Spent | None = None,
    needed: float | None = None,
) -> Standing:
    """Return where a budget stands: with a run that would begin, or (without `key`) with all that began.

    Args:
        budget: Whose.
        spendings: Of the month.
        key: Of the run.
        own: What is noted of the run.
        needed: What it may cost.
    """
    others = [
        (name, each)
        for spending in spendings
        if budget.model in ("", spending.model) and budget.owner in ("", spending.owner)
        for name, each in spending.spent.items()
        if name != key
    ]
    place = (own.begun, key) if own else None
    ended = [each for _, each in others if each.ended]
    before = [each for name, each in others if not each.ended and (place is None or (each.begun, name) < place)]
    return Standing(
        budget=budget,
        spent=sum(each.usd or 0.0 for each in ended),
        reserved=sum(each.usd or 0.0 for each in before),
        needed=needed or 0.0,
        unknown=sum(each.usd is None or each.partial for each in (*ended, *before)),
    )


def require_within(
    budgets: Budgets, model: str, stands: Sequence[Standing], needed: float | None, month: str
) -> list[str]:
    """Return what is to be said of the budgets: a line for each that is nearly spent, or over and only warned of.

    Args:
        budgets: Of the file.
        model: Whose run it is.
        stands: Of its budgets.
        needed: What the run may cost; None: nobody knows.
        month: Of the budgets.

    Raises:
        BudgetError: The run would go over one, or nobody knows what it costs.
    """
    where, pays = f"{model}, {FILE}", "trigger the run with the Param over_budget"
    if stands and needed is None and budgets.over == "refuse":
        raise BudgetError(
            where,
            "price unknown: no list price for all of its machines in this region, and no earlier run to go by",
            f"a price, to hold against {stands[0].budget.name}",
            f"Add a newer file with it to include/prices, or {pays}",
        )
    for each in stands:
        if each.is_over and budgets.over == "refuse":
            raise BudgetError(
                where,
                f"{each.explain()} in {month}",
                f"no more than {each.budget.name}",
                f"Wait for the next month, raise the budget, or {pays}",
            )
    return [
        f"{'over ' if each.is_over else ''}{each.budget.name}, {month}: {each.explain()} ({each.share:.0%})"
        for each in stands
        if each.share > budgets.warn_at
    ]
