"""The section `monitoring` of a model's YAML: what is watched, how often, and when that is reason to retrain."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.spec.features import is_none
from retraining.core.spec.scoring import SQL_PATTERN, Table
from retraining.core.spec.section import ColumnName, Count, Cron, Section

WEEK_HOURS = 168


class DriftLimits(Section):
    """Distances: L-infinity for categories, Jensen-Shannon for numbers, both in [0, 1]."""

    threshold: Annotated[float, Field(gt=0, le=1)] | None = None
    """Strictly over it, a feature's skew or drift is exceeded. `null`: each feature has a limit of its own, by how far
    its [training days](monitoring.md#limits) are from each other."""
    features: dict[ColumnName, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    """Thresholds of single features. 1 never counts: right for what changes by itself within the window, such as the
    day of the week. Also of the label and of auxiliary ones: how far the champion's answers are from those to its test
    days."""
    reference_hours: Annotated[int, Field(ge=1, le=17_520)] | None = None
    """How long before the window the requests were that drift is measured from. `null`: whole weeks, as many as the
    window needs, so that a Saturday is held against a Saturday."""


class ServingLimits(Section):
    """Answers, by Cloud Monitoring; strictly more is too much."""

    max_error_rate: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of a version's requests answered with 429, or 500 and above."""
    max_latency_ms: Annotated[float, Field(gt=0, le=600_000)] | None = None
    """Milliseconds of a version's own latency, at the 99th percentile; `null`: any."""
    max_latency_ratio: Annotated[float, Field(ge=1, le=100)] = 2.0
    """Of the same latency, against the earlier window's."""


class PerformanceLimits(Section):
    """What the champion may lose."""

    max_drop: Annotated[float, Field(gt=0, le=10**12)] = 0.03
    """Loss of `evaluation.metric`, from the comparison that made the champion to its newest one, that is reason for a
    [study](tuning.md#when-it-runs). That is where `tuning.search` is `auto`; and so much its answers may lose before
    their [performance](monitoring.md#labels) is exceeded. Must be written where the metric is in the label's unit and
    `tuning.search` is `auto`."""
    window_days: Annotated[int, Field(ge=1, le=365)] = 7
    """Days of requests whose answers are [held against labels](monitoring.md#labels)."""
    labels_query: Annotated[str, StringConstraints(pattern=SQL_PATTERN)] | None = None
    """Query of labels below `include/sql`; `null`: `data.query` gives them."""
    request_keys: Table | None = None
    """Table of request ids and keys, where the key does not come with the request (`deployment.key_input`)."""


class MultivariateDrift(Section):
    """Whether a classifier can tell requests from training examples."""

    every_days: Annotated[int, Field(ge=1, le=365)] | None = None
    """Days between two at least; `null`: only when the form asks for it."""
    min_auc: Annotated[float, Field(gt=0.5, lt=1)] = 0.6
    """Strictly over it, requests can be told from training examples; 0.5 is not at all."""
    max_rows: Annotated[int, Field(ge=200, le=100_000)] = 5000
    """Rows that are drawn of the requests, and of the training examples."""


class AttributionDrift(Section):
    """Whether the answers rest on the features that they rested on when the champion was tested."""

    every_hours: Annotated[int, Field(ge=6, le=8760)] = 24
    """Hours between two times that the endpoint is asked, at least; monitor runs between them repeat what came of the
    last."""
    requests: Annotated[int, Field(ge=30, le=5000)] = 100
    """Of the window, that are explained; and once for each version as many of its test examples."""
    max_predictions: Annotated[int, Field(ge=1000, le=1_000_000)] = 20_000
    """That the endpoint is asked for in one run. A row costs features + 1; where that is more than this allows, fewer
    rows are explained."""
    max_shift: Annotated[float, Field(gt=0, lt=1)] = 0.25
    """Strictly over it, too much of what all features add to the answers (1) has moved to other features, beyond what
    chance makes of so few rows."""


Action = Literal["none", "warn", "retrain", "tune", "rollback"]
"""What a kind of signal asks for, and what a monitor run comes to; from the mildest to the strongest."""
Clock = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
"""Hour and minute, UTC."""


class Windows(Section):
    """In how many of the last monitor runs a signal must be exceeded before it counts."""

    exceeded: Annotated[int, Field(ge=1, le=100)] = 2
    """At most `of`; a signal of kind `age`, `multivariate` or `attributions` counts at once."""
    of: Annotated[int, Field(ge=1, le=100)] = 3
    """This run and those before it."""

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if self.exceeded > self.of:
            raise ValueError(f"{self.exceeded} of {self.of} windows can never be: write exceeded no larger than of")
        return self


class Actions(Section):
    """What each kind of signal asks for, when it is exceeded."""

    traffic: Action = "warn"
    """Requests."""
    errors: Action = "warn"
    """Share of requests that failed."""
    latency: Action = "warn"
    """Of answers."""
    source: Action = "warn"
    """Tables that the query reads."""
    age: Action = "retrain"
    """The champion's data is older than `max_age_days`."""
    skew: Action = "retrain"
    """Requests against the champion's training data."""
    drift: Action = "warn"
    """Requests against an earlier window."""
    prediction_drift: Action = "warn"
    """Answers against an earlier window, or the training labels."""
    performance: Action = "retrain"
    """The champion's score, once labels came."""
    estimate: Action = "warn"
    """The score that is expected before labels come."""
    multivariate: Action = "warn"
    """All features together."""
    attributions: Action = "warn"
    """How much each feature matters for the answers."""


class QuietHours(Section):
    """From when to before when, UTC, no retraining is ordered; it may pass midnight."""

    start: Clock
    """In quotes: `"22:00"`."""
    end: Clock
    """Exclusive; earlier than `start`: on the next day."""

    @model_validator(mode="after")
    def _some_of_the_day(self) -> Self:
        if self.start == self.end:
            raise ValueError(f"quiet_hours from {self.start} to {self.end} are no hours or all: give another end")
        return self


class Policy(Section):
    """What is done about exceeded signals, how sure it must be, and how often."""

    windows: Windows = Field(default_factory=Windows)
    """A signal counts when it was exceeded in `exceeded` of the last `of` monitor runs."""
    actions: Actions = Field(default_factory=Actions)
    """What each kind of signal asks for, when it is exceeded; a signal whose input was wrong warns at most. `tune`:
    retrain, with a study of hyperparameters; needs a section `tuning`."""
    max_retrainings_per_week: Annotated[int, Field(ge=0, le=1000)] | None = 3
    """That the monitor orders in any 7 days; `null`: no limit, `0`: none. Runs by schedule or by hand do not count."""
    quiet_hours: QuietHours | None = None
    """Hours in which no retraining is ordered: the first monitor run after them decides anew. A rollback is not held
    back."""
    rollback_within_hours: Annotated[float, Field(gt=0, le=87_600)] = 24
    """Hours: a rollback is ordered for a champion that serves for less than this."""
    rollback_pause_days: Annotated[int, Field(ge=1, le=365)] = 3
    """Days that retraining is paused, from a rollback that was ordered until midnight UTC."""


class Monitoring(Section):
    """What is watched, how often, and what is done about it."""

    schedule: Cron | None = "0 * * * *"
    """Of `monitor__<model>`, UTC; `null`: only by hand."""
    window_hours: Annotated[int, Field(ge=1, le=8760)] = 24
    """Hours of requests that are looked at, the last ones."""
    min_requests: Count = 200
    """Fewer requests are not judged."""
    max_gigabytes: Annotated[float, Field(gt=0, le=1_000_000)] = 10
    """That BigQuery may read of the request log in one run; more is not read, and said."""
    drift: DriftLimits = Field(default_factory=DriftLimits)
    serving: ServingLimits = Field(default_factory=ServingLimits)
    max_source_age_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    """Since each table that the query reads (or the source's files) changed. `null`: as `data.checks.max_age_hours`, if
    there is one."""
    static_sources: tuple[Table, ...] = ()
    """Tables that the query reads and that seldom change: not held against it."""
    performance: PerformanceLimits = Field(default_factory=PerformanceLimits)
    multivariate: MultivariateDrift = Field(default_factory=MultivariateDrift)
    """[All features together](monitoring.md#multivariate-drift), by a classifier; each time costs a query and a job."""
    attributions: Annotated[AttributionDrift | None, Field(exclude_if=is_none)] = None
    """Whether [how much each feature matters](monitoring.md#attributions) for the answers is watched; `null`: no. Each
    time costs predictions of the endpoint."""
    max_age_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    """A champion whose data ended longer ago is exceeded in `age` ([policy](monitoring.md#policy)); `null`: no age is
    too high."""
    cooldown_hours: Annotated[float, Field(ge=0, le=87_600)] = 24
    """Hours between two ordered retrainings; doubles (up to 16 times) while retraining makes no new champion. So for
    studies that the champion's loss is reason for."""
    policy: Policy = Field(default_factory=Policy)
    """What is done about [exceeded signals](monitoring.md#policy), how sure it must be, and how often."""

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
