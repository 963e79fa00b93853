"""A policy, played over what monitors saw: when it would have acted, beside what was done, and what that was worth.

In: stored signals and rows of the ledger. Out: rows as another policy would have written them; lines for a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from statistics import fmean

from retraining.core.documents import Ledger, LedgerPolicy, Signal, Signals
from retraining.core.metrics import HIGHER_IS_BETTER
from retraining.core.monitoring import policy
from retraining.core.monitoring.limits import EARLIER, limit_of
from retraining.core.monitoring.orders import ORDERS, all_orders, orders_to_remember
from retraining.core.spec.model import ModelSpec


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A monitor run, as it was: what it saw, and the row that was written."""

    signals: Signals
    row: Ledger


@dataclass(frozen=True, kw_only=True)
class Gain:
    """What an action that was not taken might have been worth.

    `before` is the mean score from the action until the next champion served, `after` that champion's mean score.
    """

    measure: str
    earlier: timedelta
    before: float
    after: float

    @property
    def value(self) -> float:
        """Return the gain; below 0: a loss."""
        higher = self.measure in HIGHER_IS_BETTER
        return self.after - self.before if higher else self.before - self.after


def decide_again(recorded: Recorded, earlier: Sequence[Ledger]) -> Ledger:
    """Return a row as it follows from what is stored: its own policy and facts, its signals, the rows before it."""
    row = recorded.row
    if row.policy is None or row.facts is None:
        return row  # of an earlier release, which stored neither
    again = policy.decide(
        recorded.signals, row.policy, row.facts, earlier, ledger_id=row.ledger_id, signals_uri=row.signals_uri
    )
    kept = {"dag_run_id": row.dag_run_id, "earlier_orders": row.earlier_orders}
    return policy.retrain_as_of(again, row.retrain_as_of).model_copy(update=kept)


def play(recorded: Sequence[Recorded], rules: LedgerPolicy, spec: ModelSpec | None = None) -> list[Ledger]:
    """Return the rows that a policy would have written, each seeing its own before it.

    What served is what did serve; of an order that nobody made no result is known, so no loop guard rests on it.

    Args:
        recorded: Monitor runs, oldest first.
        rules: The policy.
        spec: Whose limits of distances and of age hold in the place of the stored ones; None: the stored ones.
    """
    rows: list[Ledger] = []
    for each in recorded:
        signals = each.signals if spec is None else _judge_again(each.signals, spec)
        facts = each.row.facts
        if facts is None:
            continue
        made = {str(row.ledger_id) for row in rows if row.outcome in ORDERS}
        results = tuple(result for result in facts.results if result.ledger_id in made)
        remembered = orders_to_remember(all_orders(rows, None), rules, each.signals.as_of, each.signals.champion)
        known = {"results": results, "last_order": None, "lost_orders": (), "remembered": remembered}
        facts = facts.model_copy(update=known)
        rows.append(policy.decide(signals, rules, facts, rows, ledger_id=each.row.ledger_id))
    return rows


def gain_of(row: Ledger, recorded: Sequence[Recorded]) -> Gain | None:
    """Return what acting at a row's time might have gained, by the scores that followed; None: they do not tell.

    Args:
        row: That acts.
        recorded: Monitor runs, oldest first, with performance signals where labels came.
    """
    champion = row.facts.champion if row.facts else None
    later = [each.signals for each in recorded if each.signals.as_of >= row.as_of]
    change = next((i for i, each in enumerate(later) if each.champion and each.champion != champion), None)
    if change is None or champion is None:
        return None
    new = later[change].champion
    end = next((i for i in range(change, len(later)) if later[i].champion != new), len(later))
    before, after = _scores(later[:change]), _scores(later[change:end])
    measure = next((name for name in before if name in after), None)
    if measure is None:
        return None
    earlier = later[change].as_of - row.as_of
    return Gain(measure=measure, earlier=earlier, before=fmean(before[measure]), after=fmean(after[measure]))


def explain(recorded: Sequence[Recorded], rows: Sequence[Ledger]) -> Iterator[str]:
    """Yield what was done beside what would have been done, and what that was worth."""
    stored = {str(each.row.ledger_id): each.row for each in recorded}
    pairs = [(stored[str(row.ledger_id)], row) for row in rows]
    acted = [sum(row.outcome in ORDERS for row in side) for side in zip(*pairs, strict=True)] or [0, 0]
    both = sum(_acts(was) and _acts(now) for was, now in pairs)
    yield f"{len(recorded)} decisions{_span(recorded)}"
    yield f"acted     {acted[0]} times; by this policy {acted[1]} times, {both} of them the same"
    gains = []
    for was, now in pairs:
        if not (_acts(was) or _acts(now)):
            continue
        yield f"{now.as_of:%Y-%m-%d %H:%M}  was {_told(was)}, would be {_told(now)}"
        gain = gain_of(now, recorded) if _acts(now) and not _acts(was) else None
        if gain is not None:
            gains.append(gain)
            hours = gain.earlier / timedelta(hours=1)
            scores = f"{gain.measure} {gain.before:.4f} until the next champion, {gain.after:.4f} with it"
            yield f"                  {hours:g} hours earlier; {scores}: {gain.value:+.4f}"
    if gains:
        mean = fmean(gain.value for gain in gains)
        yield f"gain      {mean:+.4f} in the mean of {len(gains)} actions that were not taken"
    elif acted[1]:
        yield "gain      not known: no action more, or no performance signals before and after a new champion"


def _judge_again(signals: Signals, spec: ModelSpec) -> Signals:
    """Return signals by other limits of distances and of age; what was not judged stays so."""
    found = tuple(_by_limit(signal, spec) for signal in signals.signals)
    return signals.model_copy(update={"signals": found})


def _by_limit(signal: Signal, spec: ModelSpec) -> Signal:
    threshold = signal.threshold
    if signal.kind in ("skew", "drift", "prediction_drift"):
        return _by_distance(signal, spec)
    if signal.kind == "age":
        threshold = spec.monitoring.max_age_days
    if signal.state == "not_judged" or signal.value is None or threshold == signal.threshold:
        return signal
    over = threshold is not None and signal.value > threshold
    return signal.model_copy(update={"threshold": threshold, "state": "exceeded" if over else "ok"})


def _by_distance(signal: Signal, spec: ModelSpec) -> Signal:
    """Return a distance by the file's threshold, else by the limit that was calibrated then, else by the default."""
    if signal.state == "not_judged" or signal.value is None:
        return signal
    limit = limit_of(spec, signal.subject.removesuffix(f" {EARLIER}"), signal.calibrated)
    state = "exceeded" if limit.is_exceeded(signal.value, signal.low) else "ok"
    return signal.model_copy(update={"threshold": limit.value, "state": state})


def _scores(signals: Iterable[Signals]) -> dict[str, list[float]]:
    """Return the scores of the model as a whole, by measure."""
    found: dict[str, list[float]] = {}
    for each in signals:
        for signal in each.signals:
            judged = signal.kind == "performance" and signal.state != "not_judged" and signal.value is not None
            if judged and signal.value is not None and "=" not in signal.subject:
                found.setdefault(signal.measure, []).append(signal.value)
    return found


def _acts(row: Ledger) -> bool:
    return row.outcome in ORDERS


def _told(row: Ledger) -> str:
    return f"{row.outcome} ({row.reason}{f', {row.cause}' if row.cause else ''})"


def _span(recorded: Sequence[Recorded]) -> str:
    if not recorded:
        return ""
    first, last = recorded[0].signals.as_of, recorded[-1].signals.as_of
    return f" from {first:%Y-%m-%d %H:%M} to {last:%Y-%m-%d %H:%M} UTC"
