"""Documents of the multivariate drift: a classifier is asked to tell requests from training examples."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

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
    """The table with a sample of requests and training examples, and the columns that may tell them apart."""

    written_by: ClassVar[str] = "multivariate"
    read_by: ClassVar[str] = "job `separate`"
    kind: Literal["multivariate_request"] = "multivariate_request"
    model: ModelId
    run_key: RunKey
    """Of the champion's run, whose training examples they are."""
    table: TableName
    """A row per request and per training example, which the BOOL column `asked` tells apart."""
    columns: Annotated[tuple[ComparedColumn, ...], Field(min_length=1)]
    folds: Annotated[int, Field(ge=2, le=20)]
    seed: Count
    multivariate_uri: Address


class DrivingFeature(Value):
    """How much lower the AUC is when the values of one feature are shuffled among the judged rows."""

    name: Text
    loss: Number


class Multivariate(ResultDocument):
    """How far requests and training examples [differ](monitoring.md#multivariate-drift), and by which features.

    It is measured by how well a classifier tells them apart.
    """

    written_by: ClassVar[str] = "job `separate`"
    read_by: ClassVar[str] = "decide, people"
    kind: Literal["multivariate"] = "multivariate"
    model: ModelId
    run_key: RunKey
    table: TableName
    requests: Count
    examples: Count
    auc: Share
    """Of rows that the classifier has not seen; 0.5 is not at all."""
    low: Share
    """Lower end of the AUC's interval of 95 %."""
    high: Share
    """Upper end."""
    folds: tuple[Share, ...]
    """AUC of each fold that has both sides."""
    features: tuple[DrivingFeature, ...]
    """The one that drives it most first."""
