"""The section `monitoring` of a model's YAML: what is watched, how often, and when that is reason to retrain."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.spec.cron import Cron
from retraining.core.spec.scoring import SQL_PATTERN, Table
from retraining.core.spec.section import ColumnName, Count, Section

WEEK_HOURS = 168


class DriftLimits(Section):
    """Distance over which (strictly) a feature has drifted. 0.3 is Vertex AI Model Monitoring's default.

    `features` gives single features a threshold of their own. 1 never counts: right for what changes by itself
    within the window, such as the day of the week or the air pressure. `reference_hours` is how long before the window
    the requests were that drift is measured from; null: whole weeks, as many as the window needs, so that a Saturday is
    held against a Saturday.
    """

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.3
    features: dict[ColumnName, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    reference_hours: Annotated[int, Field(ge=1, le=17_520)] | None = None


class ServingLimits(Section):
    """What answers may take and how many may fail, by Cloud Monitoring; strictly more is too much.

    Latency is the model's own at the 99th percentile, in milliseconds and against the earlier window's.
    """

    max_error_rate: Annotated[float, Field(ge=0, le=1)] = 0.01
    max_latency_ms: Annotated[float, Field(gt=0, le=600_000)] | None = None
    max_latency_ratio: Annotated[float, Field(ge=1, le=100)] = 2.0


class PerformanceLimits(Section):
    """How much of its metric the champion may lose before that is reason for a study, and to act on its performance.

    Labels come from `data.query`, or from `labels_query` below include/sql; they find their answers by the key in the
    requests (`deployment.key_input`), or by the caller's own table of request ids and keys.
    """

    max_drop: Annotated[float, Field(gt=0, le=10**12)] = 0.03
    window_days: Annotated[int, Field(ge=1, le=365)] = 7
    labels_query: Annotated[str, StringConstraints(pattern=SQL_PATTERN)] | None = None
    request_keys: Table | None = None


class MultivariateDrift(Section):
    """Whether a classifier can tell requests from training examples; each time costs a query and a job.

    `every_days` null: only when the form asks for it. Strictly over `min_auc` is drift; 0.5 is none. `max_rows` of each
    side are drawn.
    """

    every_days: Annotated[int, Field(ge=1, le=365)] | None = None
    min_auc: Annotated[float, Field(gt=0.5, lt=1)] = 0.6
    max_rows: Annotated[int, Field(ge=200, le=100_000)] = 5000


Action = Literal["none", "warn", "retrain", "tune", "rollback"]
"""What a kind of signal asks for, and what a monitor run comes to; from the mildest to the strongest."""
Clock = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
"""Hour and minute, UTC."""


class Windows(Section):
    """In how many of the last monitor runs, this one among them, a signal must be exceeded before it counts."""

    exceeded: Annotated[int, Field(ge=1, le=100)] = 2
    of: Annotated[int, Field(ge=1, le=100)] = 3

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if self.exceeded > self.of:
            raise ValueError(f"{self.exceeded} of {self.of} windows can never be: write exceeded no larger than of")
        return self


class Actions(Section):
    """What each kind of signal asks for, when it is exceeded."""

    traffic: Action = "warn"
    errors: Action = "warn"
    latency: Action = "warn"
    source: Action = "warn"
    age: Action = "retrain"
    skew: Action = "retrain"
    drift: Action = "warn"
    prediction_drift: Action = "warn"
    performance: Action = "retrain"
    estimate: Action = "warn"
    multivariate: Action = "warn"


class QuietHours(Section):
    """From when to before when, UTC, no retraining is ordered; it may pass midnight."""

    start: Clock
    end: Clock

    @model_validator(mode="after")
    def _some_of_the_day(self) -> Self:
        if self.start == self.end:
            raise ValueError(f"quiet_hours from {self.start} to {self.end} are no hours or all: give another end")
        return self


class Policy(Section):
    """What is done about exceeded signals, how sure it must be, and how often."""

    windows: Windows = Field(default_factory=Windows)
    actions: Actions = Field(default_factory=Actions)
    max_retrainings_per_week: Annotated[int, Field(ge=0, le=1000)] | None = 3
    quiet_hours: QuietHours | None = None
    rollback_within_hours: Annotated[float, Field(gt=0, le=87_600)] = 24
    rollback_pause_days: Annotated[int, Field(ge=1, le=365)] = 3


class Monitoring(Section):
    """What is watched, how often, what is done about it, and how soon another retraining may be ordered."""

    schedule: Cron | None = "0 * * * *"
    window_hours: Annotated[int, Field(ge=1, le=8760)] = 24
    min_requests: Count = 200
    max_gigabytes: Annotated[float, Field(gt=0, le=1_000_000)] = 10
    """That BigQuery may read of the request log in one run."""
    drift: DriftLimits = Field(default_factory=DriftLimits)
    serving: ServingLimits = Field(default_factory=ServingLimits)
    max_source_age_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    """Since each table that the query reads changed; null: as `data.checks.max_age_hours`, if there is one."""
    static_sources: tuple[Table, ...] = ()
    """Tables that the query reads and that seldom change."""
    performance: PerformanceLimits = Field(default_factory=PerformanceLimits)
    multivariate: MultivariateDrift = Field(default_factory=MultivariateDrift)
    max_age_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    cooldown_hours: Annotated[float, Field(ge=0, le=87_600)] = 24
    policy: Policy = Field(default_factory=Policy)

    @property
    def reference_hours(self) -> int:
        """How long before the window the one is that drift is measured from."""
        return self.drift.reference_hours or WEEK_HOURS * -(-self.window_hours // WEEK_HOURS)

    @model_validator(mode="after")
    def _windows_are_apart(self) -> Self:
        if self.reference_hours < self.window_hours:
            raise ValueError(
                f"drift.reference_hours is {self.reference_hours}, less than window_hours {self.window_hours}: the "
                "window would be held against a part of itself. Raise it, or shorten the window"
            )
        return self
