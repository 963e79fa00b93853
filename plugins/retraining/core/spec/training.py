"""The section `training` of a model's YAML: what is trained, how it takes its steps, on which machines."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, field_validator, model_validator

from retraining.core.spec.cluster import Cluster, Runtime, Strategy, resolve_tier, runtime_problem
from retraining.core.spec.packages import Package, packages_problem
from retraining.core.spec.section import ColumnName, Section

STRENGTH = "augmentation_strength"
"""The hyperparameter that `strength` is multiplied by, so that a search can find it."""

Half = Annotated[float, Field(ge=0, le=0.5)]


class Augmentation(Section):
    """Random changes of the training's images, drawn anew for each image and epoch; numbers are the most there is."""

    flip: Literal["none", "horizontal", "vertical", "both"] = "none"
    """Mirrored: half of the images, in each direction; fewer where the strength is below 1."""
    rotate: Half = 0.0
    """To either side, as a share of a whole turn: 0.05 is 18 degrees."""
    zoom: Half = 0.0
    """In or out, as a share of the image's sides."""
    crop: Half = 0.0
    """Cut off, as a share of the sides, at a random place; what is left is resized to the whole."""
    brightness: Half = 0.0
    """Added or taken away, as a share of the range from black to white."""
    contrast: Half = 0.0
    """More or less, as a share of each colour's distance from its mean."""
    noise: Half = 0.0
    """Standard deviation of what is added to each value, as a share of the range from black to white."""
    strength: Annotated[float, Field(ge=0, le=10)] = 1.0
    """What all of them are multiplied by; each stays within its bound. The hyperparameter `augmentation_strength`
    multiplies it once more, and can be searched."""
    contact_sheet: bool = True
    """Whether the run's page shows eight training images, each as it is and changed four times."""

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        amounts = (self.rotate, self.zoom, self.crop, self.brightness, self.contrast, self.noise)
        if self.flip == "none" and not any(amounts):
            raise ValueError(
                "it changes nothing: give flip, rotate, zoom, crop, brightness, contrast or noise, or remove it"
            )
        return self


InputSource = Literal["tfrecord", "csv", "bigquery"]
TableReader = Literal["storage_read", "tensorflow_io"]
Loop = Literal["fit", "custom"]
Precision = Literal["float32", "mixed_float16", "mixed_bfloat16"]
Sharding = Literal["auto", "examples", "files"]
WarmupFraction = Annotated[float, Field(ge=0, le=0.5)]
ClipNorm = Annotated[float, Field(gt=0, le=10**6)]
LiteForm = Literal["float16", "int8"]
Initial = Literal["random", "champion"]
MEMBERS = "members"
"""The hyperparameter that `ensemble` sets."""
Ensemble = Literal["auto"] | Annotated[int, Field(ge=1, le=10)]
AccumulateSteps = Annotated[int, Field(ge=1, le=10_000)]


class Checkpoint(Section):
    """When a checkpoint is written inside an epoch; one at each epoch's end is always written."""

    every_steps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    """Steps after which one is written; `null`: not by steps."""
    every_seconds: Annotated[float, Field(gt=0, le=10**6)] | None = 300.0
    """Seconds after which one is written; `null`: not by time."""


class ReduceRate(Section):
    """The learning rate times `factor` after `patience` epochs without a better validation loss."""

    patience: Annotated[int, Field(ge=0, le=1000)]
    """Epochs without a better validation loss before that; `0`: it never falls."""
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """What the learning rate is multiplied by."""


class TensorBoardOptions(Section):
    """What TensorBoard gets beside each epoch's numbers: weights as histograms, a profile of some steps."""

    histograms: bool = False
    """The weights after each epoch."""
    profile: bool = False
    """A profile of the first steps."""


class Callbacks(Section):
    """What happens beside the steps."""

    reduce_lr: ReduceRate | None = None
    """The learning rate falls when nothing gets better; `null`: by the [recipe](models.md#the-recipe)."""
    tensorboard: TensorBoardOptions = Field(default_factory=TensorBoardOptions)


Scalar = bool | int | float | str
HyperparameterValue = Scalar | tuple[Scalar, ...]


class Training(Section):
    """What is trained and how."""

    model: Annotated[str, StringConstraints(max_length=100, pattern=r"^[a-z][a-z0-9_]*$")]
    """[Architecture](models.md): `boosted_trees`, `random_forest`, `linear`, `dense`, `wide_deep`, `deep_cross`. With
    images `cnn`, `transfer`, `module`; with texts `module`; with sequences `lstm`, `gru`, `conv1d`, `transformer`."""
    epochs: Annotated[int, Field(ge=1, le=10000)] | None = None
    """Epochs, at most; of `boosted_trees` trees for each logit, of `random_forest` trees. `null`: by the
    [recipe](models.md#the-recipe), which trains until nothing gets better."""
    batch_size: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Examples per step and replica; `null`: by the recipe."""
    hyperparameters: dict[ColumnName, HyperparameterValue] = Field(default_factory=dict)
    """By name; an unknown one ends the training job with the list of known ones. Of `boosted_trees`, `random_forest`,
    `linear`, `dense`, `wide_deep` and `deep_cross` the recipe has those that are not named here."""
    ensemble: Annotated[Ensemble, Field(exclude_if=lambda value: value == "auto")] = "auto"
    """[Networks side by side](models.md#an-ensemble) whose mean is the answer, in one stored model; `auto`: by the
    recipe. A number stands in place of the hyperparameter `members`."""
    early_stopping_patience: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Epochs without a better validation loss before training ends, counted from the hundredth optimizer step on (of
    trees from the first, and of weights that were taken over); `0`: never; `null`: by the recipe."""
    input: InputSource = "tfrecord"
    """[What training reads](data.md#what-a-training-reads): `csv`: the export writes CSV instead; `bigquery`: the run
    table itself."""
    reader: TableReader = "storage_read"
    """Of `input: bigquery`; [`tensorflow_io`](data.md#tensorflow-io) needs a `runtime.image` that has it."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 1
    """Of weights, shuffling, dropout and the bootstrap."""
    initial: Annotated[Initial, Field(exclude_if=lambda value: value == "random")] = "random"
    """What the weights begin as: drawn by the seed, or those of the [champion](models.md#a-warm-start)."""
    strategy: Strategy = "auto"
    """How training is distributed: `auto` by the cluster, `mirrored` over several GPUs of one machine. `multi_worker`:
    several machines in lockstep; `parameter_server`: asynchronous."""
    loop: Loop = "fit"
    """Who takes the steps: Keras's `fit`, or the trainer's own loop."""
    precision: Precision = "float32"
    """In which layers compute: `mixed_float16` is for GPUs, `mixed_bfloat16` for TPUs, newer CPUs and GPUs."""
    sharding: Sharding = "auto"
    """Of several workers, what each reads: all `examples`, of which it takes its rows of every batch, or its share of
    the `files`. With `examples` the batches are those of one machine; `auto`: `files` above 20 million rows."""
    scale_learning_rate: bool = True
    """Whether the learning rate is multiplied by the number of replicas in lockstep."""
    warmup_fraction: WarmupFraction | None = None
    """Share of all steps in which the learning rate rises to its full height. `null`: 0.05 with several replicas in
    lockstep, else 0."""
    clip_norm: ClipNorm | None = None
    """Longest gradient over all variables; `null`: as it is."""
    accumulate_steps: AccumulateSteps = 1
    """With loop `custom`: parts of `batch_size` rows whose gradients make one step."""
    checkpoint: Checkpoint = Field(default_factory=Checkpoint)
    callbacks: Callbacks = Field(default_factory=Callbacks)
    augmentation: Augmentation | None = None
    """Random [changes of the training's images](#augmentation); each number is the most there is."""
    export_lite: tuple[LiteForm, ...] = ()
    """[TF Lite](models.md#tf-lite) models to be made of the trained one."""
    packages: Annotated[tuple[Package, ...], Field(max_length=100)] = ()
    """The model's own Python [packages](#packages), installed when a job begins."""
    cluster: Cluster = Field(default_factory=Cluster)
    runtime: Runtime = Field(default_factory=Runtime)
    """What the training job runs in; empty: this project's image."""

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
        if STRENGTH in self.hyperparameters and self.augmentation is None:
            raise ValueError(f"hyperparameter {STRENGTH} has nothing to multiply: add augmentation, or remove it")
        problem = (
            runtime_problem(self.runtime, cluster, self.input)
            or self._reader_problem()
            or packages_problem(self.packages)
            or self._own_models_problem()
            or self._ensemble_problem()
            or self._initial_problem(bool(servers and servers.count))
        )
        if problem:
            raise ValueError(problem)
        return self

    def _own_models_problem(self) -> str | None:
        """Say what is asked of models of another framework that only a SavedModel has; None: nothing."""
        if self.runtime.models == "own" and self.export_lite:
            return "export_lite converts SavedModels, and runtime.models is own: remove one of them"
        if self.runtime.models == "own" and self.packages:
            return (
                "packages are installed by this project's trainer, and runtime.models is own: put them into the image"
            )
        return None

    def _ensemble_problem(self) -> str | None:
        """Say why so many networks cannot be trained side by side; None: they can."""
        if self.ensemble == "auto":
            return None
        if MEMBERS in self.hyperparameters:
            return f"ensemble {self.ensemble} and hyperparameters.{MEMBERS} say the same thing: remove one of them"
        if self.ensemble > 1 and self.export_lite:
            return f"ensemble {self.ensemble} with export_lite: a phone has one network. Remove one of them"
        if self.ensemble > 1 and self.runtime.models == "own":
            return f"ensemble {self.ensemble} is of this project's layers, and runtime.models is own: remove ensemble"
        return None

    def _initial_problem(self, has_servers: bool) -> str | None:
        """Say why a training cannot begin with the champion's weights; None: it can, or is not asked to."""
        if self.initial != "champion":
            return None
        if self.runtime.models == "own":
            return "initial champion reads SavedModels, and runtime.models is own: remove one of them"
        if has_servers or self.strategy == "parameter_server":
            return "initial champion sets whole variables, and parameter servers hold parts: remove one of them"
        if self.input == "bigquery":
            return (
                "initial champion needs files that prove what the champion was trained on, and input bigquery leaves "
                "none: use input tfrecord, or remove initial"
            )
        return None

    def _reader_problem(self) -> str | None:
        """Say why tensorflow-io cannot read here, with the way out; None when it can, or is not asked to."""
        if self.reader != "tensorflow_io":
            return None
        if self.input != "bigquery":
            return f"reader tensorflow_io reads the run table: remove it, or replace input {self.input} by bigquery"
        if not self.runtime.image:
            return (
                "reader tensorflow_io needs an image with tensorflow-io, and neither our own nor pre-built ones "
                "have: name one in runtime.image (docs/data.md#tensorflow-io says how it is built), or remove reader"
            )
        return None
