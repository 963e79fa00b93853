"""How traffic goes over to a new version: which share it has at each step, when that is judged, and what must hold.

In: what served before, in percent by deployed-model id; the steps so far; what both versions answered in the same
minutes. Out: the next share, the gates of a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from retraining.core.documents import RampGate, RampStep, Served
from retraining.core.errors import ConflictError
from retraining.core.spec.deployment import Canary

METRICS_LATE = timedelta(minutes=3)
"""Cloud Monitoring shows what endpoints measure up to two minutes later; the request log is quicker."""

SETTLES = timedelta(seconds=10)
"""Between a change of the traffic and the first minute that is looked at, at least."""

MOST_BAKES = 4
"""With too few requests a step lasts as many times `bake_minutes`, at most."""

FIRST_PERCENT = 1
"""The share of a version that no request has met yet, while another one serves; at 0 % it could not be asked."""

LOOK_EVERY_S = 30
"""Between two looks at a step, at least: it is judged by whole minutes. Airflow takes a task that comes back within
seconds for a lost one where its scheduler is busy."""

OUTCOMES = {True: "passed", False: "failed", None: "not judged"}


def first_percent(before: Mapping[str, int]) -> int:
    """Return the share that a version is tried with: little while another one serves, else all.

    Args:
        before: Traffic without it, by deployed-model id; empty: nobody serves.
    """
    return FIRST_PERCENT if before else 100


def next_percent(canary: Canary | None, before: Mapping[str, int], steps: Sequence[RampStep]) -> int:
    """Return the share of the next step.

    Args:
        canary: Of the spec; None: there is one step, to all.
        before: Traffic without the version; empty: nobody is there to compare it with.
        steps: So far, all judged.
    """
    if canary is None or not before:
        return 100
    done = steps[-1].percent if steps else 0
    return next(percent for percent in canary.percent if percent > done)


def open_step(steps: Sequence[RampStep]) -> RampStep | None:
    """Return the step that is not judged yet."""
    return steps[-1] if steps and steps[-1].end is None else None


def window(step: RampStep, now: datetime) -> tuple[datetime, datetime]:
    """Return the whole minutes of a step that are known by now: start (exclusive) and end."""
    return _whole_minute(step.start + SETTLES + timedelta(seconds=59)), _whole_minute(now - METRICS_LATE)


def is_too_early(canary: Canary, seen: tuple[datetime, datetime]) -> bool:
    """Tell whether a step is to be looked at for longer."""
    return _minutes(seen) < canary.bake_minutes


def reason_unmeasured(new: Served, logged: int, smoke_answers: int | None) -> str | None:
    """Return what shows that requests of the new version are not measured; None: that it has none may be believed.

    Args:
        new: What Cloud Monitoring has of the new version in the minutes that are judged.
        logged: Answers of the new version in the request log, in the same minutes.
        smoke_answers: Where it has no request of any version: what it has of the new one since the smoke test, which
            that one answered; None: it is not needed, or there was none.
    """
    if new.requests:
        return None
    if logged:
        return f"the request log has {logged} answers of it, and Cloud Monitoring no request"
    if new.latency_ms is not None:
        return f"Cloud Monitoring has a latency of it ({new.latency_ms:.3g} ms), and no request"
    if smoke_answers == 0:
        return "Cloud Monitoring has no request of any version, not even the smoke requests that it answered"
    return None


def judge(
    canary: Canary,
    seen: tuple[datetime, datetime],
    new: Served,
    old: Served,
    shift: float | None,
    unmeasured: str | None = None,
) -> tuple[RampGate, ...]:
    """Return the gates of a step whose time is over; none while it waits for more requests.

    What is not measured passes nothing, whatever `on_low_traffic` says: nobody knows how the version answers.

    Args:
        canary: Of the spec.
        seen: Whole minutes that are judged.
        new: What the new version answered in them.
        old: What the one before answered.
        shift: Distance of the answers of both; None: too few are logged.
        unmeasured: What shows that requests of the new version are not measured; None: nothing does.
    """
    minutes = _minutes(seen)
    if new.requests < canary.min_requests:
        if minutes < MOST_BAKES * canary.bake_minutes:
            return ()
        if unmeasured:
            return (RampGate(name="requests", passed=False, words=f"not judged: {unmeasured} in {minutes:g} min"),)
        words = f"{new.requests} requests in {minutes:g} min, fewer than {canary.min_requests}"
        return (RampGate(name="requests", passed=canary.on_low_traffic == "continue", words=words),)
    enough = RampGate(name="requests", passed=True, words=f"{new.requests} requests in {minutes:g} min")
    return (enough, _errors(canary, new, old), _latency(canary, new, old), _answers(canary, shift))


def failed_gate(steps: Sequence[RampStep]) -> RampGate | None:
    """Return the gate for which a ramp ended."""
    return next((gate for step in steps for gate in step.gates if gate.passed is False), None)


def changed_traffic(endpoint_name: str, traffic: Mapping[str, int], expected: Mapping[str, int]) -> ConflictError:
    """Return why a ramp does not go on: somebody else shared the requests anew."""
    return ConflictError(
        endpoint_name,
        f"traffic {dict(traffic)}: somebody else changed it during the ramp",
        f"{dict(expected)}",
        "Clear the deploy task to begin again",
    )


def refusal(steps: Sequence[RampStep]) -> str:
    """Return in words why a ramp ended: every gate that failed, with its numbers."""
    failed = "; ".join(f"{gate.name}: {gate.words}" for gate in steps[-1].gates if gate.passed is False)
    return f"Nothing deployed: at {steps[-1].percent} % of the traffic {failed}. What served before serves again."


def outcomes(step: RampStep) -> str:
    """Return in words what came of a step's gates."""
    return ", ".join(f"{gate.name} {OUTCOMES[gate.passed]}" for gate in step.gates) or "not judged"


def _minutes(seen: tuple[datetime, datetime]) -> float:
    return (seen[1] - seen[0]) / timedelta(minutes=1)


def _whole_minute(moment: datetime) -> datetime:
    return moment.replace(second=0, microsecond=0)


def _errors(canary: Canary, new: Served, old: Served) -> RampGate:
    """Hold the rate against its limit; where the version before errs as often, the fault is not the new one's."""
    rate, other = new.errors / new.requests, old.errors / old.requests if old.requests else 0.0
    words = f"{rate:.2%} of {new.requests} requests, {other:.2%} before; at most {canary.max_error_rate:.2%}"
    return RampGate(name="errors", passed=rate <= max(canary.max_error_rate, other), words=words)


def _latency(canary: Canary, new: Served, old: Served) -> RampGate:
    if old.requests < canary.min_requests:
        words = f"not judged: {old.requests} requests of the version before, fewer than {canary.min_requests}"
        return RampGate(name="latency", passed=None, words=words)
    if not new.latency_ms or not old.latency_ms:
        whose = "the version before" if new.latency_ms else "the new version"
        words = f"not judged: Cloud Monitoring has requests of {whose}, and no latency"
        return RampGate(name="latency", passed=None, words=words)
    ratio = new.latency_ms / old.latency_ms
    words = f"{new.latency_ms:.3g} ms, {ratio:.2f} times that of before; at most {canary.max_latency_ratio:g} times"
    return RampGate(name="latency", passed=ratio <= canary.max_latency_ratio, words=words)


def _answers(canary: Canary, shift: float | None) -> RampGate:
    if shift is None:
        words = f"not judged: fewer than {canary.min_requests} logged answers of one of both versions"
        return RampGate(name="answers", passed=None, words=words)
    words = f"{shift:.3f} from those of before; at most {canary.max_answer_shift:g}"
    return RampGate(name="answers", passed=shift <= canary.max_answer_shift, words=words)
