"""The training's documents: its request and its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

HyperparameterValue = float | int | str | bool | tuple[int, ...] | list[int]


@dataclass(frozen=True, kw_only=True)
class Feature:
    """A column that the model reads.

    `normalize` and `missing` are of numeric ones, `embedding_dim` and `max_vocabulary` of categorical ones, `of`,
    `length` and `keep` of sequences, which also have those of what they are sequences of; the rest of images.
    """

    name: str
    kind: Literal["numeric", "categorical", "image", "sequence", "text"]
    normalize: bool = True
    missing: Literal["mean", "zero"] = "mean"
    embedding_dim: int | None = None
    max_vocabulary: int = 1000
    height: int = 0
    width: int = 0
    channels: int = 0
    encoding: Literal["raw", "png", "jpeg"] = "raw"
    of: Literal["numeric", "categorical"] = "numeric"
    length: int = 0
    keep: Literal["first", "last"] = "last"


@dataclass(frozen=True, kw_only=True)
class Label:
    """The column that the model learns to predict."""

    name: str
    kind: Literal["binary", "multiclass"]
    classes: int = 2


@dataclass(frozen=True, kw_only=True)
class CheckpointRhythm:
    """How often a checkpoint is written inside an epoch, beside the one at each epoch's end."""

    every_steps: int | None = None
    every_seconds: float | None = 300.0


@dataclass(frozen=True, kw_only=True)
class ReduceRate:
    """Lower the learning rate when the watched metric stays: multiply by `factor` after `patience` such epochs."""

    patience: int
    factor: float = 0.5


@dataclass(frozen=True, kw_only=True)
class TensorBoardOptions:
    """What TensorBoard gets beside each epoch's numbers."""

    histograms: bool = False
    profile: bool = False


@dataclass(frozen=True, kw_only=True)
class Callbacks:
    """What happens beside the steps."""

    reduce_lr: ReduceRate | None = None
    tensorboard: TensorBoardOptions = TensorBoardOptions()


@dataclass(frozen=True, kw_only=True)
class Training:
    """Architecture, length and hyperparameters of a training; `batch_size` is per replica.

    `warmup_fraction` None: 0.05 where several replicas train in lockstep, else 0.
    """

    model: str
    epochs: int
    batch_size: int
    hyperparameters: Mapping[str, HyperparameterValue]
    early_stopping_patience: int
    input: Literal["tfrecord", "csv", "bigquery"] = "tfrecord"
    strategy: Literal["auto", "one_device", "mirrored", "multi_worker", "parameter_server", "tpu"] = "auto"
    loop: Literal["fit", "custom"] = "fit"
    precision: Literal["float32", "mixed_float16", "mixed_bfloat16"] = "float32"
    sharding: Literal["auto", "examples", "files"] = "auto"
    scale_learning_rate: bool = True
    warmup_fraction: float | None = None
    clip_norm: float | None = None
    accumulate_steps: int = 1
    checkpoint: CheckpointRhythm = CheckpointRhythm()
    callbacks: Callbacks = Callbacks()
    export_lite: tuple[Literal["float16", "int8"], ...] = ()


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """What the training job trains, on what, and where it writes.

    `trial_metric`: what a trial of a study reports after each epoch (see `trainer.training.trial`); None: it is no
    trial.
    """

    kind: ClassVar[str] = "train_request"
    model: str
    run_key: str
    manifest_uri: str
    statistics_uri: str
    features: tuple[Feature, ...]
    label: Label
    key: str
    training: Training
    seed: int
    model_uri: str
    report_uri: str
    checkpoint_uri: str
    tensorboard_uri: str
    trial_metric: str | None = None
    priors: tuple[Mapping[str, HyperparameterValue], ...] = ()


@dataclass(frozen=True, kw_only=True)
class Framework:
    """Versions that a training ran with."""

    python: str
    tensorflow: str
    tf_keras: str
    trainer: str


@dataclass(frozen=True, kw_only=True)
class Seconds:
    """Where a training's wall time went."""

    startup: float
    read: float
    train: float
    save: float
    total: float


@dataclass(frozen=True, kw_only=True)
class Signature:
    """dtype by name of the stored model's `serving_default`; every shape is [batch], `scores` is [batch, classes]."""

    inputs: Mapping[str, str]
    outputs: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Golden:
    """An example, as a request's JSON has it (bytes as `{"b64": …}`), and what the stored model answers to it.

    Sequences are lists of equal lengths; null stands for NaN.
    """

    instance: Mapping[str, float | str | Mapping[str, str] | list[float | str | None]]
    prediction: float | list[float]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a training job did; `usage` is the chief's, as `trainer.telemetry.usage` measures it."""

    kind: ClassVar[str] = "report"
    model: str
    run_key: str
    framework: Framework
    strategy: str
    hyperparameters: Mapping[str, HyperparameterValue]
    history: Mapping[str, tuple[float, ...]]
    best_epoch: int
    epochs_run: int
    resumed_from_epoch: int | None
    metrics: Mapping[str, float | None]
    train_rows: int
    validation_rows: int
    steps: int
    examples_per_second: float
    seconds: Seconds
    parameters: int
    model_uri: str
    model_digest: str
    signature: Signature
    golden: tuple[Golden, ...]
    replicas: int = 1
    resumed_from_step: int | None = None
    usage: Mapping[str, float] = field(default_factory=dict)
