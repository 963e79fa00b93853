"""What holds an action of the policy back, with the sentence that says so; None: nothing does."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from retraining.core import backoff
from retraining.core.documents.ledger import Ledger, LedgerBecause, LedgerFacts, LedgerOrder, LedgerPolicy, QuietHours
from retraining.core.documents.monitoring import NamedState
from retraining.core.naming.run_keys import RunKey
from retraining.core.spec.monitoring import Action

WEEK = timedelta(days=7)
BROKEN_INPUT: tuple[NamedState, ...] = (
    "labels_of_another_version",
    "feature_gone",
    "garbage",
    "giant_batch",
    "clock_skew",
    "no_endpoint",
    "source_stopped",
    "too_expensive",
)
"""Named states in which something is wrong, not only little."""
Hold = tuple[LedgerBecause, str] | None


@dataclass(frozen=True, kw_only=True)
class Case:
    """An action that a signal asks for. `rows` are all earlier ones, oldest first."""

    cause: str
    action: Action
    as_of: datetime
    policy: LedgerPolicy
    facts: LedgerFacts
    rows: Sequence[Ledger]

    @property
    def retrainings(self) -> list[Ledger]:
        """Those of the rows that ordered a retraining which began, or still may."""
        return retrainings(self.rows, self.facts.lost_orders)

    @property
    def other_order(self) -> LedgerOrder | None:
        """What was ordered last, by whichever monitor run, unless it was lost."""
        order = self.facts.last_order
        return None if order is None or order.ledger_id in self.facts.lost_orders else order


def find_hold(case: Case) -> Hold:
    """Return what holds an order back, and why."""
    for hold in _ROLLBACK if case.action == "rollback" else _RETRAINING:
        if found := hold(case):
            return found
    return None


def last_order(rows: Sequence[Ledger], lost: Collection[str] = ()) -> datetime | None:
    """Return when a retraining was last ordered, of those that were not lost."""
    return max((row.as_of for row in retrainings(rows, lost)), default=None)


def retrainings(rows: Sequence[Ledger], lost: Collection[str] = ()) -> list[Ledger]:
    """Return the rows that ordered a retraining, with a study or without, and were not lost."""
    return [row for row in rows if row.outcome in ("retrain", "tune") and row.ledger_id not in lost]


def is_quiet(hours: QuietHours | None, at: datetime) -> bool:
    """Tell whether a time is in the quiet hours: from `start`, before `end`, over midnight where that is earlier."""
    if hours is None:
        return False
    time = f"{at:%H:%M}"
    if hours.start < hours.end:
        return hours.start <= time < hours.end
    return time >= hours.start or time < hours.end


def cooldown(case: Case) -> timedelta:
    """Return how long after the last ordered retraining the next may be ordered.

    Retrainings ordered since the champion's own time did not make a new champion. Each of them but the first doubles
    the wait, up to 16 times: what retraining does not mend, more retraining will not.
    """
    champion = case.facts.champion
    since = RunKey.parse(champion.run_key).as_of if champion else case.as_of
    fruitless = sum(row.as_of > since for row in case.retrainings)
    return backoff.cooldown(case.policy.cooldown_hours, max(fruitless - 1, 0))


def _without_champion(case: Case) -> Hold:
    if case.facts.champion is not None:
        return None
    return "no_champion", "no champion serves: the schedule makes the first one"


def _pause(case: Case) -> Hold:
    return ("paused", case.facts.paused.rstrip(".")) if case.facts.paused else None


def _cooldown(case: Case) -> Hold:
    wait, last = cooldown(case), last_order(case.rows, case.facts.lost_orders)
    if last is not None and case.as_of - last < wait:
        lasts = f"the cool-down of {_hours(wait)} lasts until {_minute(last + wait)}"
        return "cooldown", f"a retraining was ordered at {_minute(last)}, and {lasts}"
    other = case.other_order
    if other is None or other.outcome == "rollback" or abs(case.as_of - other.as_of) >= wait:
        return None
    return "cooldown", f"another monitor run ({other.ledger_id}) ordered a retraining at {_minute(other.as_of)}"


def _loop(case: Case) -> Hold:
    """Hold what a finished retraining did not help, until the champion, the cause or a person changes something."""
    last = next((row for row in reversed(case.retrainings) if row.cause == case.cause), None)
    if last is None or case.facts.champion is None:
        return None
    result = next((item for item in case.facts.results if item.ledger_id == last.ledger_id), None)
    if result is None or result.state not in ("promoted", "rejected"):
        return None
    promoted = result.state == "promoted"
    before = last.facts.champion.run_key if last.facts and last.facts.champion else None
    if case.facts.champion.run_key != (result.run_key if promoted else before):
        return None
    if case.facts.last_by_hand is not None and case.facts.last_by_hand > last.as_of:
        return None
    if _was_gone(case, [row for row in case.rows if row.as_of > last.as_of]):
        return None
    came = f"made version {result.version_id}, and it is as before" if promoted else "made no new champion"
    way_out = "nothing is ordered for the same cause until the champion changes, it stops, or a person retrains"
    return "loop_guard", f"the retraining that was ordered for it at {_minute(last.as_of)} {came}: {way_out}"


def _was_gone(case: Case, rows: Sequence[Ledger]) -> bool:
    """Tell whether the cause was judged and not exceeded for as many windows on end as the policy looks at."""
    on_end = 0
    for row in rows:
        unjudged = case.cause in row.named_states or row.because in ("no_champion", "too_few_requests")
        on_end = 0 if case.cause in row.causes or unjudged else on_end + 1
        if on_end >= case.policy.windows_of:
            return True
    return False


def _budget(case: Case) -> Hold:
    most = case.policy.max_retrainings_per_week
    ordered = [row for row in case.retrainings if row.as_of > case.as_of - WEEK]
    if most is None or len(ordered) < most:
        return None
    again = f" until {_minute(ordered[-most].as_of + WEEK)}" if most else ""
    return "budget", f"{len(ordered)} of at most {most} retrainings were ordered in the last 7 days: none{again}"


def _quiet_hours(case: Case) -> Hold:
    hours = case.policy.quiet_hours
    if hours is None or not is_quiet(hours, case.as_of):
        return None
    return "quiet_hours", f"it is quiet from {hours.start} to {hours.end} UTC: the first run after that decides anew"


def _no_previous(case: Case) -> Hold:
    if case.facts.previous_version is not None:
        return None
    return "no_previous", "there is no previous version to go back to"


def _rolled_back(case: Case) -> Hold:
    if case.facts.by_rollback:
        return "rolled_back", "the champion came by a rollback: the version before it is the one that was left"
    other = case.other_order
    within = timedelta(hours=case.policy.rollback_within_hours)
    elsewhere = other is not None and other.outcome == "rollback" and abs(case.as_of - other.as_of) < within
    made = [row for row in case.rows if row.ledger_id not in case.facts.lost_orders]
    before = [row for row in made if row.outcome == "rollback" and row.facts]
    same = any(row.facts is not None and row.facts.champion == case.facts.champion for row in before)
    return ("rolled_back", "a rollback was ordered for this champion already") if elsewhere or same else None


def _settled(case: Case) -> Hold:
    since, within = case.facts.champion_since, timedelta(hours=case.policy.rollback_within_hours)
    if since is not None and case.as_of - since < within:
        return None
    served = f"since {_minute(since)}" if since else "since nobody knows when"
    return "settled", f"the champion serves {served}, and a rollback is for the first {_hours(within)}"


_RETRAINING: tuple[Callable[[Case], Hold], ...] = (
    _without_champion,
    _pause,
    _cooldown,
    _loop,
    _budget,
    _quiet_hours,
)
_ROLLBACK: tuple[Callable[[Case], Hold], ...] = (_without_champion, _rolled_back, _no_previous, _settled)


def _hours(wait: timedelta) -> str:
    return f"{wait.total_seconds() / 3600:g} hours"


def _minute(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
