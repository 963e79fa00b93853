"""What a monitor run comes to: nothing, a warning, a retraining, a study, or the way back; and what holds that back.

In: the signals, earlier rows of the ledger, the policy, and what else is known (`LedgerFacts`). Out: a row of the
ledger. A signal counts when it was exceeded in enough of the last windows; `holds.py` says why its action waits all the
same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import cast, get_args

from retraining.core.documents.ledger import (
    Ledger,
    LedgerBecause,
    LedgerFacts,
    LedgerPolicy,
    QuietHours,
    Severity,
    TrainingDays,
)
from retraining.core.documents.monitoring import NamedState, Signal, Signals
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.monitoring.holds import OrderCase, find_hold
from retraining.core.monitoring.onsets import cause_of, days_tried, find_onsets, is_half_learned, new_days
from retraining.core.monitoring.orders import ORDERS, last_order, rows_of_interest
from retraining.core.signal_kinds import SIGNAL_KINDS, SignalKind
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.monitoring import Action

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
    unseen: str | None = None
    """The cause, where no signal leads."""

    @property
    def cause(self) -> str | None:
        return self.lead.cause if self.lead else self.unseen


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
        training=_training_days(spec),
    )


def _training_days(spec: ModelSpec) -> TrainingDays:
    """Return what passes before a day is trained on; examples without a time are as soon as the query gives them."""
    by_time = spec.data.split == "time"
    return TrainingDays(
        label_lag_days=spec.data.label_lag_days if by_time else 0,
        test_days=spec.data.test_days if by_time else 0,
        trained_days=spec.data.window_days - spec.data.test_days if by_time else 0,
        answered_days=spec.monitoring.performance.window_days,
    )


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
    since = find_onsets(signals, policy, facts, rows)
    exceeded = [signal for signal in signals.signals if signal.state == "exceeded"]
    candidates = sorted((_candidate(signal, policy, facts, rows) for signal in exceeded), key=_rank_candidate)
    verdict = _judge_candidates(candidates, signals, policy, facts, rows, since)
    if verdict.outcome not in ORDERS:
        verdict = _finish_learning(as_of, policy, facts, rows, since) or verdict
    ordered = verdict.outcome in ("retrain", "tune")
    return Ledger(
        model=signals.model,
        as_of=as_of,
        ledger_id=ledger_id,
        outcome=verdict.outcome,
        reason=verdict.reason,
        cause=verdict.cause,
        causes=tuple(candidate.cause for candidate in candidates),
        named_states={cause_of(signal): signal.reason for signal in signals.signals if signal.reason},
        severity=_severity_of_verdict(verdict),
        message=verdict.message,
        signals_uri=signals_uri,
        policy=policy,
        facts=facts,
        since=since,
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
    since: Mapping[str, datetime],
) -> _Verdict:
    asking = [candidate for candidate in candidates if candidate.action != "none"]
    confirmed = [candidate for candidate in asking if candidate.confirmed]
    held: _Verdict | None = None
    for candidate in confirmed:
        if candidate.action not in ORDERS:
            continue
        case = OrderCase(
            cause=candidate.cause,
            since=since.get(candidate.cause) if facts.retrain_as_of is None else None,
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


def _finish_learning(
    as_of: datetime,
    policy: LedgerPolicy,
    facts: LedgerFacts,
    rows: Sequence[Ledger],
    since: Mapping[str, datetime],
) -> _Verdict | None:
    """Return the last order of a drift, once all that is trained on lies after it; None: it is not due.

    The orders before it trained on older days too. So a model half of which is of another time may be within all
    limits, and stay.
    """
    days = policy.training
    if days is None or facts.retrain_as_of is not None:
        return None
    for cause, start in sorted(since.items()):
        action = policy.actions.get(cast("SignalKind", cause.partition(":")[0]), "warn")
        due = new_days(days, start, as_of) >= days.trained_days and is_half_learned(days, start, facts, rows)
        case = OrderCase(cause=cause, since=start, action=action, as_of=as_of, policy=policy, facts=facts, rows=rows)
        if due and action in ("retrain", "tune") and find_hold(case) is None:
            tried = days_tried(days, start, facts, rows)
            message = (
                f"{_ACTION_TEXTS[action]}: the data are other since {start:%Y-%m-%d %H:%M} UTC ({cause}), and a "
                f"retraining of now trains on such days alone, the champion on {tried} of {days.trained_days}."
            )
            return _Verdict(outcome=action, reason="half_learned", message=message, unseen=cause)
    return None


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
