"""Documents of the training job: its request, and the report it writes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import Count, Document, ModelId, Number, RunKey, Sha256, Text, Uri, Value
from retraining.core.spec.cluster import Strategy
from retraining.core.spec.features import Feature, Label
from retraining.core.spec.training import (
    AccumulateSteps,
    Callbacks,
    Checkpoint,
    ClipNorm,
    Hyperparameter,
    LiteForm,
    Loop,
    Precision,
    Sharding,
    WarmupFraction,
)

InstanceValue = bool | int | float | str | None
"""Of a slice, or of an instance; null stands for NaN."""


class TrainingOrder(Value):
    """What is trained and for how long; `batch_size` is per replica, patience counts epochs."""

    model: Text
    epochs: Annotated[int, Field(ge=1)]
    batch_size: Annotated[int, Field(ge=1)]
    hyperparameters: dict[str, Hyperparameter]
    early_stopping_patience: Count
    input: Literal["tfrecord", "csv", "bigquery"] = "tfrecord"
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


class TrainRequest(Document):
    """What the trainer is asked, and where its outputs go.

    `trial_metric` makes it the request of a study's trials: they report that after each epoch and are not stored, each
    in a folder by its number below these; `--prior` chooses one of the `priors` as its hyperparameters.
    """

    kind: Literal["train_request"] = "train_request"
    model: ModelId
    run_key: RunKey
    manifest_uri: Uri
    statistics_uri: Uri
    features: tuple[Feature, ...]
    label: Label
    key: Text
    training: TrainingOrder
    seed: int
    trial_metric: Text | None = None
    priors: tuple[dict[str, Hyperparameter], ...] = ()
    model_uri: Uri
    report_uri: Uri
    checkpoint_uri: Uri
    tensorboard_uri: Uri


class Framework(Value):
    """Versions that made the model."""

    python: str
    tensorflow: str
    tf_keras: str
    trainer: str


class Signature(Value):
    """Names and TensorFlow types of the serving signature."""

    inputs: dict[str, str]
    outputs: dict[str, str]


class EncodedBytes(Value):
    """Bytes in JSON, as TensorFlow Serving and Vertex AI take them: base64."""

    b64: str


class Golden(Value):
    """An instance and what the saved model says of it: the endpoint must say the same. With classes a score of each.

    A sequence is a list as long as that of every other instance, filled up with null or "".
    """

    instance: dict[str, EncodedBytes | InstanceValue | tuple[InstanceValue, ...]]
    prediction: Number | Annotated[tuple[Number, ...], Field(min_length=2)]


class Report(Document):
    """What training did. `best_epoch` counts from 1; `model_digest` covers every file of the SavedModel.

    `usage` is of the chief: `cpu_seconds`, `cores`, `cpu_share` of them from 0 to 1, `memory_mb` at most, and with GPUs
    `accelerator_memory_mb` at most.
    """

    kind: Literal["report"] = "report"
    model: ModelId
    run_key: RunKey
    framework: Framework
    strategy: str
    hyperparameters: dict[str, Hyperparameter]
    history: dict[str, tuple[Number, ...]]
    best_epoch: Annotated[int, Field(ge=1)]
    epochs_run: Count
    resumed_from_epoch: int | None
    resumed_from_step: int | None = None
    replicas: Annotated[int, Field(ge=1)] = 1
    metrics: dict[str, Number]
    train_rows: Count
    validation_rows: Count
    steps: Count
    examples_per_second: Number
    seconds: dict[str, Number]
    usage: dict[str, Number] = Field(default_factory=dict)
    parameters: Count
    model_uri: Uri
    model_digest: Sha256
    signature: Signature
    golden: tuple[Golden, ...]
