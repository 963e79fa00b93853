"""Documents of scoring: a trainer is asked for its models' answers to a split, and what it leaves.

The comparison needs nothing else of a model, so champion and challenger may be of different frameworks.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Address,
    ModelId,
    Positive,
    RequestDocument,
    ResultDocument,
    RunKey,
    Sha256,
    Text,
    Value,
)
from retraining.core.documents.evaluation import Shard
from retraining.core.spec.features import Label

ScoredSplit = Literal["test", "golden", "validation"]
"""`golden` is the frozen set; on `validation` a threshold is chosen."""


class ScoredModel(Value):
    """A model to be scored, and where its scores go."""

    model_uri: Address
    scores_uri: Address
    """Of the document `scores`; the files that it names lie beside it."""
    model_digest: Sha256 | None = None
    """By the model's training report, proven before anything of it is loaded; null: not known."""


class ScoreRequest(RequestDocument):
    """What a trainer is asked: answers of models that it made, to the same examples, and where their scores go.

    It lies in `scores/challenger/` or `scores/champion/`.
    """

    written_by: ClassVar[str] = "evaluate"
    read_by: ClassVar[str] = "scoring job of another framework"
    kind: Literal["score_request"] = "score_request"
    model: ModelId
    run_key: RunKey
    manifest_uri: Address
    splits: Annotated[tuple[ScoredSplit, ...], Field(min_length=1, max_length=3)]
    label: Label
    key: Text
    models: Annotated[tuple[ScoredModel, ...], Field(min_length=1, max_length=2)]
    """Their documents are written in this order: the last one says that all is done."""


class ScoresFile(Value):
    """A Parquet file with a row per example of a split, in any order.

    Columns: `key` (string), `label` (double), `score`: double, or a list of doubles for several classes or quantiles.
    """

    uri: Address
    sha256: Sha256
    rows: Positive
    shards: Annotated[tuple[Shard, ...], Field(min_length=1)]
    """The files of the split as they were read."""


class ModelScores(ResultDocument):
    """What a model answers to every example of some splits, or why it answers none.

    The Parquet files beside it hold the answers (key, label, score); it says on which shards. It lies in
    `scores/challenger/` or `scores/champion/`.
    """

    written_by: ClassVar[str] = "evaluation job, or a scoring job"
    read_by: ClassVar[str] = "evaluation job, people"
    kind: Literal["scores"] = "scores"
    model: ModelId
    run_key: RunKey
    """Of the run whose examples these are."""
    model_uri: Address
    model_digest: Sha256 | None = None
    """As a report has it; null: the model was not looked at."""
    framework: dict[Text, Text] = Field(default_factory=dict)
    """Versions of what answered, by package."""
    splits: dict[ScoredSplit, ScoresFile]
    skipped: Text | None = None
    """Why there are no scores: the model cannot read these examples. null: there are."""
