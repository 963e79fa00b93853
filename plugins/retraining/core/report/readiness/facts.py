"""What is stored of a model, as far as its tests ask for it: plain values, which are all unknown by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from retraining.core.documents.readiness import RunFacts
from retraining.core.signal_kinds import SignalKind


@dataclass(frozen=True, kw_only=True)
class Look:
    """The newest look of the monitor in which a kind of signal was held against its limit.

    Attributes:
        as_of: When.
        signals: How many of the kind were.
    """

    as_of: datetime
    signals: int


@dataclass(frozen=True, kw_only=True)
class LiveScore:
    """A version's score on its test days, and that of its live answers once their labels came."""

    version_id: str
    tested: float
    live: float


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is stored of a model.

    Attributes:
        day: On which it is scored, UTC: what a person states grows old.
        recipients: People and channels that are told of it, those of the settings among them.
        run: None: no run with an evaluation was found.
        looks: Of the monitor, by kind of signal.
        live: Versions that were measured both ways, in `evaluation.metric`.
        higher_is_better: Of that metric.
        rollback: The last way back, in a few words; empty: there was none.
    """

    day: date
    recipients: int = 0
    run: RunFacts | None = None
    looks: Mapping[SignalKind, Look] = field(default_factory=dict)
    live: tuple[LiveScore, ...] = ()
    higher_is_better: bool = True
    rollback: str = ""
