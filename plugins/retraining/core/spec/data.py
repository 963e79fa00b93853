"""The section `data` of a model's YAML: where examples come from, what they must satisfy, how they are exported."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, field_validator, model_validator

from retraining.core.spec.check_rules import Severity, severity_problem
from retraining.core.spec.cluster import MachineType
from retraining.core.spec.section import ColumnName, Count, Fraction, Section
from retraining.core.spec.source_files import SourceFiles

SamplePercent = Annotated[float, Field(ge=0.001, le=100)]


def _stays_inside(value: str) -> str:
    if ".." in PurePosixPath(value).parts:
        raise ValueError("the path must stay below include/sql: remove '..'")
    return value


SqlPath = Annotated[
    str,
    StringConstraints(max_length=500, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.sql$"),
    AfterValidator(_stays_inside),
]

VALIDATION_PERCENT = 10
LEAST_VALIDATION_DAYS = 2
"""Expected in the validation split: with fewer, a short window may have none."""
MOST_DAYS = 400
"""To train on; a longer window is often that of monthly or yearly data, which may have none of the chosen days."""
_OF_TIME = ("event_time", "days", "label_lag_days", "window_days", "test_days", "validation_by")


class DataChecks(Section):
    """What must hold before anything is paid for. Counts are rows, the rest shares in [0, 1]."""

    min_rows: Count = 1000
    """Rows in the window, all splits; of a sample its share of them."""
    max_null_fraction: dict[ColumnName, Fraction] = Field(default_factory=dict)
    """By feature: largest share of missing values."""
    label_rate: tuple[Fraction, Fraction] = (0.001, 0.999)
    """Bounds of the label's mean in each split; with several classes the upper one bounds the share of the most
    frequent class."""
    max_label_shift: Annotated[float, Field(gt=0, le=1000)] | None = 1.0
    """How far a day's mean label may be from the median of the means of the days of its weekday, of a regression. In
    deviations of the label within a day; of all days where there are fewer than three of the weekday; `null`: not
    checked."""
    ranges: dict[ColumnName, tuple[float, float]] = Field(default_factory=dict)
    """By numeric feature: `[low, high]`, both included."""
    max_age_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    """How much older than the window's end the newest example may be; `null`: not checked."""
    max_volume_change: Annotated[float, Field(gt=0, le=1000)] | None = 0.5
    """Share of rows per day more or less than the median of the last runs; `null`: not checked."""
    volume_runs: Annotated[int, Field(ge=1, le=100)] = 5
    """With how many of the last runs the rows are compared."""
    on_new_category: Literal["warn", "block", "ignore"] = "warn"
    """What a category does that the test days have and training lacks."""
    on_vanished_category: Literal["warn", "block", "ignore"] = "warn"
    """What a category does that the last run's training had and that is gone from the test days."""
    severity: dict[str, Severity] = Field(default_factory=dict)
    """By check, instead of its own; `quarantine` leaves out the day: [all checks](checks.md)."""

    @field_validator("severity")
    @classmethod
    def _checks_are_known(cls, value: dict[str, Severity]) -> dict[str, Severity]:
        problem = severity_problem(value)
        if problem:
            raise ValueError(problem)
        return value

    @field_validator("ranges")
    @classmethod
    def _rising(cls, value: dict[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        for name, (low, high) in value.items():
            if not low <= high:
                raise ValueError(f"the range of {name} must be [low, high], got {[low, high]}")
        return value

    @field_validator("label_rate")
    @classmethod
    def _ordered(cls, value: tuple[float, float]) -> tuple[float, float]:
        if not value[0] < value[1]:
            raise ValueError(f"the lower bound must be below the upper one, got {list(value)}")
        return value


class Assertion(Section):
    """A query of one's own: each row that it gives is something [wrong with the data](checks.md#your-own-checks)."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,60}$")]
    """What findings call it."""
    query: SqlPath
    """Path below `include/sql`: one SELECT, in which the run's examples are the table `examples`. It may use
    `@window_start`, `@window_end` and `@as_of`; with `split: hash` `@as_of` alone."""
    severity: Literal["block", "warn"] = "block"
    """Whether a row ends the run before training is paid for, or is a finding that the run goes on with."""


class Layout(Section):
    """How examples lie in TFRecords."""

    numeric: Literal["columns", "vector"] = "columns"
    """`vector`: all numeric features in one list `_numeric`, in the order of the spec, NaN for NULL; reads several
    times faster."""
    rows_per_record: Annotated[int, Field(ge=1, le=65536)] = 1
    """Rows in one Example; above 1 it reads faster still, and cannot hold array columns."""


class ExportMachines(Section):
    """Machines of the export job."""

    replicas: Annotated[int, Field(ge=1, le=100)] = 1
    """Equal machines that share the shards."""
    machine: MachineType = "n1-standard-4"
    """Of each."""
    spot: bool = False
    """Whether they are spot machines."""


def takes_whole_days(days: int, percent: int = VALIDATION_PERCENT) -> bool:
    """Return whether `auto` takes whole days for validation, of so many that are left to train on."""
    return days * percent >= LEAST_VALIDATION_DAYS * 100 and days <= MOST_DAYS


class Data(Section):
    """Where the examples come from; windows are whole UTC days."""

    query: SqlPath | None = None
    """Path below `include/sql`; needed unless there are `files`: one SELECT, one row per example. It uses
    `@window_start`, `@window_end` (half-open) and `@as_of`, or is refused; with `split: hash` it has `@as_of` alone,
    and may leave it out."""
    files: SourceFiles | None = None
    """[Files in Cloud Storage](data.md#files) as the source: the query reads them as the table `files`. Without a query
    every row is an example."""
    golden_query: SqlPath | None = None
    """Path below `include/sql`: a frozen set of examples that every run's models are judged on beside the test days.
    They never train."""
    key: ColumnName
    """Identifies an example; decides train or validation, and the shard, for life."""
    weight: ColumnName | None = None
    """Says [how much an example counts](evaluation.md#weights), as a number from 0 on. In the loss (over the training
    split's mean weight), in the metrics of epochs and trials, and in all that the evaluation measures. It is no feature
    and is not asked for when serving."""
    split: Literal["time", "hash"] = "time"
    """How the test split is found: the newest days, or by hash, for [examples without a
    time](data.md#examples-without-a-time)."""
    event_time: ColumnName | None = None
    """TIMESTAMP, DATETIME or DATE whose UTC day is the example's span; needed unless `split` is `hash`."""
    days: Annotated[tuple[date, date] | None, Field(exclude_if=lambda value: value is None)] = None
    """First and last day of data that ended, such as `[2013-01-01, 2013-12-31]`; `null`: it goes on. No clock starts a
    run or a monitor of it, and a [backfill](operations.md#backfill) takes these days. `make new-model` writes it for a
    table without a new row for a month."""
    time_travel: bool = False
    """Whether the query reads its tables [as they were at `as_of`](data.md#tables-as-they-were)."""
    label_lag_days: Annotated[int, Field(ge=0, le=365)] = 1
    """Days after the event until the label is known: the window ends so many before `as_of`, at midnight UTC."""
    window_days: Annotated[int, Field(ge=2, le=3650)] = 60
    """Days of examples."""
    test_days: Annotated[int, Field(ge=1, le=365)] = 7
    """The newest days of the window: the test split, never trained on in that run."""
    test_percent: Annotated[int, Field(ge=1, le=50)] = 10
    """With `split: hash`: the share of all examples, chosen by hash of the key, that is the test split."""
    validation_percent: Annotated[int, Field(ge=1, le=50)] = VALIDATION_PERCENT
    """Share of the other examples that early stopping watches, and thresholds and trials are judged by."""
    validation_by: Annotated[Literal["auto", "days", "rows"], Field(exclude_if=lambda value: value == "auto")] = "auto"
    """Whether that share is [whole days](data.md#whole-days), or rows by hash of the key. `auto`: days, where it has 2
    of them or more, and at most 400 are left to train on; else rows."""
    sample_percent: SamplePercent = 100.0
    """Share of the examples that a run reads, chosen by hash of the key: [a sample](data.md#a-sample). Also a Param."""
    rows_per_shard: Annotated[int, Field(ge=1000, le=10**9)] = 100_000
    """Rows of a TFRecord file, about."""
    shard_mb: Annotated[int, Field(ge=1, le=1024)] = 64
    """MB of rows in a TFRecord file, at most and about (measured as JSON text)."""
    compression: Literal["GZIP", "NONE"] = "GZIP"
    """Of the TFRecord files."""
    layout: Layout = Field(default_factory=Layout)
    schema_version: Annotated[int, Field(ge=1, le=10**6)] = 1
    """Raise it to accept other columns or types of the query than the last run had."""
    export: ExportMachines = Field(default_factory=ExportMachines)
    keep_table_days: Annotated[int, Field(ge=1, le=90)] = 7
    """Days until the run table expires by itself."""
    checks: DataChecks = Field(default_factory=DataChecks)
    assertions: Annotated[tuple[Assertion, ...], Field(max_length=50, exclude_if=lambda value: not value)] = ()
    """[Checks of one's own](checks.md#your-own-checks), in SQL."""

    @field_validator("assertions")
    @classmethod
    def _assertions_are_told_apart(cls, value: tuple[Assertion, ...]) -> tuple[Assertion, ...]:
        names = [assertion.name for assertion in value]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"assertions has the name {twice!r} twice: rename one of them")
        return value

    @field_validator("days")
    @classmethod
    def _days_rise(cls, value: tuple[date, date] | None) -> tuple[date, date] | None:
        if value and value[0] > value[1]:
            raise ValueError(f"days are the first and the last, got {value[0]} and {value[1]}: swap them")
        return value

    @property
    def whole_as_of(self) -> datetime | None:
        """The time from which on a run's window holds the last day of data that ended; None: it goes on."""
        if self.days is None:
            return None
        return datetime.combine(self.days[1] + timedelta(days=1 + self.label_lag_days), time(), tzinfo=UTC)

    def with_validation(self) -> Self:
        """Return what a run does: `auto` as days where it means days; else, as in plans of earlier releases, rows."""
        left = self.window_days - self.test_days
        if self.split == "hash" or self.validation_by != "auto" or not takes_whole_days(left, self.validation_percent):
            return self
        return self.model_copy(update={"validation_by": "days"})

    @property
    def source_name(self) -> str:
        """What messages call the place that examples come from: the query's file, or `data.files`."""
        return self.query or "data.files"

    @property
    def tested_name(self) -> str:
        """What messages call the test split: its days, or its rows where examples have no time."""
        return "test days" if self.split == "time" else "test rows"

    @model_validator(mode="after")
    def _has_a_source(self) -> Self:
        if self.files is None:
            if self.query is None:
                raise ValueError("query is missing: name a file below include/sql, or the source's files in data.files")
            return self
        if self.time_travel:
            raise ValueError("time_travel is of tables, and files have none: remove it, or files")
        if self.query is None:
            named = {"key": self.key, "event_time": self.event_time, "weight": self.weight}
            for role, column in named.items():
                if column is not None and column not in self.files.names:
                    raise ValueError(
                        f"{role} is {column!r}, which is not among files.columns: {', '.join(self.files.names)}"
                    )
        return self

    @model_validator(mode="after")
    def _keys_are_of_the_split(self) -> Self:
        if self.split == "time" and self.event_time is None:
            raise ValueError(
                "event_time is missing: name the column with the event's time, or set split: hash for examples "
                "without a time"
            )
        unused = ("test_percent",) if self.split == "time" else _OF_TIME
        for name in unused:
            if getattr(self, name) != type(self).model_fields[name].default:
                raise ValueError(f"{name} means nothing with split: {self.split}: remove it, or use the other split")
        if self.split == "hash":
            self._looks_at_no_day()
        return self

    def _looks_at_no_day(self) -> None:
        if self.checks.max_age_hours is not None:
            raise ValueError(
                "checks.max_age_hours means nothing with split: hash, whose examples have no time: remove it"
            )
        for name, severity in self.checks.severity.items():
            if severity == "quarantine" or name == "day_volume":
                raise ValueError(
                    f"checks.severity.{name} is about single days, which split: hash does not have: remove it"
                )

    @model_validator(mode="after")
    def _leaves_days_to_train_on(self) -> Self:
        if self.test_days >= self.window_days:
            raise ValueError(
                f"test_days is {self.test_days} of window_days {self.window_days}: no day is left to train on. "
                "Lengthen window_days or shorten test_days"
            )
        return self
