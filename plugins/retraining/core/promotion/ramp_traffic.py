"""How long a ramp takes to a verdict, by what the endpoint was asked of late: said before anything is paid.

In: the canary of the spec, and what the endpoint answered in some time. Out: requests, minutes, and a sentence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta

from retraining.core.promotion.latencies import Measured
from retraining.core.promotion.ramp_gates import AS_GOOD, MOST_BAKES
from retraining.core.promotion.two_samples import answers_needed
from retraining.core.spec.deployment import Canary


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a ramp's last step before all traffic needs.

    Attributes:
        answers: Of the new version, about, so that one that is as good is called so.
        minutes: Until it has them; `inf` where nobody asks, or no number is enough.
        first_minutes: Until the first step has its `min_requests`.
    """

    answers: float
    minutes: float
    first_minutes: float


def verdict(canary: Canary, measured: Measured, during: timedelta) -> Verdict | None:
    """Return what a version as good as the present one needs; None: all traffic comes at once.

    Args:
        canary: Of the spec.
        measured: All that the endpoint answered.
        during: In how long.
    """
    shares = [percent / 100 for percent in canary.percent if percent < 100]
    if not shares:
        return None
    last, a_minute = shares[-1], measured.requests / (during / timedelta(minutes=1))
    old_per_new = (1 - last) / last
    enough = AS_GOOD + math.log(len(shares))
    rate = measured.errors / measured.requests if measured.requests else 0.0
    answers = answers_needed(rate, rate, canary.max_error_increase, old_per_new, enough)
    times = measured.latencies
    if slow_ms := times.slow_ms(canary.max_latency_ratio):
        slower, slow = (times.over(bound) / times.total for bound in (slow_ms / canary.max_latency_ratio, slow_ms))
        answers = max(answers, answers_needed(slower, slow, 0.0, old_per_new, enough))
    minutes = answers / (last * a_minute) if a_minute else math.inf
    first = canary.min_requests / (shares[0] * a_minute) if a_minute else math.inf
    return Verdict(answers=answers, minutes=minutes, first_minutes=first)


def explain_verdict(canary: Canary, measured: Measured, during: timedelta) -> str | None:
    """Return in words how long the ramp takes to its verdict at this traffic; None: there are no steps."""
    found, most = verdict(canary, measured, during), MOST_BAKES * canary.bake_minutes
    if found is None:
        return None
    hour = measured.requests / (during / timedelta(hours=1))
    asked = f"ramp: {hour:,.0f} requests an hour in the last {during / timedelta(hours=1):g} hours"
    last = max(percent for percent in canary.percent if percent < 100)
    if math.isinf(found.minutes):
        return f"{asked}: no verdict at {last} % of the traffic, however long it lasts; {_policy(canary)}"
    needs = (
        f"at {last} % a verdict takes about {found.answers:,.0f} answers of the new version, {found.minutes:,.0f} min"
    )
    if found.minutes > most:
        return f"{asked}; {needs}, and a step lasts {most} at most: {_policy(canary)}"
    first = min(canary.percent)
    if found.first_minutes > most:
        needs = f"at {first} % {canary.min_requests} requests take {found.first_minutes:,.0f} min"
        return f"{asked}; {needs}, and a step lasts {most} at most: {_policy(canary)}"
    return f"{asked}; {needs} of the {canary.bake_minutes} to {most} that the step lasts"


def _policy(canary: Canary) -> str:
    then = {"stop": "gives the traffic back", "continue": "goes on without having judged"}[canary.on_low_traffic]
    way_out = "a wider max_error_increase, more bake_minutes, a larger last share"
    return f"canary.on_low_traffic: {canary.on_low_traffic} {then} (way out: {way_out})"
