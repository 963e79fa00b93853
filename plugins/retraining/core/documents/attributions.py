"""Documents of the attributions: how much each feature matters for a version's answers, to its test days and lately."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from retraining.core.documents.deployment import SmokeRequest
from retraining.core.documents.document import (
    Amount,
    Count,
    Document,
    ModelId,
    Number,
    RunKey,
    Text,
    Uri,
    UtcTime,
    Value,
)
from retraining.core.documents.monitoring import NamedState

Attributions = tuple[tuple[Number, ...], ...]
"""By row, then by feature: what the feature's turn changed in the answer, of classes in log-odds."""


class SampledRequest(Value):
    """An instance of the request log: of which request, and at which place in it."""

    request_id: Text
    place: Count


class AttributionRequest(Document):
    """What the endpoint is about to be asked for attributions, before it is: a monitor run asks once, whatever dies."""

    written_by: ClassVar[str] = "measure"
    read_by: ClassVar[str] = "measure, multivariate, deploy, people"
    kind: Literal["attribution_request"] = "attribution_request"
    model: ModelId
    as_of: UtcTime
    run_key: RunKey
    """Of the version that is asked."""
    asked_by: Text
    """Another one in each try."""
    seed: Text
    """Of the features' orders, one for each row by its number."""
    features: Annotated[tuple[Text, ...], Field(min_length=2)]
    baselines: dict[str, int | float | str]
    """By feature: the value that an instance's is held against."""
    requests: tuple[SampledRequest, ...]
    test_rows: tuple[Text, ...]
    """Keys of the version's test examples; empty where its baseline is stored already."""
    predictions: Count
    """That are asked for, fillers of the last request among them."""
    asked: SmokeRequest
    """By what these requests are told from the application's in the request log."""


class AttributionBaseline(Document):
    """What each feature adds to a version's answers to examples of its test days: once for each version."""

    written_by: ClassVar[str] = "measure"
    read_by: ClassVar[str] = "measure, people"
    kind: Literal["attribution_baseline"] = "attribution_baseline"
    model: ModelId
    run_key: RunKey
    request_uri: Uri
    """The `attribution_request` that it was asked by."""
    features: Annotated[tuple[Text, ...], Field(min_length=2)]
    rows: Attributions


class RequestAttributions(Document):
    """What each feature adds to a version's answers to the window's [requests](monitoring.md#attributions).

    Or why that is not known.
    """

    written_by: ClassVar[str] = "measure"
    read_by: ClassVar[str] = "the next ones, people"
    kind: Literal["attributions"] = "attributions"
    model: ModelId
    as_of: UtcTime
    run_key: RunKey
    features: Annotated[tuple[Text, ...], Field(min_length=2)]
    rows: Attributions
    """Empty: the endpoint gave none."""
    calls: Count
    """Requests that it was sent."""
    seconds: Amount
    reason: NamedState | None = None
    message: Text | None = None
    """null: it answered."""

    @model_validator(mode="after")
    def _rows_or_a_reason(self) -> Self:
        if (self.reason is None) != (self.message is None) or bool(self.rows) == (self.reason is not None):
            raise ValueError("attributions have rows, or a reason with a message")
        return self
