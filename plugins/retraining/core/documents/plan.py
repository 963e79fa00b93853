"""The plan: everything a run was asked to do, resolved once. All later steps read only this. And the pause of runs."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue, model_validator

from retraining.core.documents.document import (
    Count,
    Day,
    Document,
    ModelId,
    Number,
    Positive,
    RunKey,
    Sha256,
    Text,
    Uri,
    UtcTime,
    Value,
)
from retraining.core.documents.training import Hyperparameters
from retraining.core.spec.cluster import Accelerator
from retraining.core.spec.model import ModelSpec

Mode = Literal["live", "backfill"]


class TriggerEvent(Value):
    """What an asset's events said of one cause: the newest of them, and how many there were.

    `cause` is `kind:subject`, such as `skew:carrier`, `new_data:flights.flights` or `asset:shop/parcels`.
    """

    cause: Text
    reason: Text = Field(alias="reason")
    at: UtcTime
    as_of: UtcTime | None = None
    ledger_uri: Uri | None = None
    times: Positive = 1


class Trigger(Value):
    """Who started the run, and the reason given.

    Of a run that asset events started, `cause` and `reason` are of the newest, and `events` has each cause once, that
    one first. In a plan of an earlier release there are none.
    """

    kind: Literal["manual", "scheduled", "backfill", "asset"]
    reason: str = Field(alias="reason")
    cause: Text | None = None
    events: tuple[TriggerEvent, ...] = ()


class Window(Value):
    """Whole UTC days of examples, half-open: `[start, end)`; days from `test_start` on are the test split."""

    start: Day
    end: Day
    test_start: Day

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.start < self.test_start < self.end:
            raise ValueError(f"expected start < test_start < end, got {self.start}, {self.test_start}, {self.end}")
        return self


class Query(Value):
    """A query for examples: path below `include/sql`, its text, and the SHA-256 of the text."""

    path: Text
    sql: Text
    sha256: Sha256


class GateCode(Value):
    """The code of a gate of the team's own: how the file names it, and the SHA-256 of the source file that has it."""

    function: Text
    sha256: Sha256
    package: Text | None = None
    """Distribution and version that has it; null: it is a file of the folder `gates` in `include`."""


class Estimate(Value):
    """List price before the run, in US dollars.

    `per_hour` is each task's machines on demand; `at_most` is their sum over the tasks' timeouts: an upper bound of one
    attempt of each job.
    """

    per_hour: dict[str, Number]
    at_most: Number
    prices_date: Day


JobTask = Literal["export", "tune", "train", "evaluate"]


class Pool(Value):
    """Equal machines of a job: pool 0 is the chief, 1 the workers, 2 the parameter servers, 3 the evaluator.

    A pool of no machines only keeps the places of the pools after it.
    """

    machine: str
    count: Count
    accelerator: Accelerator | None = None
    tpu_topology: str | None = None
    disk_gb: Count = 100
    disk_type: str = "pd-ssd"


class Machines(Value):
    """All machines of a job, how it gets them, and the service-side timeout."""

    pools: tuple[Pool, ...]
    spot: bool
    """Whether they may be preempted."""
    timeout_s: Count
    flex_start_s: Annotated[Count | None, Field(exclude_if=lambda value: value is None)] = None
    """Seconds that the job may wait for them; null: none."""
    reservation: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Of Compute Engine, which those like the first one are taken from; null: none."""

    @property
    def waits_for_none(self) -> bool:
        """Whether they are neither waited for nor reserved."""
        return self.flex_start_s is None and self.reservation is None


class TakenFrom(Value):
    """The version that a run takes over from another stage, in the place of a training of its own.

    Copies of the `documents` lie in the run's folder `taken_from`: nothing after the run needs the other stage.
    """

    stage: Text
    run_uri: Uri
    """Folder of the run there."""
    run_key: RunKey
    version_name: Text
    """In the registry there."""
    as_of: UtcTime
    """Of the run that trained it, which may be one of a third stage."""
    window: Window
    """Of that run: it was trained on days before `test_start`."""
    model_uri: Uri
    """Its files there."""
    model_digest: Sha256
    """By the training report."""
    hyperparameters: Hyperparameters
    """That it was trained with."""
    tuned: bool
    """Whether a study found them; else they were the file's."""
    documents: dict[Text, Sha256]
    """SHA-256 of what the run's documents there were, by kind; the manifest is that of the training."""

    @property
    def name(self) -> str:
        """Stage and run, as a form and a page have them."""
        return f"{self.stage}/{self.run_key}"


class Plan(Document):
    """What the run will do, and who or what started it, with every [cause](monitoring.md#triggers).

    Time, window, spec after this run's changes, SQL texts, images, addresses, machines of each job, cost estimate.
    """

    written_by: ClassVar[str] = "plan"
    read_by: ClassVar[str] = "every later task"
    is_strict: ClassVar[bool] = False  # the spec's own checks hand lists on where tuples are asked for
    kind: Literal["plan"] = "plan"
    model: ModelId
    run_key: RunKey
    as_of: UtcTime
    as_of_source: Literal["param", "asset", "logical_date", "run_after"]
    mode: Mode
    deploy: bool
    trigger: Trigger
    dag_id: str
    dag_run_id: str
    project: Text
    region: Text
    bucket: Text
    dataset: Text
    environment: Text | None = None
    """null: of an earlier release."""
    stage: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Of `environments.yaml`, by which the spec is; null: the models' files as they are."""
    run_uri: Uri
    results_uri: Annotated[Uri | None, Field(exclude_if=lambda value: value is None)] = None
    """Folder that the run's jobs write in, which may write nothing beside it; null: of an earlier release."""
    window: Window
    query: Query
    golden_query: Query | None = None
    """It gives the frozen set; null: there is none."""
    assertions: Annotated[dict[Text, Query], Field(exclude_if=lambda value: not value)] = Field(default_factory=dict)
    """Queries of the model's own [checks](checks.md#your-own-checks), by their names."""
    gates: Annotated[dict[Text, GateCode], Field(exclude_if=lambda value: not value)] = Field(default_factory=dict)
    """Code of the model's own [gates](evaluation.md#your-own-gates), by their names."""
    spec: ModelSpec
    """After this run's changes; it names every feature."""
    feature_patterns: dict[str, tuple[Text, ...]] = Field(default_factory=dict)
    """Which features the file named by which pattern."""
    overrides: dict[str, JsonValue]
    spec_sha256: Sha256
    trainer_image: Text
    trainer_package: Uri | None
    serving_image: Text
    attempt: str | None
    taken_from: Annotated[TakenFrom | None, Field(exclude_if=lambda value: value is None)] = None
    """null: the run trains."""
    estimate_usd: Estimate | None
    unknown_prices: tuple[Text, ...] = ()
    """What has no list price."""
    endpoint_usd_per_hour: Number | None = None
    """Of one of the endpoint's machines."""
    machines: dict[JobTask, Machines] | None = None
    """Of each job; those of `tune` are one trial's. null: of an earlier release."""


class Pause(Document):
    """Until when no retraining begins, who asked for it, and why; what was asked last counts."""

    written_by: ClassVar[str] = "roll_back"
    read_by: ClassVar[str] = "plan, `monitor__<model>`, people"
    kind: Literal["pause"] = "pause"
    model: ModelId
    until: UtcTime | None
    """A run that starts then begins; null: the pause was taken away."""
    reason: str = Field(alias="reason")
    trigger: Trigger
    asked: UtcTime
    dag_run_id: Text
    """Of the DAG `rollback`."""
