"""Why an action that a signal asks for waits all the same: a pause, a day that is not trained on yet, an earlier order.

In: the case of one signal. Out: what holds it back, with the sentence that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from retraining.core import backoff
from retraining.core.documents.ledger import (
    Ledger,
    LedgerBecause,
    LedgerFacts,
    LedgerOrder,
    LedgerPolicy,
    QuietHours,
    TrainingDays,
)
from retraining.core.monitoring.onsets import days_tried, first_time, is_unjudged, new_days
from retraining.core.monitoring.orders import WEEK, last_order, retrainings
from retraining.core.naming.run_keys import RunKey
from retraining.core.spec.monitoring import Action

Hold = tuple[LedgerBecause, str] | None


@dataclass(frozen=True, kw_only=True)
class OrderCase:
    """An action that a signal asks for.

    Attributes:
        cause: The signal.
        since: Since when the data are other, where a retraining helps only by days that it trains on; None: it is no
            matter of days.
        rows: All earlier ones, oldest first.
    """

    cause: str
    since: datetime | None = None
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


def find_hold(case: OrderCase) -> Hold:
    """Return what holds an order back, and why."""
    for hold in _ROLLBACK_HOLDS if case.action == "rollback" else _RETRAINING_HOLDS:
        if found := hold(case):
            return found
    return None


def is_quiet(hours: QuietHours | None, at: datetime) -> bool:
    """Return whether a time is in the quiet hours: from `start`, before `end`, over midnight where that is earlier."""
    if hours is None:
        return False
    time = f"{at:%H:%M}"
    if hours.start < hours.end:
        return hours.start <= time < hours.end
    return time >= hours.start or time < hours.end


def cooldown_of_case(case: OrderCase) -> timedelta:
    """Return how long after the last ordered retraining the next may be ordered.

    Retrainings ordered since the champion's own time did not make a new champion. Each of them but the first doubles
    the wait, up to 16 times: what retraining does not mend, more retraining will not.
    """
    champion = case.facts.champion
    since = RunKey.parse(champion.run_key).as_of if champion else case.as_of
    fruitless = sum(row.as_of > since for row in case.retrainings)
    return backoff.cooldown(case.policy.cooldown_hours, max(fruitless - 1, 0))


def _hold_without_champion(case: OrderCase) -> Hold:
    if case.facts.champion is not None:
        return None
    return "no_champion", "no champion serves: the schedule makes the first one"


def _hold_while_paused(case: OrderCase) -> Hold:
    return ("paused", case.facts.paused.rstrip(".")) if case.facts.paused else None


def _hold_for_cooldown(case: OrderCase) -> Hold:
    wait, last = cooldown_of_case(case), last_order(case.rows, case.facts.lost_orders)
    if last is not None and case.as_of - last < wait:
        lasts = f"the cool-down of {_hours_text(wait)} lasts until {_minute_text(last + wait)}"
        return "cooldown", f"a retraining was ordered at {_minute_text(last)}, and {lasts}"
    other = case.other_order
    if other is None or other.outcome == "rollback" or abs(case.as_of - other.as_of) >= wait:
        return None
    return "cooldown", f"another monitor run ({other.ledger_id}) ordered a retraining at {_minute_text(other.as_of)}"


def _hold_for_new_days(case: OrderCase) -> Hold:
    """Hold what a retraining of now cannot have learned: it would train on no day that the drifted data are in."""
    days = case.policy.training
    if days is None or case.since is None or new_days(days, case.since, case.as_of) >= 1:
        return None
    until = first_time(days, case.since, 1)
    return "new_days", (
        f"the order waits until {_minute_text(until)}: a retraining of now trains on no day since "
        f"{_minute_text(case.since)} (labels are known after {days.label_lag_days} days, and the newest "
        f"{days.test_days} are test days)"
    )


def _hold_for_more_days(case: OrderCase, days: TrainingDays, since: datetime) -> Hold:
    """Hold what a retraining did not help until the next trains on twice as many new days, or on new days alone.

    So it holds for longer and longer, and never for good. A retraining counts whatever it was ordered for: causes that
    come together are one.
    """
    tried = days_tried(days, since, case.facts, case.rows)
    wanted = min(2 * tried, days.trained_days) if tried < days.trained_days else 2 * tried
    if tried < 1 or new_days(days, since, case.as_of) >= wanted:
        return None
    until = first_time(days, since, wanted)
    return "loop_guard", (
        f"a retraining on {tried} of the days since {_minute_text(since)} left it as it is: the next order waits for "
        f"{wanted} of them, until {_minute_text(until)}, or for a person who retrains"
    )


def _hold_a_loop(case: OrderCase) -> Hold:
    """Hold what a finished retraining did not help, until the champion, the cause or a person changes something."""
    if case.since is not None and case.policy.training is not None:
        return _hold_for_more_days(case, case.policy.training, case.since)
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
    if _cause_was_gone(case, [row for row in case.rows if row.as_of > last.as_of]):
        return None
    came = f"made version {result.version_id}, and it is as before" if promoted else "made no new champion"
    way_out = "nothing is ordered for the same cause until the champion changes, it stops, or a person retrains"
    return "loop_guard", f"the retraining that was ordered for it at {_minute_text(last.as_of)} {came}: {way_out}"


def _cause_was_gone(case: OrderCase, rows: Sequence[Ledger]) -> bool:
    """Return whether the cause was judged and not exceeded for as many windows on end as the policy looks at."""
    on_end = 0
    for row in rows:
        on_end = 0 if case.cause in row.causes or is_unjudged(case.cause, row) else on_end + 1
        if on_end >= case.policy.windows_of:
            return True
    return False


def _hold_for_budget(case: OrderCase) -> Hold:
    most = case.policy.max_retrainings_per_week
    ordered = [row for row in case.retrainings if row.as_of > case.as_of - WEEK]
    if most is None or len(ordered) < most:
        return None
    again = f" until {_minute_text(ordered[-most].as_of + WEEK)}" if most else ""
    return "budget", f"{len(ordered)} of at most {most} retrainings were ordered in the last 7 days: none{again}"


def _hold_in_quiet_hours(case: OrderCase) -> Hold:
    hours = case.policy.quiet_hours
    if hours is None or not is_quiet(hours, case.as_of):
        return None
    return "quiet_hours", f"it is quiet from {hours.start} to {hours.end} UTC: the first run after that decides anew"


def _hold_without_previous(case: OrderCase) -> Hold:
    if case.facts.previous_version is not None:
        return None
    return "no_previous", "there is no previous version to go back to"


def _hold_after_rollback(case: OrderCase) -> Hold:
    if case.facts.by_rollback:
        return "rolled_back", "the champion came by a rollback: the version before it is the one that was left"
    other = case.other_order
    within = timedelta(hours=case.policy.rollback_within_hours)
    elsewhere = other is not None and other.outcome == "rollback" and abs(case.as_of - other.as_of) < within
    made = [row for row in case.rows if row.ledger_id not in case.facts.lost_orders]
    before = [row for row in made if row.outcome == "rollback" and row.facts]
    same = any(row.facts is not None and row.facts.champion == case.facts.champion for row in before)
    return ("rolled_back", "a rollback was ordered for this champion already") if elsewhere or same else None


def _hold_when_settled(case: OrderCase) -> Hold:
    since, within = case.facts.champion_since, timedelta(hours=case.policy.rollback_within_hours)
    if since is not None and case.as_of - since < within:
        return None
    served = f"since {_minute_text(since)}" if since else "since nobody knows when"
    return "settled", f"the champion serves {served}, and a rollback is for the first {_hours_text(within)}"


_RETRAINING_HOLDS: tuple[Callable[[OrderCase], Hold], ...] = (
    _hold_without_champion,
    _hold_while_paused,
    _hold_for_new_days,
    _hold_for_cooldown,
    _hold_a_loop,
    _hold_for_budget,
    _hold_in_quiet_hours,
)
_ROLLBACK_HOLDS: tuple[Callable[[OrderCase], Hold], ...] = (
    _hold_without_champion,
    _hold_after_rollback,
    _hold_without_previous,
    _hold_when_settled,
)


def _hours_text(wait: timedelta) -> str:
    return f"{wait.total_seconds() / 3600:g} hours"


def _minute_text(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
