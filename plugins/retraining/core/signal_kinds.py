"""The kinds of signals that the monitor watches, each with what policy, messages and pages need of it.

A kind is its row here, its action in `core/spec/monitoring.py` (`Actions`), and the function that judges it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SignalKind = Literal[
    "traffic",
    "errors",
    "latency",
    "source",
    "age",
    "skew",
    "drift",
    "prediction_drift",
    "performance",
    "estimate",
    "multivariate",
    "attributions",
]
"""What is watched: skew is against the champion's training data, drift against earlier requests."""


@dataclass(frozen=True, kw_only=True)
class KindOfSignal:
    """What a kind of signal stands for.

    Attributes:
        message: What a message calls it when it is exceeded.
        cause: What a page says a run was started by.
        of_champion: It says something about the version that serves: windows of another one do not count.
        at_once: One window says it: it does not come and go by chance, or is not looked at in every window.
        days_of: Whose days a retraining must train on to be of help, so that an order waits for them: those of the
            requests, of the answers, of the answers whose labels are known, or any since the champion's. None: it is no
            matter of days, or (drift from an earlier window) over by then.
    """

    message: str
    cause: str
    of_champion: bool = False
    at_once: bool = False
    days_of: Literal["requests", "answers", "labels", "champion"] | None = None


SIGNAL_KINDS: Mapping[SignalKind, KindOfSignal] = {
    "traffic": KindOfSignal(message="unusual traffic", cause="the number of requests"),
    "errors": KindOfSignal(message="too many errors", cause="errors of the endpoint", of_champion=True),
    "latency": KindOfSignal(message="too high latency", cause="slow answers of the endpoint", of_champion=True),
    "source": KindOfSignal(message="a source that is too old", cause="the state of the source"),
    "age": KindOfSignal(
        message="a champion that is too old", cause="the age of the model that serves", at_once=True, days_of="champion"
    ),
    "skew": KindOfSignal(
        message="skew of the requests against the training data",
        cause="requests unlike the training data",
        of_champion=True,
        days_of="requests",
    ),
    "drift": KindOfSignal(message="drift of the requests", cause="requests unlike those before"),
    "prediction_drift": KindOfSignal(
        message="drift of the answers", cause="answers unlike those before", of_champion=True
    ),
    "performance": KindOfSignal(
        message="a lower score once labels came",
        cause="worse answers, now that their labels are known",
        of_champion=True,
        days_of="labels",
    ),
    "estimate": KindOfSignal(
        message="a lower score expected",
        cause="worse answers, as estimated before their labels are known",
        of_champion=True,
        days_of="answers",
    ),
    "multivariate": KindOfSignal(
        message="drift of the requests as a whole",
        cause="requests that a classifier tells from the training data",
        of_champion=True,
        at_once=True,
        days_of="requests",
    ),
    "attributions": KindOfSignal(
        message="drift of the attributions",
        cause="answers that rest on other features than on the test days",
        of_champion=True,
        at_once=True,
        days_of="requests",
    ),
}
