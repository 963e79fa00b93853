"""Documents of the multivariate drift: a classifier is asked to tell requests from training examples."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import (
    Address,
    Count,
    ModelId,
    Number,
    RequestDocument,
    ResultDocument,
    RunKey,
    Share,
    TableName,
    Text,
    Value,
)


class ComparedColumn(Value):
    """A feature, and the column of the sample that has its values."""

    name: Text
    column: Text
    values: Literal["numeric", "categorical"]


class MultivariateRequest(RequestDocument):
    """What the trainer is asked: how well requests and training examples can be told apart.

    `table` has a row per request and per training example, which the BOOL column `asked` tells apart.
    """

    kind: Literal["multivariate_request"] = "multivariate_request"
    model: ModelId
    run_key: RunKey
    """Of the champion's run, whose training examples they are."""
    table: TableName
    columns: Annotated[tuple[ComparedColumn, ...], Field(min_length=1)]
    folds: Annotated[int, Field(ge=2, le=20)]
    seed: Count
    multivariate_uri: Address


class DrivingFeature(Value):
    """How much lower the AUC is when the values of one feature are shuffled among the judged rows."""

    name: Text
    loss: Number


class Multivariate(ResultDocument):
    """How well they can be told apart: the AUC of rows that the classifier has not seen; 0.5 is not at all.

    `low` and `high` are its interval of 95 %, `folds` the AUC of each fold that has both sides.
    """

    kind: Literal["multivariate"] = "multivariate"
    model: ModelId
    run_key: RunKey
    table: TableName
    requests: Count
    examples: Count
    auc: Share
    low: Share
    high: Share
    folds: tuple[Share, ...]
    features: tuple[DrivingFeature, ...]
    """The one that drives it most first."""
