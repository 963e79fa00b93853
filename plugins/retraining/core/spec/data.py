"""The section `data` of a model's YAML: where examples come from, what they must satisfy, how they are exported."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from pathlib import PurePosixPath
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from retraining.core.spec.check_rules import Severity, severity_problem
from retraining.core.spec.cluster import MachineType
from retraining.core.spec.section import ColumnName, Count, Fraction, Section
from retraining.core.spec.source_files import SourceFiles

SamplePercent = Annotated[float, Field(ge=0.001, le=100)]
SqlPath = Annotated[str, StringConstraints(max_length=500, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.sql$")]


_OF_TIME = ("event_time", "days", "label_lag_days", "window_days", "test_days")


class DataChecks(Section):
    """What the examples must satisfy before anything is paid for. Counts are rows, the rest shares in [0, 1].

    `ranges` are closed intervals of numeric features. `max_label_shift` bounds a regression's label: how far a day's
    mean may be from the median mean of its weekday, in deviations of the label within a day. `max_volume_change` is the
    share by which a run may have more or fewer rows than the median of the last `volume_runs` runs; `severity`
    overrides a check's own, by its name.
    """

    min_rows: Count = 1000
    max_null_fraction: dict[ColumnName, Fraction] = Field(default_factory=dict)
    label_rate: tuple[Fraction, Fraction] = (0.001, 0.999)
    max_label_shift: Annotated[float, Field(gt=0, le=1000)] | None = 1.0
    ranges: dict[ColumnName, tuple[float, float]] = Field(default_factory=dict)
    max_age_hours: Annotated[float, Field(gt=0, le=87_600)] | None = None
    max_volume_change: Annotated[float, Field(gt=0, le=1000)] | None = 0.5
    volume_runs: Annotated[int, Field(ge=1, le=100)] = 5
    on_new_category: Literal["warn", "block", "ignore"] = "warn"
    on_vanished_category: Literal["warn", "block", "ignore"] = "warn"
    severity: dict[str, Severity] = Field(default_factory=dict)

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


class Layout(Section):
    """How examples lie in TFRecords.

    `numeric: vector` packs all numeric features into one list `_numeric`, in the order of the spec, NaN for NULL.
    With `rows_per_record` above 1 one Example holds so many rows.
    """

    numeric: Literal["columns", "vector"] = "columns"
    rows_per_record: Annotated[int, Field(ge=1, le=65536)] = 1


class ExportMachines(Section):
    """Machines of the export job: `replicas` equal ones share its shards."""

    replicas: Annotated[int, Field(ge=1, le=100)] = 1
    machine: MachineType = "n1-standard-4"
    spot: bool = False


class Data(Section):
    """Where examples come from. `query` and `golden_query` are paths below include/sql; windows are whole UTC days.

    With `split: hash` examples have no time: all are read, and the test split is a share of the keys. `days` are the
    first and the last day of data that ended: no clock starts a run of it, and a backfill takes these days. Examples of
    `files` need no query. `weight` is a column that says how much an example counts, in training and wherever quality
    is measured.
    """

    query: SqlPath | None = None
    files: SourceFiles | None = None
    golden_query: SqlPath | None = None
    key: ColumnName
    weight: ColumnName | None = None
    split: Literal["time", "hash"] = "time"
    event_time: ColumnName | None = None
    days: Annotated[tuple[date, date] | None, Field(exclude_if=lambda value: value is None)] = None
    time_travel: bool = False
    label_lag_days: Annotated[int, Field(ge=0, le=365)] = 1
    window_days: Annotated[int, Field(ge=2, le=3650)] = 60
    test_days: Annotated[int, Field(ge=1, le=365)] = 7
    test_percent: Annotated[int, Field(ge=1, le=50)] = 10
    validation_percent: Annotated[int, Field(ge=1, le=50)] = 10
    sample_percent: SamplePercent = 100.0
    rows_per_shard: Annotated[int, Field(ge=1000, le=10**9)] = 100_000
    shard_mb: Annotated[int, Field(ge=1, le=1024)] = 64
    compression: Literal["GZIP", "NONE"] = "GZIP"
    layout: Layout = Field(default_factory=Layout)
    schema_version: Annotated[int, Field(ge=1, le=10**6)] = 1
    export: ExportMachines = Field(default_factory=ExportMachines)
    keep_table_days: Annotated[int, Field(ge=1, le=90)] = 7
    checks: DataChecks = Field(default_factory=DataChecks)

    @field_validator("query", "golden_query")
    @classmethod
    def _stays_inside(cls, value: str | None) -> str | None:
        if value and ".." in PurePosixPath(value).parts:
            raise ValueError("the path must stay below include/sql: remove '..'")
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
