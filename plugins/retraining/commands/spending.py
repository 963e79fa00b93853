"""The command `spending`: what each model's runs and scorings of a month cost, and where the month's budgets stand."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

from retraining.commands.shell import Shell, print_answer
from retraining.core.documents.spending import Spending
from retraining.core.errors import PlanError
from retraining.core.naming import storage
from retraining.core.planning.spending import month_of, sum_up
from retraining.core.report import terminal
from retraining.core.spec.budgets import Budget, Budgets, load_budgets

_SUMS = ("spent", "under way", "budget")


@click.command("spending")
@click.option("--month", help="UTC month such as 2026-11; left out: this one.")
@click.pass_obj
def show_spending(shell: Shell, month: str | None) -> None:
    """Show what each model cost in a month.

    List prices of runs and scorings that began in it, and the budgets of include/budgets.yaml.
    """
    cloud = shell.connect()
    month = month or month_of(cloud.clock.now())
    if not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month):
        raise PlanError("--month", repr(month), "a UTC month", "For example --month 2026-11")
    bucket = cloud.settings.bucket
    uris = cloud.artifacts.list_uris(storage.spendings_uri(bucket, month), suffix=f"/{Spending.kind_name()}.json")
    spendings = [Spending.parse(data, uri) for uri, data in cloud.artifacts.read_some(uris).items()]
    budgets = load_budgets(shell.find_include()) or Budgets()
    sums = [*terminal.table(_models(budgets, spendings)), "", *terminal.table(_together(budgets, spendings))]
    print_answer(sums if spendings else [f"no run and no scoring began in {month}"])


def _models(budgets: Budgets, spendings: Sequence[Spending]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("model", "owner", "runs", *_SUMS)]
    for each in sorted(spendings, key=lambda spending: spending.model):
        usd = budgets.models.get(each.model, budgets.each_model)
        sums = _sums(usd, Budget(usd=usd or 1.0, model=each.model), spendings)
        rows.append((each.model, each.owner, str(len(each.spent)), *sums))
    return rows


def _together(budgets: Budgets, spendings: Sequence[Spending]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("together", *_SUMS)]
    for owner in sorted({each.owner for each in spendings}):
        usd = budgets.teams.get(owner)
        rows.append((f"team {owner}", *_sums(usd, Budget(usd=usd or 1.0, owner=owner), spendings)))
    rows.append(("all models", *_sums(budgets.total, Budget(usd=budgets.total or 1.0), spendings)))
    return rows


def _sums(usd: float | None, budget: Budget, spendings: Sequence[Spending]) -> tuple[str, str, str]:
    found = sum_up(budget, spendings)
    at_least = "at least " if found.unknown else ""
    return f"{at_least}{found.spent:.2f}", f"{found.reserved:.2f}", "-" if usd is None else f"{usd:.2f}"
