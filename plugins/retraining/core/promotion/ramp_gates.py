"""What must hold at a step of the ramp before the next: a function of the counts that stand in the rollout.

In: the steps so far, the last one with its looks. Out: its gates, none while it lasts. Errors and slow answers are held
against those of the version before in the same minutes, by evidence that may be looked at every minute
(`two_samples`): all looks at all steps together roll an equal version back at most with `FALSE_ROLLBACKS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from retraining.core.documents import LookCounts, RampGate, RampLook, RampStep, Served
from retraining.core.promotion.latencies import Measured
from retraining.core.promotion.two_samples import Block, Evidence, answers_needed, weigh
from retraining.core.spec.deployment import Canary

FALSE_ROLLBACKS = 0.05
"""Of ramps of equal versions, over all looks, steps, and both tests, which have half of it each."""

FALSE_PROOFS = 0.05
"""Of versions that are worse by just the margin, at the last step: how often one is called as good."""

WORSE = math.log(2 / FALSE_ROLLBACKS)
AS_GOOD = math.log(1 / FALSE_PROOFS)

MOST_BAKES = 4
"""With too few requests a step lasts as many times `bake_minutes`, at most."""

LOOKS_PER_BAKE = 15
"""About: a step of hours is looked at in longer looks, so that its record stays small."""

SAME_MINUTES = "in the same minutes"
"""When the version before answered what the new one is held against."""

_MOST_ODDS = 1_000_000


def look_length(canary: Canary) -> timedelta:
    """Return how long a look is: the same whoever looks, and whenever, so that it is judged alike."""
    return timedelta(minutes=max(1, canary.bake_minutes // LOOKS_PER_BAKE))


def next_looks(canary: Canary, step: RampStep, window: tuple[datetime, datetime]) -> list[tuple[datetime, datetime]]:
    """Return the looks of a step that are over and not noted: start (exclusive) and end.

    Args:
        canary: Of the spec.
        step: That is open.
        window: Its whole minutes that are known by now.
    """
    length, first = look_length(canary), step.looks[0].start if step.looks else window[0]
    start = step.looks[-1].end if step.looks else first
    most = -(-timedelta(minutes=MOST_BAKES * canary.bake_minutes) // length)
    number = max(0, (min(window[1], first + most * length) - start) // length)
    return [(start + index * length, start + (index + 1) * length) for index in range(number)]


def look(
    canary: Canary, minutes: tuple[datetime, datetime], new: Measured, old: Measured, slow_ms: float | None
) -> RampLook:
    """Return what both versions answered in some minutes, as it is noted."""
    return RampLook(
        start=minutes[0],
        end=minutes[1],
        new=_counts(new, slow_ms),
        old=_counts(old, slow_ms / canary.max_latency_ratio if slow_ms else None),
        slow_ms=slow_ms,
    )


def hour_before(old: Measured) -> LookCounts | None:
    """Return what the version before answered before the first step, as it is noted; None: nothing."""
    return LookCounts(requests=old.requests, errors=old.errors) if old.requests else None


def counted(step: RampStep) -> tuple[LookCounts, LookCounts]:
    """Return all looks of a step together, of the new version and of the old one."""
    return _sum([look.new for look in step.looks]), _sum([look.old for look in step.looks])


def judge(canary: Canary, steps: Sequence[RampStep]) -> tuple[RampGate, ...]:
    """Return the gates of the last step; none while it lasts.

    One that errs more often, or is slower, fails at once. Before all traffic both tests must have a verdict. What is
    not measured passes nothing, whatever `on_low_traffic` says: nobody knows how the version answers.

    Args:
        canary: Of the spec.
        steps: So far, with their looks; the answers of the last one, once its minutes are over.
    """
    step = steps[-1]
    if not step.looks:
        return ()
    new, _ = counted(step)
    minutes = (step.looks[-1].end - step.looks[0].start) / timedelta(minutes=1)
    errors, latency = errors_gate(canary, steps), latency_gate(canary, steps)
    found = f"{new.requests} requests in {minutes:g} min"
    if errors.passed is False or latency.passed is False:
        return (RampGate(name="requests", passed=True, message=found), errors, latency)
    if minutes < canary.bake_minutes:
        return ()
    is_last = next(percent for percent in canary.percent if percent > step.percent) == 100
    open_gates = [gate for gate in (errors, latency) if gate.passed is None] if is_last else []
    is_low = new.requests < canary.min_requests
    if (is_low or open_gates) and minutes < MOST_BAKES * canary.bake_minutes:
        return ()
    if step.unmeasured:
        return (RampGate(name="requests", passed=False, message=f"not judged: {step.unmeasured} in {minutes:g} min"),)
    goes_on = canary.on_low_traffic == "continue"
    if is_low:
        message = f"{found}, fewer than {canary.min_requests}"
        return (RampGate(name="requests", passed=goes_on, message=message),)
    if open_gates:
        missing = " and ".join(gate.name for gate in open_gates)
        requests = RampGate(name="requests", passed=goes_on, message=f"{found}, and no verdict on {missing}")
    else:
        requests = RampGate(name="requests", passed=True, message=found)
    return (requests, errors, latency, answers_gate(canary, step))


def replay_steps(canary: Canary, steps: Sequence[RampStep]) -> list[tuple[RampGate, ...]]:
    """Return the gates of all judged steps again, from what stands in them.

    Steps of earlier releases have no looks: of them the stored gates are all that there is.
    """
    judged = [index for index, step in enumerate(steps) if step.end is not None]
    return [judge(canary, steps[: index + 1]) if steps[index].looks else steps[index].gates for index in judged]


def served(counts: LookCounts, latency_ms: float | None) -> Served:
    """Return what people read of a step's counts."""
    return Served(requests=counts.requests, errors=counts.errors, latency_ms=latency_ms)


def errors_gate(canary: Canary, steps: Sequence[RampStep], when: str = SAME_MINUTES) -> RampGate:
    """Return whether the new version errs more often than the one before, by all looks so far.

    Args:
        canary: Of the spec.
        steps: So far, with their looks.
        when: The version before answered, in words.
    """
    before, margin = steps[0].hour_before, canary.max_error_increase
    new, old = counted(steps[-1])
    message = f"{_share(new.errors, new.requests)} of {new.requests} requests, {_share(old.errors, old.requests)}"
    message += f" of {old.requests} before {when}"
    evidence = weigh(
        _blocks(steps, _error_block),
        margin,
        len(canary.percent) - 1,
        (before.requests, before.errors) if before else (0.0, 0.0),
    )
    share = (new.errors + old.errors) / max(1, new.requests + old.requests)
    needed = _needed(canary, share, share, margin, old.requests / max(1, new.requests))
    return _gate("errors", message, evidence, f"{100 * margin:g} points", needed, new.requests)


def latency_gate(canary: Canary, steps: Sequence[RampStep], when: str = SAME_MINUTES) -> RampGate:
    """Return whether the new version answers slowly more often than the one before; arguments as of `errors_gate`."""
    new, old = counted(steps[-1])
    if not new.timed or not old.timed:
        return RampGate(name="latency", passed=None, message=f"not judged: {_untimed(new, old)}")
    slow_ms, ratio = steps[-1].looks[-1].slow_ms, canary.max_latency_ratio
    if slow_ms is None:
        message = f"not judged: fewer than {canary.min_requests} answers of the version before were timed"
        return RampGate(name="latency", passed=None, message=message)
    message = f"{_share(new.slow, new.timed)} of {new.timed} answers took over {slow_ms:.3g} ms, "
    message += f"{_share(old.slow, old.timed)} of {old.timed} before over {slow_ms / ratio:.3g} ms {when}"
    evidence = weigh(_blocks(steps, _latency_block), 0.0, len(canary.percent) - 1)
    shares = new.slow / new.timed, old.slow / old.timed
    needed = _needed(canary, shares[1], shares[0], 0.0, old.timed / new.timed)
    return _gate("latency", message, evidence, f"{ratio:g} times the time", needed, new.timed)


def _untimed(new: LookCounts, old: LookCounts) -> str:
    if new.timed == old.timed:
        return "Cloud Monitoring has no latency of either version"
    return f"Cloud Monitoring has no latency of {'the version before' if new.timed else 'the new version'}"


def _gate(
    name: Literal["errors", "latency"], message: str, evidence: Evidence, margin: str, needed: float, seen: int
) -> RampGate:
    """Return the gate of a test, with its evidence: how many times as likely the counts are as if it were not so."""
    passed = False if evidence.worse >= WORSE else evidence.as_good >= AS_GOOD or None
    if passed is None:
        more = f"about {max(1, math.ceil(needed - seen)):,} more answers" if math.isfinite(needed) else "other answers"
        message = f"not judged: {message}; no verdict at a margin of {margin} without {more}"
    elif passed:
        message += f"; not worse by {margin} ({_odds(evidence.as_good)} to 1, {_odds(AS_GOOD)} needed)"
    else:
        message += f"; worse by more than {margin} ({_odds(evidence.worse)} to 1, {_odds(WORSE)} needed)"
    return RampGate(name=name, passed=passed, message=message)


def answers_gate(canary: Canary, step: RampStep, what: str = "logged answers") -> RampGate:
    """Return whether a step's answers are as promised, or as those of the version before.

    Args:
        canary: Of the spec.
        step: With the shift of its answers.
        what: The answers are, in words.
    """
    shift = step.answers
    if shift is None or (shift.promised is None and shift.before is None):
        message = f"not judged: fewer than {canary.min_requests} {what} of the new version, or of one of both"
        return RampGate(name="answers", passed=None, message=message)
    found = [
        (shift.promised, shift.promised_low, "what it answered to its test split"),
        (shift.before, shift.before_low, "the answers of the version before"),
    ]
    known = [(value, low, what) for value, low, what in found if value is not None and low is not None]
    message = " and ".join(f"{value:.3f} from {what}" for value, _, what in known)
    message += f" ({shift.new} {what}); one of both at most {canary.max_answer_shift:g}"
    passed = any(low <= canary.max_answer_shift for _, low, _ in known)
    return RampGate(name="answers", passed=passed, message=message)


def _needed(canary: Canary, old_share: float, new_share: float, margin: float, old_per_new: float) -> float:
    enough = AS_GOOD + math.log(max(1, len(canary.percent) - 1))
    return answers_needed(old_share, new_share, margin, max(old_per_new, 1e-6), enough)


def _blocks(steps: Sequence[RampStep], block_of: Callable[[RampLook], Block]) -> list[list[Block]]:
    return [[block_of(look) for look in step.looks] for step in steps]


def _error_block(look: RampLook) -> Block:
    new, old = look.new, look.old
    return Block(new=new.requests, new_bad=new.errors, old=old.requests, old_bad=old.errors)


def _latency_block(look: RampLook) -> Block:
    if look.slow_ms is None:
        return Block(new=0, new_bad=0, old=0, old_bad=0)
    new, old = look.new, look.old
    return Block(new=new.timed, new_bad=new.slow, old=old.timed, old_bad=old.slow)


def _counts(measured: Measured, slow_ms: float | None) -> LookCounts:
    times = measured.latencies
    slow = min(float(times.total), times.over(slow_ms)) if slow_ms else 0.0
    return LookCounts(requests=measured.requests, errors=measured.errors, timed=times.total, slow=slow)


def _sum(counts: Sequence[LookCounts]) -> LookCounts:
    timed = sum(each.timed for each in counts)
    return LookCounts(
        requests=sum(each.requests for each in counts),
        errors=sum(each.errors for each in counts),
        timed=timed,
        slow=min(float(timed), math.fsum(each.slow for each in counts)),
    )


def _share(part: float, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "none"


def _odds(log_value: float) -> str:
    value = math.exp(min(log_value, math.log(_MOST_ODDS)))
    return f"over {_MOST_ODDS:,}" if value >= _MOST_ODDS else f"{value:,.0f}"
