"""What a monitor run comes to: nothing, a warning, a retraining, a study, or the way back.

In: the signals, earlier rows of the ledger, the policy, and what else is known (`LedgerFacts`). Out: a row of the
ledger. A signal counts when it was exceeded in enough of the last windows; what then holds an action back is in
`holds.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import get_args

from retraining.core import backoff
from retraining.core.documents.ledger import (
    Ledger,
    LedgerBecause,
    LedgerFacts,
    LedgerPolicy,
    QuietHours,
    Severity,
)
from retraining.core.documents.monitoring import Signal, SignalKind, Signals
from retraining.core.monitoring import holds
from retraining.core.spec.metrics import HIGHER_IS_BETTER
from retraining.core.spec.model import ModelSpec
from retraining.core.spec.monitoring import Action

ORDERS: tuple[Action, ...] = ("retrain", "tune", "rollback")
"""Outcomes that start something."""
SHOWN_CAUSES = 5
_STRENGTH: dict[Action, int] = {action: strength for strength, action in enumerate(get_args(Action))}
_OF_THE_CHAMPION: tuple[SignalKind, ...] = (
    "errors",
    "latency",
    "skew",
    "prediction_drift",
    "performance",
    "estimate",
    "multivariate",
)
"""Kinds that say something about the version that serves: windows of another one do not count."""
_AT_ONCE: tuple[SignalKind, ...] = ("age", "multivariate")
"""Kinds of which one window says it: they do not come and go by chance, or are not looked at in every window."""
_BEGINNINGS: dict[Action, str] = {
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
    because: LedgerBecause
    words: str
    lead: _Candidate | None = None


def policy_of(spec: ModelSpec) -> LedgerPolicy:
    """Return the rules that a model's file gives."""
    monitoring, policy = spec.monitoring, spec.monitoring.policy
    quiet = policy.quiet_hours
    return LedgerPolicy(
        windows_exceeded=policy.windows.exceeded,
        windows_of=policy.windows.of,
        actions={kind: getattr(policy.actions, kind) for kind in get_args(SignalKind)},
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
    return max(longest, holds.WEEK, timedelta(hours=policy.rollback_within_hours))


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
        ledger_rows: Earlier rows of this model, in any order; those that are not before the signals' time are left out.
        ledger_id: Of the new row: the name of the monitor run's folder.
        signals_uri: Where the signals are.
    """
    if facts.classifier is not None:
        signals = signals.model_copy(update={"signals": (*signals.signals, facts.classifier)})
    as_of = signals.as_of
    rows = sorted((row for row in ledger_rows if row.as_of < as_of), key=lambda row: row.as_of)
    exceeded = [signal for signal in signals.signals if signal.state == "exceeded"]
    candidates = sorted((_candidate(signal, policy, facts, rows) for signal in exceeded), key=_rank)
    verdict = _judge(candidates, signals, policy, facts, rows)
    ordered = verdict.outcome in ("retrain", "tune")
    return Ledger(
        model=signals.model,
        as_of=as_of,
        ledger_id=ledger_id,
        outcome=verdict.outcome,
        because=verdict.because,
        cause=verdict.lead.cause if verdict.lead else None,
        causes=tuple(candidate.cause for candidate in candidates),
        named_states={cause_of(signal): signal.because for signal in signals.signals if signal.because},
        severity=_severity(verdict),
        words=verdict.words,
        signals_uri=signals_uri,
        policy=policy,
        facts=facts,
        retrain_as_of=as_of if ordered else None,
        last_retrain_as_of=holds.last_order(rows, facts.lost_orders),
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
    if signal.because is not None and _STRENGTH[action] > _STRENGTH["warn"]:
        action = "warn"  # its input was wrong: never by itself a reason to act
    earlier = rows[-(policy.windows_of - 1) :] if policy.windows_of > 1 else []
    if signal.kind in _OF_THE_CHAMPION:
        earlier = [row for row in earlier if row.facts is not None and row.facts.champion == facts.champion]
    windows = 1 + sum(cause_of(signal) in row.causes for row in earlier)
    wanted = 1 if signal.kind in _AT_ONCE else policy.windows_exceeded
    return _Candidate(signal=signal, action=action, windows=windows, wanted=wanted)


def _rank(candidate: _Candidate) -> tuple[float, float, str]:
    """Sort the worst first: what asks for most, then what is furthest over its threshold."""
    signal = candidate.signal
    return -_STRENGTH[candidate.action], -_share(signal), candidate.cause


def _share(signal: Signal) -> float:
    """Return how much of its threshold a signal has reached, over 1 beyond it; 0 where one of them is missing."""
    if signal.value is None or not signal.threshold:
        return 0.0
    if signal.measure not in HIGHER_IS_BETTER:
        return signal.value / signal.threshold
    return signal.threshold / signal.value if signal.value > 0 else math.inf


def _judge(
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
        case = holds.Case(
            cause=candidate.cause,
            action=candidate.action,
            as_of=signals.as_of,
            policy=policy,
            facts=facts,
            rows=rows,
        )
        hold = holds.find_hold(case)
        if hold is None:
            words = f"{_BEGINNINGS[candidate.action]}: {_explain(candidate, confirmed)}."
            return _Verdict(outcome=candidate.action, because=candidate.signal.kind, words=words, lead=candidate)
        because, reason = hold
        words = f"Waiting: {_explain(candidate, confirmed)}. But {reason}."
        held = held or _Verdict(outcome="warn", because=because, words=words, lead=candidate)
    if held:
        return held
    if confirmed:
        words = f"Warning: {_explain(confirmed[0], confirmed)}."
        return _Verdict(outcome="warn", because=confirmed[0].signal.kind, words=words, lead=confirmed[0])
    if asking:
        first = asking[0]
        reason = f"this is {first.windows} of the {first.wanted} windows of the last {policy.windows_of} that it takes"
        words = f"Waiting: {_explain(first, asking)}. But {reason}."
        return _Verdict(outcome="none", because="hysteresis", words=words, lead=first)
    return _nothing(signals, policy, candidates)


def _nothing(signals: Signals, policy: LedgerPolicy, candidates: Sequence[_Candidate]) -> _Verdict:
    """Return why there is nothing to decide."""
    if candidates:
        words = f"Nothing: {_explain(candidates[0], candidates)}. monitoring.policy.actions asks for nothing then."
        return _Verdict(outcome="none", because="no_signal", words=words)
    if signals.champion is None:
        words = f"Nothing: no champion of {signals.model} serves, so there is nothing to compare with."
        return _Verdict(outcome="none", because="no_champion", words=words)
    if signals.requests < policy.min_requests:
        words = (
            f"Nothing: {signals.requests} requests in {signals.window_hours} hours are too few to judge "
            f"(at least {policy.min_requests})."
        )
        return _Verdict(outcome="none", because="too_few_requests", words=words)
    broken = [signal for signal in signals.signals if signal.because in holds.BROKEN_INPUT]
    if broken:
        more = f" And {len(broken) - 1} more such." if len(broken) > 1 else ""
        return _Verdict(outcome="none", because="named_state", words=f"Nothing: {_sentence(broken[0])}.{more}")
    judged = (signal for signal in signals.signals if signal.state != "not_judged")
    near = [(_share(signal), cause_of(signal), _sentence(signal)) for signal in judged]
    nearest = max((item for item in near if item[0]), default=None)
    closest = f" The nearest: {nearest[2]}." if nearest else ""
    return _Verdict(outcome="none", because="no_signal", words=f"Nothing: no signal is over its threshold.{closest}")


def _explain(lead: _Candidate, candidates: Sequence[_Candidate]) -> str:
    others = [candidate.cause for candidate in candidates if candidate is not lead]
    shown = ", ".join(others[:SHOWN_CAUSES])
    more = f" and {len(others) - SHOWN_CAUSES} more" if len(others) > SHOWN_CAUSES else ""
    return f"{_sentence(lead.signal)}{f'; also {shown}{more}' if others else ''}"


def _sentence(signal: Signal) -> str:
    return signal.words.rstrip(".")


def _severity(verdict: _Verdict) -> Severity:
    """Return how soon a person should look: a way back, or errors, at once."""
    if verdict.outcome == "none":
        return "info"
    kind = verdict.lead.signal.kind if verdict.lead else None
    return "critical" if verdict.outcome == "rollback" or kind == "errors" else "warning"
