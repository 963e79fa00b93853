"""Document of a version for people: what it is for, what it came from, how good it is, and what to mind."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.deployment import Approval
from retraining.core.documents.document import (
    Count,
    Day,
    Document,
    ModelId,
    Positive,
    RunKey,
    Sha256,
    TableName,
    Text,
    UtcTime,
    Value,
)
from retraining.core.documents.evaluation import Difference, Importance, Slice, SliceDifference, Verdict
from retraining.core.documents.plan import Window
from retraining.core.documents.readiness import Readiness
from retraining.core.documents.snapshot import AllSplits
from retraining.core.documents.training import Framework, Hyperparameters, Seed
from retraining.core.metrics import Quality


class CardData(Value):
    """The examples: the run table that held them, their query, their days, the rows of each split, days left out."""

    table: TableName
    query: Text
    window: Window
    rows: AllSplits[Count]
    quarantined: tuple[Day, ...]
    assertions: Annotated[dict[Text, Count | None], Field(exclude_if=lambda value: not value)] = Field(
        default_factory=dict
    )
    """How many rows violated each of the model's own checks; null: BigQuery refused it."""


class CardTraining(Value):
    """How it was trained."""

    architecture: Text
    hyperparameters: Hyperparameters
    seed: Seed
    epochs: Positive
    best_epoch: Positive
    parameters: Count
    framework: Framework
    image: Text


class ModelCard(Document):
    """What is to be known of a version; written with its registration, and again once it is deployed, or not.

    What it is for, owner, licence, data and their limits, training, metrics and slices with intervals, features that it
    relies on, who approved, caveats.
    """

    written_by: ClassVar[str] = "register; deploy, again"
    read_by: ClassVar[str] = "people, report"
    kind: Literal["model_card"] = "model_card"
    model: ModelId
    run_key: RunKey
    version_name: Text
    as_of: UtcTime
    purpose: Text
    """The spec's, as the owner and the licence."""
    owner: Text
    licence: str | None
    data: CardData
    training: CardTraining
    metrics: Quality
    """Of the test split."""
    differences: tuple[Difference, ...]
    """To the champion of that time, with their intervals."""
    slices: tuple[Slice, ...]
    """Of the test split."""
    slice_differences: tuple[SliceDifference, ...]
    """To the champion of that time, with their intervals."""
    importance: Annotated[Importance | None, Field(exclude_if=lambda value: value is None)] = None
    """Which features it relies on; null: it was not measured, or of an earlier release."""
    verdict: Verdict
    message: Text
    """The decision in a sentence."""
    spec_sha256: Sha256
    approval: Approval | None
    """null: the deployment has not ended, or nobody is asked."""
    promoted_from: Annotated[Text | None, Field(exclude_if=lambda value: value is None)] = None
    """Stage and run that it was taken over from; null: the run trained it."""
    caveats: tuple[Text, ...]
    """What whoever uses it should mind: limits of its data, and what was found and let pass."""
    readiness: Annotated[Readiness | None, Field(exclude_if=lambda value: value is None)] = None
    """The [ML Test Score](ml-test-score.md) of the model when the card was written; null: of an earlier release."""
