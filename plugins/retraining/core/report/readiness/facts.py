"""What is stored of a model, as far as its tests ask for it: plain values, which are all unknown by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from retraining.core.signal_kinds import SignalKind


@dataclass(frozen=True, kw_only=True)
class OlderModel:
    """A champion of older data beside a challenger, on the same test rows.

    Attributes:
        days: How much older its data are.
        metric: What the two differ in.
        mean: Challenger minus champion; `low` and `high` are the interval's ends.
    """

    days: float
    metric: str
    mean: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Served:
    """What came of asking the stored model as an endpoint does.

    Attributes:
        rows: Requests of one row whose answers were held against the comparison's.
        strange: Requests with values that are missing or that no example has.
        problem: What was wrong, or why nothing was asked; empty: all was answered.
    """

    rows: int
    strange: int
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What the newest live run with an evaluation left.

    Attributes:
        run_key: Its key.
        registered: Whether it came to a version.
        ended: Whether it went through all tasks, whatever it decided.
        seconds: From its start to its end; None: it has not ended.
        findings: Names of the checks of the data that found something.
        features_measured: Features whose importance was measured.
        harmful: Those of them whose values surely make the answers worse.
        lines: By reference line that was judged, whether it is surely better than the model.
        lines_not_judged: Why there is none; empty: nothing was said.
        slices: Slices that were measured.
        older: The champion beside it.
        served: What came of asking the stored model; None: an earlier release did not.
        worst: Test examples with the largest errors that were kept.
        shows_values: Whether they are there with their features' values.
        trials: Of the study that it made; 0: it made none.
    """

    run_key: str
    registered: bool = False
    ended: bool = False
    seconds: float | None = None
    findings: frozenset[str] = frozenset()
    features_measured: int = 0
    harmful: tuple[str, ...] = ()
    lines: Mapping[str, bool] = field(default_factory=dict)
    lines_not_judged: str = ""
    slices: int = 0
    older: OlderModel | None = None
    served: Served | None = None
    worst: int = 0
    shows_values: bool = False
    trials: int = 0


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
