"""What a monitor run comes to: nothing, a warning, a retraining, a study, or the way back; and what holds that back.

In: the signals, earlier rows of the ledger, the policy, and what else is known (`LedgerFacts`). Out: a row of the
ledger. A signal counts when it was exceeded in enough of the last windows. A hold is why an action waits all the same,
with the sentence that says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from retraining.core import backoff
from retraining.core.documents.ledger import (
    Ledger,
    LedgerBecause,
    LedgerFacts,
    LedgerOrder,
    LedgerPolicy,
    QuietHours,
    Severity,
)
from retraining.core.documents.monitoring import DriftChampion, NamedState, Signal, Signals
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.naming.run_keys import RunKey
from retraining.core.signal_kinds import SIGNAL_KINDS
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.monitoring import Action

ORDERS: tuple[Action, ...] = ("retrain", "tune", "rollback")
"""Outcomes that start something."""
MAX_SHOWN_CAUSES = 5
_STRENGTH: dict[Action, int] = {action: strength for strength, action in enumerate(get_args(Action))}
_ACTION_TEXTS: dict[Action, str] = {
    "none": "Nothing",
    "warn": "Warning",
    "retrain": "Retraining",
    "tune": "Retraining with a study",
    "rollback": "Rolling back",
}


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """An exceeded signal, what it asks for, and in how many of the last windows it was exceeded, of how many wanted."""

    signal: Signal
    action: Action
    windows: int
    wanted: int

    @property
    def cause(self) -> str:
        return cause_of(self.signal)

    @property
    def confirmed(self) -> bool:
        return self.windows >= self.wanted


@dataclass(frozen=True, kw_only=True)
class _Verdict:
    """What it comes to."""

    outcome: Action
    reason: LedgerBecause
    message: str
    lead: _Candidate | None = None


def policy_of(spec: ModelSpec) -> LedgerPolicy:
    """Return the rules that a model's file gives."""
    monitoring, policy = spec.monitoring, spec.monitoring.policy
    quiet = policy.quiet_hours
    return LedgerPolicy(
        windows_exceeded=policy.windows.exceeded,
        windows_of=policy.windows.of,
        actions={kind: getattr(policy.actions, kind) for kind in SIGNAL_KINDS},
        min_requests=monitoring.min_requests,
        cooldown_hours=monitoring.cooldown_hours,
        max_retrainings_per_week=policy.max_retrainings_per_week,
        quiet_hours=QuietHours(start=quiet.start, end=quiet.end) if quiet else None,
        max_age_days=monitoring.max_age_days,
        rollback_within_hours=policy.rollback_within_hours,
    )


def reach(policy: LedgerPolicy) -> timedelta:
    """Return how far back orders matter: for the longest cool-down, the budget's week, a rollback."""
    longest = timedelta(hours=policy.cooldown_hours * 2**backoff.MAX_DOUBLINGS)
    return max(longest, WEEK, timedelta(hours=policy.rollback_within_hours))


def rows_of_interest(
    rows: Sequence[Ledger], policy: LedgerPolicy, as_of: datetime, remembered: Collection[str] = ()
) -> list[Ledger]:
    """Return the earlier rows that a decision rests on, oldest first, whatever more there are.

    They are those since `reach`, or of a monitor that seldom runs as many as the policy looks at, and the orders that
    are remembered.
    """
    earlier = sorted((row for row in rows if row.as_of < as_of), key=lambda row: row.as_of)
    first = as_of - reach(policy)
    recent = sum(row.as_of >= first for row in earlier)
    start = len(earlier) - max(recent, min(policy.windows_of, len(earlier)))
    return [*(row for row in earlier[:start] if row.ledger_id in remembered), *earlier[start:]]


def all_orders(rows: Sequence[Ledger], last: Ledger | None) -> tuple[LedgerOrder, ...]:
    """Return all orders so far, oldest first: those that the last one knew of, itself, and those of rows."""
    ordering = [row for row in (*rows, *((last,) if last else ())) if row.outcome in ORDERS and row.ledger_id]
    found = {order.ledger_id: order for row in ordering for order in row.earlier_orders}
    found |= {
        str(row.ledger_id): LedgerOrder(
            ledger_id=str(row.ledger_id), as_of=row.as_of, outcome=row.outcome, cause=row.cause
        )
        for row in ordering
    }
    return tuple(sorted(found.values(), key=lambda order: (order.as_of, order.ledger_id)))


def orders_to_remember(
    orders: Sequence[LedgerOrder], policy: LedgerPolicy, as_of: datetime, champion: DriftChampion | None
) -> tuple[str, ...]:
    """Return the ids of orders from before `reach` that still matter.

    They are those since the champion's own time, which made no new one, and the last one of each cause.

    Args:
        orders: All, oldest first.
        policy: The rules.
        as_of: Of the decision.
        champion: That serves.
    """
    made = RunKey.parse(champion.run_key).as_of if champion else as_of
    retrained = [order for order in orders if order.outcome in ("retrain", "tune") and order.as_of < as_of]
    last_of = {order.cause: order.ledger_id for order in retrained}
    return tuple(
        order.ledger_id
        for order in retrained
        if order.as_of < as_of - reach(policy) and (order.as_of > made or order.ledger_id == last_of[order.cause])
    )


def cause_of(signal: Signal) -> str:
    """Return how the ledger names a signal: `kind:subject`."""
    return f"{signal.kind}:{signal.subject}"


def decide(
    signals: Signals,
    policy: LedgerPolicy,
    facts: LedgerFacts,
    ledger_rows: Sequence[Ledger],
    *,
    ledger_id: str | None = None,
    signals_uri: str | None = None,
) -> Ledger:
    """Return the ledger row of one monitor run.

    Args:
        signals: What was watched.
        policy: The rules.
        facts: What else is known.
        ledger_rows: Earlier rows of this model, in any order; those that are not `rows_of_interest` are left out.
        ledger_id: Of the new row: the name of the monitor run's folder.
        signals_uri: Where the signals are.
    """
    if facts.classifier is not None:
        signals = signals.model_copy(update={"signals": (*signals.signals, facts.classifier)})
    as_of = signals.as_of
    rows = rows_of_interest(ledger_rows, policy, as_of, facts.remembered)
    exceeded = [signal for signal in signals.signals if signal.state == "exceeded"]
    candidates = sorted((_candidate(signal, policy, facts, rows) for signal in exceeded), key=_rank_candidate)
    verdict = _judge_candidates(candidates, signals, policy, facts, rows)
    ordered = verdict.outcome in ("retrain", "tune")
    return Ledger(
        model=signals.model,
        as_of=as_of,
        ledger_id=ledger_id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        cause=verdict.lead.cause if verdict.lead else None,
        causes=tuple(candidate.cause for candidate in candidates),
        named_states={cause_of(signal): signal.reason for signal in signals.signals if signal.reason},
        severity=_severity_of_verdict(verdict),
        message=verdict.message,
        signals_uri=signals_uri,
        policy=policy,
        facts=facts,
        retrain_as_of=as_of if ordered else None,
        last_retrain_as_of=last_order(rows, facts.lost_orders),
    )


def retrain_as_of(row: Ledger, as_of: datetime | None) -> Ledger:
    """Return a ledger row whose retraining computes as of another time; a row that orders none stays as it is.

    Args:
        row: What was decided.
        as_of: The time that a person gave; None: nobody did.
    """
    if row.retrain_as_of is None or as_of is None:
        return row
    return row.model_copy(update={"retrain_as_of": as_of})


def _candidate(signal: Signal, policy: LedgerPolicy, facts: LedgerFacts, rows: Sequence[Ledger]) -> _Candidate:
    action = policy.actions.get(signal.kind, "warn")
    if signal.reason is not None and _STRENGTH[action] > _STRENGTH["warn"]:
        action = "warn"  # its input was wrong: never by itself a reason to act
    earlier = rows[-(policy.windows_of - 1) :] if policy.windows_of > 1 else []
    if SIGNAL_KINDS[signal.kind].of_champion:
        earlier = [row for row in earlier if row.facts is not None and row.facts.champion == facts.champion]
    windows = 1 + sum(cause_of(signal) in row.causes for row in earlier)
    wanted = 1 if SIGNAL_KINDS[signal.kind].at_once else policy.windows_exceeded
    return _Candidate(signal=signal, action=action, windows=windows, wanted=wanted)


def _rank_candidate(candidate: _Candidate) -> tuple[float, float, str]:
    """Sort the worst first: what asks for most, then what is furthest over its threshold."""
    signal = candidate.signal
    return -_STRENGTH[candidate.action], -_threshold_share(signal), candidate.cause


def _threshold_share(signal: Signal) -> float:
    """Return how much of its threshold a signal has reached, over 1 beyond it; 0 where one of them is missing."""
    if signal.value is None or not signal.threshold:
        return 0.0
    if signal.measure not in HIGHER_IS_BETTER:
        return signal.value / signal.threshold
    return signal.threshold / signal.value if signal.value > 0 else math.inf


def _judge_candidates(
    candidates: Sequence[_Candidate],
    signals: Signals,
    policy: LedgerPolicy,
    facts: LedgerFacts,
    rows: Sequence[Ledger],
) -> _Verdict:
    asking = [candidate for candidate in candidates if candidate.action != "none"]
    confirmed = [candidate for candidate in asking if candidate.confirmed]
    held: _Verdict | None = None
    for candidate in confirmed:
        if candidate.action not in ORDERS:
            continue
        case = OrderCase(
            cause=candidate.cause,
            action=candidate.action,
            as_of=signals.as_of,
            policy=policy,
            facts=facts,
            rows=rows,
        )
        hold = find_hold(case)
        if hold is None:
            message = f"{_ACTION_TEXTS[candidate.action]}: {_explain_candidates(candidate, confirmed)}."
            return _Verdict(outcome=candidate.action, reason=candidate.signal.kind, message=message, lead=candidate)
        reason, obstacle = hold
        message = f"Waiting: {_explain_candidates(candidate, confirmed)}. But {obstacle}."
        held = held or _Verdict(outcome="warn", reason=reason, message=message, lead=candidate)
    if held:
        return held
    if confirmed:
        message = f"Warning: {_explain_candidates(confirmed[0], confirmed)}."
        return _Verdict(outcome="warn", reason=confirmed[0].signal.kind, message=message, lead=confirmed[0])
    if asking:
        first = asking[0]
        obstacle = (
            f"this is {first.windows} of the {first.wanted} windows of the last {policy.windows_of} that it takes"
        )
        message = f"Waiting: {_explain_candidates(first, asking)}. But {obstacle}."
        return _Verdict(outcome="none", reason="hysteresis", message=message, lead=first)
    return _explain_nothing(signals, policy, candidates)


def _explain_nothing(signals: Signals, policy: LedgerPolicy, candidates: Sequence[_Candidate]) -> _Verdict:
    """Return why there is nothing to decide."""
    if candidates:
        what = _explain_candidates(candidates[0], candidates)
        message = f"Nothing: {what}. monitoring.policy.actions asks for nothing then."
        return _Verdict(outcome="none", reason="no_signal", message=message)
    if signals.champion is None:
        message = f"Nothing: no champion of {signals.model} serves, so there is nothing to compare with."
        return _Verdict(outcome="none", reason="no_champion", message=message)
    if signals.requests < policy.min_requests:
        message = (
            f"Nothing: {signals.requests} requests in {signals.window_hours} hours are too few to judge "
            f"(at least {policy.min_requests})."
        )
        return _Verdict(outcome="none", reason="too_few_requests", message=message)
    broken = [signal for signal in signals.signals if signal.reason in BROKEN_INPUT]
    if broken:
        more = f" And {len(broken) - 1} more such." if len(broken) > 1 else ""
        return _Verdict(
            outcome="none", reason="named_state", message=f"Nothing: {_sentence_of_signal(broken[0])}.{more}"
        )
    judged = (signal for signal in signals.signals if signal.state != "not_judged")
    near = [(_threshold_share(signal), cause_of(signal), _sentence_of_signal(signal)) for signal in judged]
    nearest = max((item for item in near if item[0]), default=None)
    closest = f" The nearest: {nearest[2]}." if nearest else ""
    return _Verdict(outcome="none", reason="no_signal", message=f"Nothing: no signal is over its threshold.{closest}")


def _explain_candidates(lead: _Candidate, candidates: Sequence[_Candidate]) -> str:
    others = [candidate.cause for candidate in candidates if candidate is not lead]
    shown = ", ".join(others[:MAX_SHOWN_CAUSES])
    more = f" and {len(others) - MAX_SHOWN_CAUSES} more" if len(others) > MAX_SHOWN_CAUSES else ""
    return f"{_sentence_of_signal(lead.signal)}{f'; also {shown}{more}' if others else ''}"


def _sentence_of_signal(signal: Signal) -> str:
    return signal.message.rstrip(".")


def _severity_of_verdict(verdict: _Verdict) -> Severity:
    """Return how soon a person should look: a way back, or errors, at once."""
    if verdict.outcome == "none":
        return "info"
    kind = verdict.lead.signal.kind if verdict.lead else None
    return "critical" if verdict.outcome == "rollback" or kind == "errors" else "warning"


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
class OrderCase:
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


def find_hold(case: OrderCase) -> Hold:
    """Return what holds an order back, and why."""
    for hold in _ROLLBACK_HOLDS if case.action == "rollback" else _RETRAINING_HOLDS:
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


def _hold_a_loop(case: OrderCase) -> Hold:
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
    if _cause_was_gone(case, [row for row in case.rows if row.as_of > last.as_of]):
        return None
    came = f"made version {result.version_id}, and it is as before" if promoted else "made no new champion"
    way_out = "nothing is ordered for the same cause until the champion changes, it stops, or a person retrains"
    return "loop_guard", f"the retraining that was ordered for it at {_minute_text(last.as_of)} {came}: {way_out}"


def _cause_was_gone(case: OrderCase, rows: Sequence[Ledger]) -> bool:
    """Return whether the cause was judged and not exceeded for as many windows on end as the policy looks at."""
    on_end = 0
    for row in rows:
        unjudged = case.cause in row.named_states or row.reason in ("no_champion", "too_few_requests")
        on_end = 0 if case.cause in row.causes or unjudged else on_end + 1
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
