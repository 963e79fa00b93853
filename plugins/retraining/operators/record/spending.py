"""What runs and scorings cost, noted as they begin and end; and whether a run fits into the month's budgets.

A run's expected sum is noted before the others' are read, so that of two at once one at least sees the other.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import datetime

from retraining.core.documents import Plan, ScoringResult, Timings
from retraining.core.documents.overview import MonthBudget
from retraining.core.documents.spending import Spending, Spent, Work
from retraining.core.errors import BudgetError, ConflictError, ContractError
from retraining.core.naming import storage
from retraining.core.planning.spending import expected_usd, month_before, month_of, require_within, standing, sum_up
from retraining.core.report.timings import costs
from retraining.core.spec.budgets import Budgets
from retraining.core.spec.model import ModelSpec
from retraining.hooks.ports import CloudPort

LOGGER = logging.getLogger(__name__)
TRIES = 20
PAUSE_S = 0.2
Change = Callable[[Mapping[str, Spent]], Mapping[str, Spent]]


def require_month_budget(
    cloud: CloudPort,
    budgets: Budgets | None,
    spec: ModelSpec,
    plan: Plan,
    *,
    over_budget: bool,
    work: Work = "run",
) -> list[str]:
    """Note what a run may cost, and hold the month's budgets against it; return what is to be said of them.

    Args:
        cloud: The hooks.
        budgets: Of the file; None: there is none.
        spec: The model, as its file says.
        plan: Of the run.
        over_budget: Whether the run may go over.
        work: What it is.

    Raises:
        BudgetError: The run would go over a budget; what was noted of it is taken back.
    """
    now, bucket = cloud.clock.now().replace(microsecond=0), cloud.settings.bucket
    month, before = month_of(now), month_before(now)
    own = {each: storage.spending_uri(bucket, each, plan.model) for each in (month, before)}
    stored = cloud.artifacts.read_some(list(own.values()))
    needed = expected_usd(plan, [Spending.parse(data, uri) for uri, data in stored.items()])
    _change(cloud, month, spec.name, spec.owner, lambda spent: _begun(spent, plan.run_key, now, needed, work))
    if budgets is None or not (held := list(budgets.of(spec))):
        return []
    uris = (
        [own[month]]
        if all(each.model for each in held)
        else cloud.artifacts.list_uris(storage.spendings_uri(bucket, month), suffix=f"/{Spending.kind_name()}.json")
    )
    spendings, unreadable = _read(cloud, uris)
    stands = standing(budgets, spec, plan.run_key, spendings, needed)
    asked = budgets.model_copy(update={"over": "warn"}) if over_budget else budgets
    try:
        return [*unreadable, *require_within(asked, spec.name, stands, needed, month)]
    except BudgetError:
        _change(cloud, month, spec.name, spec.owner, lambda spent: _without(spent, plan.run_key))
        raise


def _read(cloud: CloudPort, uris: list[str]) -> tuple[list[Spending], list[str]]:
    """Return what can be read, and a sentence for each that cannot: one model's broken object stops no other's runs."""
    found, unreadable = [], []
    for uri, data in cloud.artifacts.read_some(uris).items():
        try:
            found.append(Spending.parse(data, uri))
        except ContractError as error:
            unreadable.append(f"left out of the month's budgets: {error}")
    return found, unreadable


def own_budget(cloud: CloudPort, budgets: Budgets | None, spec: ModelSpec) -> MonthBudget | None:
    """Return where a model's own budget stands; None: it has none."""
    held = next((each for each in budgets.of(spec) if each.model), None) if budgets else None
    if budgets is None or held is None:
        return None
    month = month_of(cloud.clock.now())
    spendings, unreadable = _read(cloud, [storage.spending_uri(cloud.settings.bucket, month, spec.name)])
    for message in unreadable:
        LOGGER.warning("%s", message)
    found = sum_up(held, spendings)
    return MonthBudget(
        month=month,
        usd=held.usd,
        spent=found.spent,
        reserved=found.reserved,
        unknown=found.unknown,
        warned=found.share > budgets.warn_at,
    )


def note_run(cloud: CloudPort, plan: Plan, timings: Timings, work: Work = "run") -> None:
    """Note what a run cost, whatever became of it."""
    paid = [task.estimated_usd for task in timings.tasks if costs(task)]
    known = [usd for usd in paid if usd is not None]
    usd = sum(known) if known or not paid else None
    _note(cloud, plan.model, plan.spec.owner, plan.run_key, (work, usd, len(known) < len(paid)))


def note_scoring(cloud: CloudPort, scoring: ScoringResult) -> None:
    """Note what a scoring cost; it counts for the team of the model's runs."""
    _note(cloud, scoring.model, None, scoring.run_key, ("scoring", scoring.cost_usd, scoring.cost_usd is None))


def _note(
    cloud: CloudPort,
    model: str,
    owner: str | None,
    key: str,
    cost: tuple[Work, float | None, bool],
) -> None:
    """Note what something cost (dollars, and whether a part has no price), in the month in which it began."""
    work, usd, partial = cost
    now = cloud.clock.now().replace(microsecond=0)
    uri = storage.spending_uri(cloud.settings.bucket, month_before(now), model)
    earlier = cloud.artifacts.read_object(uri)
    began = month_before(now) if earlier and key in Spending.parse(earlier, uri).spent else month_of(now)

    def end(spent: Mapping[str, Spent]) -> Mapping[str, Spent]:
        begun = spent[key].begun if key in spent else now
        return {**spent, key: Spent(work=work, begun=begun, usd=usd, ended=True, partial=partial)}

    _change(cloud, began, model, owner, end)


def _begun(
    spent: Mapping[str, Spent], key: str, now: datetime, needed: float | None, work: Work
) -> Mapping[str, Spent]:
    """Add a run under way; one that ended before, or began before, stays as it is."""
    return spent if key in spent else {**spent, key: Spent(work=work, begun=now, usd=needed, ended=False)}


def _without(spent: Mapping[str, Spent], key: str) -> Mapping[str, Spent]:
    """Take out a run that was refused; what it cost in an earlier attempt stays."""
    return {name: each for name, each in spent.items() if name != key or each.ended}


def _change(cloud: CloudPort, month: str, model: str, owner: str | None, change: Change) -> None:
    """Change what a model spent in a month.

    Raises:
        ConflictError: Others were faster each time.
    """
    uri = storage.spending_uri(cloud.settings.bucket, month, model)
    for tried in range(TRIES):
        stored, generation = cloud.artifacts.read_generation(uri)
        there = Spending.parse(stored, uri) if stored else None
        changed = dict(change(there.spent if there else {}))
        team = owner or (there.owner if there else ModelSpec.model_fields["owner"].default)
        written = Spending(model=model, owner=team, month=month, spent=changed)
        if written == there or (there is None and not changed):
            return
        if cloud.artifacts.write_if(uri, written.to_bytes(), generation) is not None:
            return
        cloud.clock.sleep(PAUSE_S * (1 + tried))
    raise ConflictError(uri, f"others wrote it {TRIES} times meanwhile", "that one of the writes counts", "Try again")
