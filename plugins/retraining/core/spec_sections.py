"""The sections of a model's YAML file, as frozen values with their limits and defaults.

Defaults of this project stand here and nowhere else. Unknown keys are refused (`spec_file` adds the suggestion).
"""

from __future__ import annotations

import keyword
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    StringConstraints,
    field_validator,
    model_validator,
)

from retraining.core.check_rules import Severity, severity_problem
from retraining.core.cron import check_cron
from retraining.core.spec_cluster import Cluster, MachineType, Runtime, Section, Strategy, resolve_tier, runtime_problem
from retraining.core.spec_training import (
    AccumulateSteps,
    Callbacks,
    Checkpoint,
    ClipNorm,
    LiteForm,
    Loop,
    Precision,
    Sharding,
    WarmupFraction,
)

Metric = Literal["auc", "accuracy", "log_loss", "brier"]
HIGHER_IS_BETTER: frozenset[str] = frozenset({"auc", "accuracy"})
RESERVED_COLUMNS = frozenset({"span", "part", "shard", "shards", "row_hash", "split"})
MAX_FEATURES = 2000


def _identifier(name: str) -> str:
    if keyword.iskeyword(name) or name.lower() in RESERVED_COLUMNS:
        raise ValueError(f"{name!r} is reserved: give the column another name in the query")
    return name


ColumnName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$"), AfterValidator(_identifier)]
Cron = Annotated[str, AfterValidator(check_cron)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=10**12)]
"""Of rows, or of requests."""
SqlPath = Annotated[str, StringConstraints(max_length=500, pattern=r"^[A-Za-z0-9_][A-Za-z0-9_./-]*\.sql$")]
Scalar = bool | int | float | str
Hyperparameter = Scalar | tuple[Scalar, ...]


class DataChecks(Section):
    """What the examples must satisfy before anything is paid for. Counts are rows, the rest shares in [0, 1].

    `ranges` are closed intervals of numeric features. `max_volume_change` is the share by which a run may have more or
    fewer rows than the median of the last `volume_runs` runs; `severity` overrides a check's own, by its name.
    """

    min_rows: Count = 1000
    max_null_fraction: dict[ColumnName, Fraction] = Field(default_factory=dict)
    label_rate: tuple[Fraction, Fraction] = (0.001, 0.999)
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
    """Where examples come from. `query` and `golden_query` are paths below include/sql; windows are whole UTC days."""

    query: SqlPath
    golden_query: SqlPath | None = None
    key: ColumnName
    event_time: ColumnName
    label_lag_days: Annotated[int, Field(ge=0, le=365)] = 1
    window_days: Annotated[int, Field(ge=2, le=3650)] = 60
    test_days: Annotated[int, Field(ge=1, le=365)] = 7
    validation_percent: Annotated[int, Field(ge=1, le=50)] = 10
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
        if value and ".." in value.split("/"):
            raise ValueError("the path must stay below include/sql: remove '..'")
        return value

    @model_validator(mode="after")
    def _leaves_days_to_train_on(self) -> Self:
        if self.test_days >= self.window_days:
            raise ValueError(
                f"test_days is {self.test_days} of window_days {self.window_days}: no day is left to train on. "
                "Lengthen window_days or shorten test_days"
            )
        return self


class NumericFeature(Section):
    """A number. `missing` names what stands in for NULL: the training mean or zero."""

    name: ColumnName
    kind: Literal["numeric"]
    normalize: bool = True
    missing: Literal["mean", "zero"] = "mean"


class CategoricalFeature(Section):
    """A category. `embedding_dim` null: the trainer chooses it by the number of values."""

    name: ColumnName
    kind: Literal["categorical"]
    embedding_dim: Annotated[int, Field(ge=1, le=1024)] | None = None


class ImageFeature(Section):
    """A PNG or JPEG in a BYTES column, resized once at export; 1 channel is grey, 3 are RGB."""

    name: ColumnName
    kind: Literal["image"]
    height: Annotated[int, Field(ge=1, le=4096)]
    width: Annotated[int, Field(ge=1, le=4096)]
    channels: Literal[1, 3] = 3
    encoding: Literal["raw", "png", "jpeg"] = "raw"


class SequenceFeature(Section):
    """An ARRAY of numbers or categories. Longer ones are cut to `length` at the other end than `keep`."""

    name: ColumnName
    kind: Literal["sequence"]
    of: Literal["numeric", "categorical"]
    length: Annotated[int, Field(ge=1, le=4096)]
    keep: Literal["first", "last"] = "last"
    normalize: bool = True
    embedding_dim: Annotated[int, Field(ge=1, le=1024)] | None = None

    @model_validator(mode="after")
    def _embeds_categories(self) -> Self:
        if self.of == "numeric" and self.embedding_dim is not None:
            raise ValueError("embedding_dim is of categories, and this is a sequence of numbers: remove it")
        return self


class TextFeature(Section):
    """A text as it stands, for architectures that bring a module that reads texts."""

    name: ColumnName
    kind: Literal["text"]


Feature = Annotated[
    NumericFeature | CategoricalFeature | ImageFeature | SequenceFeature | TextFeature, Field(discriminator="kind")
]


class BinaryLabel(Section):
    """What is predicted: 0 or 1."""

    name: ColumnName
    kind: Literal["binary"]


class MulticlassLabel(Section):
    """What is predicted: one of `classes` whole numbers from 0."""

    name: ColumnName
    kind: Literal["multiclass"]
    classes: Annotated[int, Field(ge=2, le=100_000)]


Label = Annotated[BinaryLabel | MulticlassLabel, Field(discriminator="kind")]


class Training(Section):
    """What is trained and how. `batch_size` is per replica; `strategy` distributes it (auto: by the cluster)."""

    model: Annotated[str, StringConstraints(max_length=100, pattern=r"^[a-z][a-z0-9_]*$")]
    epochs: Annotated[int, Field(ge=1, le=10000)] = 5
    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] = 512
    hyperparameters: dict[ColumnName, Hyperparameter] = Field(default_factory=dict)
    early_stopping_patience: Annotated[int, Field(ge=0, le=1000)] = 2
    input: Literal["tfrecord", "csv", "bigquery"] = "tfrecord"
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    strategy: Strategy = "auto"
    loop: Loop = "fit"
    precision: Precision = "float32"
    sharding: Sharding = "auto"
    scale_learning_rate: bool = True
    warmup_fraction: WarmupFraction | None = None
    clip_norm: ClipNorm | None = None
    accumulate_steps: AccumulateSteps = 1
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    callbacks: Callbacks = Field(default_factory=Callbacks)
    export_lite: tuple[LiteForm, ...] = ()
    cluster: Cluster = Field(default_factory=Cluster)
    runtime: Runtime = Field(default_factory=Runtime)

    @field_validator("export_lite")
    @classmethod
    def _forms_are_distinct(cls, value: tuple[LiteForm, ...]) -> tuple[LiteForm, ...]:
        if len(set(value)) < len(value):
            raise ValueError(f"a form stands twice in {list(value)}")
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        cluster = resolve_tier(self.cluster)
        if self.precision == "mixed_float16" and cluster.chief and cluster.chief.is_tpu:
            raise ValueError("a TPU has no float16: use precision mixed_bfloat16, or float32")
        if self.loop == "fit" and self.accumulate_steps > 1:
            raise ValueError(f"accumulate_steps {self.accumulate_steps} needs loop custom: fit takes whole batches")
        servers = cluster.parameter_servers
        if self.loop == "custom" and servers and servers.count:
            raise ValueError("loop custom trains in lockstep: remove parameter_servers, or use loop fit")
        if problem := runtime_problem(self.runtime, cluster, self.input):
            raise ValueError(problem)
        return self


class Promote(Section):
    """When a challenger replaces the champion.

    The lower end of the gain's interval at `confidence` must lie strictly above `min_gain` (negative: that much
    loss is tolerated). No slice of at least `min_slice_examples` rows may lose more than `max_slice_loss`.
    """

    min_gain: Annotated[float, Field(ge=-1, le=1)] = 0.0
    confidence: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    max_slice_loss: Annotated[float, Field(ge=0, le=1000)] = 0.03
    min_examples: Count = 1000
    min_slice_examples: Count = 200


class Evaluation(Section):
    """How a model is judged. The floor is `min_value` where higher is better, `max_value` where lower is."""

    metric: Metric = "auc"
    min_value: float | None = None
    max_value: float | None = None
    slices: Annotated[tuple[ColumnName, ...], Field(max_length=100)] = ()
    promote: Promote = Field(default_factory=Promote)

    @model_validator(mode="after")
    def _has_its_floor(self) -> Self:
        wanted, other = ("min_value", "max_value") if self.metric in HIGHER_IS_BETTER else ("max_value", "min_value")
        if getattr(self, wanted) is None or getattr(self, other) is not None:
            raise ValueError(f"metric {self.metric} needs {wanted}, and no {other}")
        return self

    @property
    def floor(self) -> float:
        """The bound that must be reached: a lower one where higher is better, else an upper one."""
        value = self.min_value if self.min_value is not None else self.max_value
        assert value is not None  # noqa: S101 - the validator above made sure; this tells the type checker
        return value


class Deployment(Section):
    """Where the champion serves. `canary_percent` other than [100] is refused in a file: steps are not built yet."""

    machine: MachineType = "n1-standard-2"
    min_replicas: Annotated[int, Field(ge=1, le=1000)] = 1
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 1
    canary_percent: tuple[Annotated[int, Field(ge=1, le=100)], ...] = (100,)
    approval: bool = False

    @model_validator(mode="after")
    def _ends_with_all(self) -> Self:
        steps = list(self.canary_percent)
        if not steps or steps[-1] != 100 or steps != sorted(set(steps)):
            raise ValueError(f"canary_percent must rise and end with 100, got {steps}")
        if self.max_replicas < self.min_replicas:
            raise ValueError(f"max_replicas {self.max_replicas} is below min_replicas {self.min_replicas}")
        return self


class DriftLimits(Section):
    """Distance over which (strictly) a feature has drifted. 0.3 is Vertex AI Model Monitoring's default.

    `features` gives single features a threshold of their own. 1 never counts: right for what changes by itself
    within the window, such as the day of the week or the air pressure.
    """

    threshold: Annotated[float, Field(gt=0, le=1)] = 0.3
    features: dict[ColumnName, Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)


class PerformanceLimits(Section):
    """How much of its metric the champion may lose, from duel to duel, before that is reason for a study."""

    max_drop: Annotated[float, Field(gt=0, le=1000)] = 0.03


class Monitoring(Section):
    """What is watched, how often, and how soon another retraining may be ordered.

    `max_age_days` is refused in a file: nothing acts on it yet.
    """

    schedule: Cron | None = "0 * * * *"
    window_hours: Annotated[int, Field(ge=1, le=8760)] = 24
    min_requests: Count = 200
    drift: DriftLimits = Field(default_factory=DriftLimits)
    performance: PerformanceLimits = Field(default_factory=PerformanceLimits)
    max_age_days: Annotated[int, Field(ge=1, le=3650)] | None = None
    cooldown_hours: Annotated[float, Field(ge=0, le=87_600)] = 24
