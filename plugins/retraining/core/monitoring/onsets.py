"""Since when the data are other than what the champion was trained on, and how many such days a retraining trains on.

In: signals and earlier rows of the ledger. Out: times by cause, counts of days. A retraining ordered at the first sign
of a drift trains on none of the days that drifted: its label comes later, and the newest days are the test split.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta

from retraining.core.documents.ledger import Ledger, LedgerFacts, LedgerPolicy, TrainingDays
from retraining.core.documents.monitoring import DriftChampion, Signal, Signals
from retraining.core.monitoring.orders import retrainings
from retraining.core.naming.run_keys import RunKey
from retraining.core.signal_kinds import SIGNAL_KINDS

DAY = timedelta(days=1)


def cause_of(signal: Signal) -> str:
    """Return how the ledger names a signal: `kind:subject`."""
    return f"{signal.kind}:{signal.subject}"


def trained_until(days: TrainingDays, as_of: datetime) -> datetime:
    """Return the midnight before which the days end that a retraining as of a time trains on."""
    last = as_of.astimezone(UTC).date() - timedelta(days=days.label_lag_days + days.test_days)
    return datetime.combine(last, time(), UTC)


def new_days(days: TrainingDays, since: datetime, as_of: datetime) -> int:
    """Return how many whole days since a time a retraining as of another trains on; below 0: none yet."""
    return (trained_until(days, as_of) - since) // DAY


def first_time(days: TrainingDays, since: datetime, count: int) -> datetime:
    """Return from which midnight on a retraining trains on so many whole days since a time."""
    end = since + timedelta(days=count)
    midnight = datetime.combine(end.date(), time(), UTC)
    return midnight + (DAY if midnight < end else timedelta()) + timedelta(days=days.label_lag_days + days.test_days)


def days_tried(days: TrainingDays, since: datetime, facts: LedgerFacts, rows: Sequence[Ledger]) -> int:
    """Return on how many whole days since a time a retraining was trained that left things as they are.

    Whatever it was ordered for: the champion's own, and orders that it won against. What a person began after them
    lifts them.
    """
    champion, by_hand = facts.champion, facts.last_by_hand
    if champion is None:
        return 0
    rejected = {result.ledger_id for result in facts.results if result.state == "rejected"}
    times = [RunKey.parse(champion.run_key).as_of]
    times += [
        row.retrain_as_of or row.as_of
        for row in retrainings(rows, facts.lost_orders)
        if row.ledger_id in rejected and row.facts is not None and row.facts.champion == champion
    ]
    return max((new_days(days, since, at) for at in times if by_hand is None or at >= by_hand), default=0)


def is_half_learned(days: TrainingDays, since: datetime, facts: LedgerFacts, rows: Sequence[Ledger]) -> bool:
    """Return whether the champion was trained on some days since a time, and nothing yet on as many as can be."""
    if facts.champion is None or new_days(days, since, RunKey.parse(facts.champion.run_key).as_of) < 1:
        return False
    return days_tried(days, since, facts, rows) < days.trained_days


def find_onsets(
    signals: Signals, policy: LedgerPolicy, facts: LedgerFacts, rows: Sequence[Ledger]
) -> dict[str, datetime]:
    """Return by cause since when the data are other; of causes for which a retraining needs days, and that last.

    A cause lasts until it was judged and not exceeded for as many windows on end as the policy looks at, which share no
    request with the last one that saw it: windows an hour apart share most. And while it is half learned.

    Args:
        signals: What was watched.
        policy: The rules; without `training`, those of an earlier release, nothing is returned.
        facts: What else is known.
        rows: Earlier ones, oldest first.
    """
    if policy.training is None:
        return {}
    before = _after_what_was_learned(rows[-1].since if rows else {}, policy.training, signals.champion)
    found = {}
    for signal in signals.signals:
        kind, cause = SIGNAL_KINDS[signal.kind], cause_of(signal)
        if signal.state == "exceeded" and kind.days_of is not None:
            lasts = kind.days_of != "champion" and cause in before
            found[cause] = before[cause] if lasts else _onset(signal, signals, policy.training)
    lasting = {cause: since for cause, since in before.items() if cause not in found}
    return found | {
        cause: since
        for cause, since in lasting.items()
        if is_half_learned(policy.training, since, facts, rows) or not _is_over(cause, signals, policy, rows)
    }


def _after_what_was_learned(
    since: Mapping[str, datetime], days: TrainingDays, champion: DriftChampion | None
) -> dict[str, datetime]:
    """Return onsets anew where the champion was trained on such days alone: what is other now came after them."""
    if champion is None:
        return dict(since)
    learned = RunKey.parse(champion.run_key).as_of
    enough = max(days.trained_days, 1)
    return {
        cause: trained_until(days, learned) if new_days(days, at, learned) >= enough else at
        for cause, at in since.items()
    }


def _onset(signal: Signal, signals: Signals, days: TrainingDays) -> datetime:
    """Return the middle of the first window that saw it: of requests, of answers, or of those whose label is known."""
    days_of, answered = SIGNAL_KINDS[signal.kind].days_of, timedelta(days=days.answered_days)
    if days_of == "champion":
        return trained_until(days, RunKey.parse(signals.champion.run_key).as_of) if signals.champion else signals.as_of
    if days_of == "requests":
        return signals.as_of - timedelta(hours=signals.window_hours) / 2
    if days_of == "answers":
        return signals.as_of - answered / 2
    lag = timedelta(days=days.label_lag_days)  # the answers of the last ones have no label yet
    return signals.as_of - (lag + max(answered, lag)) / 2


def _is_over(cause: str, signals: Signals, policy: LedgerPolicy, rows: Sequence[Ledger]) -> bool:
    """Return whether a cause that is not exceeded now is gone."""
    unjudged_now = any(signal.reason is not None and cause_of(signal) == cause for signal in signals.signals)
    if unjudged_now or signals.champion is None or signals.requests < policy.min_requests:
        return False
    if cause.startswith("multivariate:") and not any(cause_of(signal) == cause for signal in signals.signals):
        return False
    on_end, last = 1, None
    for row in reversed(rows):
        if cause in row.causes or is_unjudged(cause, row) or _is_unasked(cause, row):
            last = row.as_of
            break
        on_end += 1
    apart = last is None or signals.as_of - last >= timedelta(hours=signals.window_hours)
    return on_end >= policy.windows_of and apart


def is_unjudged(cause: str, row: Ledger) -> bool:
    """Return whether a row's window could not judge a cause."""
    return cause in row.named_states or row.reason in ("no_champion", "too_few_requests")


def _is_unasked(cause: str, row: Ledger) -> bool:
    return cause.startswith("multivariate:") and (row.facts is None or row.facts.classifier is None)
