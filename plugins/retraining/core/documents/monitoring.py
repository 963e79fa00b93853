"""Documents of the monitor: the drift it measured, and the ledger row that says what it decided."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import Count, Document, ModelId, Number, RunKey, Text, Uri, UtcTime, Value


class DriftChampion(Value):
    """The version that answered the requests."""

    version_id: Text
    run_key: RunKey


class FeatureDrift(Value):
    """Distance in [0, 1] between the requests and the champion's training data; drifted when strictly over."""

    name: Text
    distance: Literal["l_infinity", "jensen_shannon"]
    value: Annotated[Number, Field(ge=0, le=1)]
    threshold: Annotated[Number, Field(gt=0, le=1)]
    drifted: bool


class Drift(Document):
    """Drift of the requests of the last `window_hours` before `as_of`."""

    kind: Literal["drift"] = "drift"
    model: ModelId
    as_of: UtcTime
    window_hours: Annotated[int, Field(ge=1)]
    endpoint_name: Text
    log_table: Text
    rows: Count
    champion: DriftChampion
    baseline_uri: Uri
    threshold: Annotated[Number, Field(gt=0, le=1)]
    features: tuple[FeatureDrift, ...]


class Ledger(Document):
    """Why a retraining was or was not ordered."""

    kind: Literal["ledger"] = "ledger"
    model: ModelId
    as_of: UtcTime
    decision: Literal["retrain", "wait"]
    because: Literal["drift", "no_drift", "too_few_requests", "cooldown", "paused", "no_champion"]
    words: Text
    drift_uri: Uri | None
    retrain_as_of: UtcTime | None
    last_retrain_as_of: UtcTime | None
