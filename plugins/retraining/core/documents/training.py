"""Documents of the training job: its request, and the report it writes."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Address,
    Amount,
    Count,
    ModelId,
    Number,
    Positive,
    RequestDocument,
    ResultDocument,
    RunKey,
    Sha256,
    Text,
    Value,
)
from retraining.core.spec.cluster import Strategy
from retraining.core.spec.features import Cross, Feature, Label, Weight, is_empty
from retraining.core.spec.packages import Package
from retraining.core.spec.training import (
    AccumulateSteps,
    Augmentation,
    Callbacks,
    Checkpoint,
    ClipNorm,
    HyperparameterValue,
    InputSource,
    LiteForm,
    Loop,
    Precision,
    Sharding,
    TableReader,
    WarmupFraction,
)

InstanceValue = bool | int | float | str | None
"""Of a slice, or of an instance; null stands for NaN."""
Hyperparameters = dict[str, HyperparameterValue]
"""By name; names that the architecture does not have are refused."""
Seed = Annotated[int, Field(ge=0, le=2**31 - 1)]


class Training(Value):
    """What is trained, for how long, and how it takes its steps."""

    model: Text
    """Architecture, by its name in the trainer's registry."""
    epochs: Positive
    batch_size: Positive
    """Per replica."""
    hyperparameters: Hyperparameters
    early_stopping_patience: Count
    """Epochs without a better validation score after which training ends; 0: never."""
    input: InputSource = "tfrecord"
    """Where train and validation are read from; bigquery: from the manifest's table."""
    reader: TableReader = "storage_read"
    """What reads that table; tensorflow_io: an image that has tensorflow-io."""
    strategy: Strategy = "auto"
    """How training is spread; auto: by the job's replicas and the machine's devices."""
    loop: Loop = "fit"
    """Who takes the steps: Keras's fit, or the trainer's own loop."""
    precision: Precision = "float32"
    """In which layers compute; variables and logits are float32."""
    sharding: Sharding = "auto"
    """Several workers: each takes its rows of every batch (examples), or its files (files).

    auto: files above 20 million rows.
    """
    scale_learning_rate: bool = True
    """Multiply the learning rate by the replicas in lockstep."""
    warmup_fraction: WarmupFraction | None = None
    """Share of all steps in which the learning rate rises; null: 0.05 with several replicas, else 0."""
    clip_norm: ClipNorm | None = None
    """Longest gradient over all variables."""
    accumulate_steps: AccumulateSteps = 1
    """Parts of batch_size rows whose gradients make one step; above 1 with loop custom only."""
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    callbacks: Callbacks = Field(default_factory=Callbacks)
    augmentation: Augmentation | None = None
    """How the training's images are changed; null: not."""
    export_lite: tuple[LiteForm, ...] = ()
    """TF Lite models to be made of the stored one.

    It then has a second signature `lite`, with images as uint8 pixels and sequences of their length.
    """
    packages: tuple[Package, ...] = ()
    """Installed before the training, in their order, without what they depend on."""


class WeightedLabel(Value):
    """A label that is trained beside the one that decides: its loss times `weight` is added."""

    label: Label
    weight: Weight


class InitialModel(Value):
    """A version whose weights a training begins with: its stored model, and what says what these mean."""

    version_id: Text
    run_key: RunKey
    model_uri: Address
    model_digest: Sha256
    """By its report, proven before anything of it is read."""
    request_uri: Address
    """Train request of its run."""
    report_uri: Address
    """Report of its training."""


class TrainRequest(RequestDocument):
    """What the trainer is asked: features, label, architecture, hyperparameters, seed, and where its outputs go."""

    written_by: ClassVar[str] = "train"
    read_by: ClassVar[str] = "training job"
    kind: Literal["train_request"] = "train_request"
    model: ModelId
    run_key: RunKey
    manifest_uri: Address
    statistics_uri: Address
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    crosses: Annotated[tuple[Cross, ...], Field(exclude_if=is_empty)] = ()
    """Features that are one more category together."""
    label: Label
    auxiliary_labels: tuple[WeightedLabel, ...] = ()
    """Trained beside the label and answered beside it, each under its name; they may be NULL."""
    key: Text
    key_input: Annotated[bool, Field(exclude_if=lambda value: not value)] = False
    """Whether the stored model takes the key as an input, and gives it back as an output of that name."""
    weight: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Column that says how much an example counts; null: all count the same."""
    training: Training
    seed: Seed
    initial: Annotated[InitialModel | None, Field(exclude_if=lambda value: value is None)] = None
    """Whose weights the training begins with; null: they are drawn by the seed."""
    initial_skipped: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Why it does not begin with the champion's weights although the spec asks for them."""
    trial_metric: Text | None = None
    """What a trial of a study reports after each epoch; null: not a trial.

    A trial is scored and not stored, in a folder by its number (CLOUD_ML_TRIAL_ID) below these addresses.
    """
    priors: tuple[Hyperparameters, ...] = ()
    """The flag --prior chooses one of them, from 0, as the hyperparameters."""
    model_uri: Address
    report_uri: Address
    checkpoint_uri: Address
    tensorboard_uri: Address


class Framework(Value):
    """Versions that made the model."""

    python: str
    tensorflow: str = "none"
    tf_keras: str = "none"
    trainer: str
    packages: dict[Text, Text] = Field(default_factory=dict)
    """Of another framework, by name."""


class Seconds(Value):
    """Where a training's wall time went."""

    startup: Amount
    read: Amount
    train: Amount
    save: Amount
    total: Amount


Shapes = dict[str, tuple[Annotated[int, Field(ge=-1)], ...]]
"""Sizes beside the batch by name, of those that have any; -1: any size."""


class Signature(Value):
    """TensorFlow types by name of `serving_default`; every shape is [batch] but of sequences and of two outputs.

    `scores` is [batch, classes], `quantiles` [batch, quantiles], in the order of the label's. Auxiliary labels are
    outputs of the same forms, by their names. Shapes are null where a trainer does not tell them.
    """

    inputs: dict[str, str]
    outputs: dict[str, str]
    input_shapes: Shapes | None = None
    output_shapes: Shapes | None = None


class EncodedBytes(Value):
    """Bytes in JSON, as TensorFlow Serving and Vertex AI take them: base64."""

    b64: str


class Golden(Value):
    """An instance and what the saved model says of it: the endpoint must say the same."""

    instance: dict[str, EncodedBytes | InstanceValue | tuple[InstanceValue, ...]]
    """A sequence is a list as long as that of every other instance, filled up with null or ""."""
    prediction: Number | Annotated[tuple[Number, ...], Field(min_length=2)]
    """The score; with several classes the scores of all; of a regression the number, or the quantiles.

    Of the label that decides alone.
    """


class InitialWeights(Value):
    """What a training began with: a version's weights where they mean the same here, else drawn by the seed."""

    version_id: Text
    run_key: RunKey
    taken: dict[Text, Text]
    """How a variable was taken over, by its name."""
    anew: dict[Text, Text]
    """Why a variable, or a part of one, was drawn by the seed, by its name."""


class Report(ResultDocument):
    """What training did: history, best epoch, the model's address, digest and signature, up to five smoke requests."""

    written_by: ClassVar[str] = "training job"
    read_by: ClassVar[str] = "register, deploy, report"
    kind: Literal["report"] = "report"
    model: ModelId
    run_key: RunKey
    framework: Framework
    strategy: str
    """one_device, mirrored, multi_worker, parameter_server, tpu; or another framework's own word."""
    hyperparameters: Hyperparameters
    history: dict[str, tuple[Number, ...]]
    """By epoch: loss of all labels together, val_loss and val_auc of the one that decides, val_<other>_<metric>."""
    best_epoch: Positive
    """Counted from 1."""
    epochs_run: Positive
    """Of the whole training, resumed epochs included."""
    resumed_from_epoch: Count | None
    """Epochs that an earlier, interrupted attempt had finished."""
    resumed_from_step: Positive | None = None
    """Steps that an earlier, interrupted attempt had saved."""
    replicas: Positive = 1
    """Devices that took each step together."""
    initial: Annotated[InitialWeights | None, Field(exclude_if=lambda value: value is None)] = None
    """null: all weights were drawn by the seed."""
    metrics: dict[str, Number]
    """Of the best epoch."""
    members: Annotated[dict[str, tuple[Number, ...]], Field(exclude_if=is_empty)] = Field(default_factory=dict)
    """The same of each network by itself, where several answer together; empty: one does, or it was not measured."""
    train_rows: Count
    validation_rows: Count
    steps: Count
    """Optimizer steps."""
    examples_per_second: Amount
    """Training rows over seconds of the epochs of this attempt."""
    seconds: Seconds
    usage: dict[str, Number] = Field(default_factory=dict)
    """What the chief used of its machine, by name.

    cpu_seconds, cores, cpu_share of them (0 to 1), memory_mb at most, with GPUs accelerator_memory_mb at most.
    """
    parameters: Count
    model_uri: Address
    model_digest: Sha256
    """SHA-256 over the sorted lines '<file name> <SHA-256>' of the SavedModel's files."""
    signature: Signature
    golden: Annotated[tuple[Golden, ...], Field(max_length=5)]
    """Validation rows without missing values and what the stored model answers."""
