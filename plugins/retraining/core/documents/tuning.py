"""Documents of the search for hyperparameters: whether in this run, from where, and what the trials gave."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import Count, Document, ModelId, Number, RunKey, Text, UtcTime, Value
from retraining.core.spec.training import HyperparameterValue
from retraining.core.spec.tuning import TuningParameter

Because = Literal["no_tuning", "wanted", "unwanted", "first", "age", "quality", "recent", "taken_over"]
Source = Literal["spec", "champion", "study"]
Phase = Literal["recall", "search"]
Hyperparameters = dict[str, HyperparameterValue]


class Recalled(Value):
    """A good trial of an earlier study, to be tried again: its study's run, its number there, and its score then."""

    run_key: RunKey
    trial_id: Text
    hyperparameters: Hyperparameters
    value: Number


class LastStudy(Value):
    """The newest study before this run."""

    run_key: RunKey
    as_of: UtcTime


class TuningRequest(Document):
    """Whether hyperparameters are searched in this run and why, and which earlier trials are repeated."""

    written_by: ClassVar[str] = "tune"
    read_by: ClassVar[str] = "tune"
    kind: Literal["tuning_request"] = "tuning_request"
    model: ModelId
    run_key: RunKey
    search: bool
    reason: Because
    message: Text
    hyperparameters: Hyperparameters
    """What is used where none are searched."""
    source: Literal["spec", "champion"]
    last_study: LastStudy | None
    earlier_studies: Count
    recalled: tuple[Recalled, ...]
    focus: dict[str, Annotated[Number, Field(gt=0, le=1)]]
    """Share of each numeric parameter's range that the search looks at; of those left out, the whole."""


class Measured(Value):
    """The metric at one step of a trial."""

    step: Count
    value: Number


class Trial(Value):
    """One trial: what it tried and what it scored; null when it is infeasible or failed."""

    trial_id: Text
    phase: Phase
    state: Literal["SUCCEEDED", "INFEASIBLE", "STOPPED"]
    hyperparameters: Hyperparameters
    value: Number | None
    curve: tuple[Measured, ...]
    seconds: Annotated[Number, Field(ge=0)] | None
    message: str


class Tuning(Document):
    """The hyperparameters that this run trains with, where they come from, and the trials of its study, if any."""

    written_by: ClassVar[str] = "tune"
    read_by: ClassVar[str] = "train, later runs, report"
    kind: Literal["tuning"] = "tuning"
    model: ModelId
    run_key: RunKey
    as_of: UtcTime
    metric: Text | None
    goal: Literal["maximize", "minimize"] | None
    hyperparameters: Hyperparameters
    source: Source
    message: Text
    space: tuple[TuningParameter, ...]
    searched: tuple[TuningParameter, ...]
    trials: tuple[Trial, ...]
    best: str | None
    jobs: tuple[Text, ...]
    seconds: Annotated[Number, Field(ge=0)]
