"""How a training takes its steps, as a model's YAML names it: loop, precision, rate, checkpoints, callbacks."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.spec_cluster import Section

Loop = Literal["fit", "custom"]
Precision = Literal["float32", "mixed_float16", "mixed_bfloat16"]
Sharding = Literal["auto", "examples", "files"]
WarmupFraction = Annotated[float, Field(ge=0, le=0.5)]
ClipNorm = Annotated[float, Field(gt=0, le=10**6)]
LiteForm = Literal["float16", "int8"]
AccumulateSteps = Annotated[int, Field(ge=1, le=10_000)]


class Checkpoint(Section):
    """When a checkpoint is written inside an epoch, beside the one at its end; null: not by that."""

    every_steps: Annotated[int, Field(ge=1, le=10**9)] | None = None
    every_seconds: Annotated[float, Field(gt=0, le=10**6)] | None = 300.0


class ReduceRate(Section):
    """The learning rate times `factor` after `patience` epochs without a better validation loss."""

    patience: Annotated[int, Field(ge=1, le=1000)]
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5


class TensorBoard(Section):
    """What TensorBoard gets beside each epoch's numbers: weights as histograms, a profile of some steps."""

    histograms: bool = False
    profile: bool = False


class Callbacks(Section):
    """What happens beside the steps."""

    reduce_lr: ReduceRate | None = None
    tensorboard: TensorBoard = Field(default_factory=TensorBoard)
