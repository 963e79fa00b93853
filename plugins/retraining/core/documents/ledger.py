"""Document of what the monitor decided: one row of the ledger, with the policy and the facts that it was decided by."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from retraining.core.documents.document import Count, Document, ModelId, Number, RunKey, Text, Uri, UtcTime, Value
from retraining.core.documents.monitoring import DriftChampion, SignalKind
from retraining.core.untyped import JsonObject

Action = Literal["none", "warn", "retrain", "tune", "rollback"]
"""What a monitor run comes to, and what a kind of signal asks for; from the mildest to the strongest."""
Severity = Literal["info", "warning", "critical"]
LedgerBecause = Literal[
    "traffic",
    "errors",
    "latency",
    "source",
    "age",
    "skew",
    "drift",
    "prediction_drift",
    "performance",
    "estimate",
    "multivariate",
    "no_signal",
    "too_few_requests",
    "no_champion",
    "named_state",
    "hysteresis",
    "cooldown",
    "budget",
    "loop_guard",
    "quiet_hours",
    "paused",
    "no_previous",
    "no_drift",
]
"""A kind of signal: it was acted on, or warned of. `no_drift` is of rows of earlier releases; the others say what
held an action back, or why there was nothing to decide."""
Clock = Annotated[str, Field(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]
"""Hour and minute, UTC."""


class QuietHours(Value):
    """From when to before when, UTC, nothing is begun; it may pass midnight."""

    start: Clock
    end: Clock


class LedgerPolicy(Value):
    """The rules that a row was decided by: the model's `monitoring.policy`, with what belongs to it."""

    windows_exceeded: Annotated[int, Field(ge=1)]
    windows_of: Annotated[int, Field(ge=1)]
    actions: dict[SignalKind, Action]
    min_requests: Count
    cooldown_hours: Annotated[Number, Field(ge=0)]
    max_retrainings_per_week: Count | None
    quiet_hours: QuietHours | None
    max_age_days: Annotated[Number, Field(gt=0)] | None
    rollback_within_hours: Annotated[Number, Field(ge=0)]


class LedgerResult(Value):
    """What came of a retraining or rollback that an earlier row ordered.

    `version_id` is the version that the run registered, `gain` its metric's gain over the champion's.
    """

    ledger_id: Text
    ordered_at: UtcTime
    cause: Text | None
    dag_run_id: Text | None
    run_key: RunKey | None
    state: Literal["unknown", "running", "promoted", "rejected", "failed", "rolled_back"]
    version_id: Text | None
    gain: Number | None


class LedgerFacts(Value):
    """What was known beside the signals: enough to take the decision again."""

    champion: DriftChampion | None
    champion_since: UtcTime | None
    previous_version: Text | None
    paused: Text | None
    results: tuple[LedgerResult, ...]


class Ledger(Document):
    """What one monitor run came to, and why.

    `cause` is the signal that was acted on, `kind:subject`; `causes` are all that were exceeded, worst first.
    `retrain_as_of` is the time that an ordered retraining computes as of. Rows of earlier releases have `decision` and
    `drift_uri`, and no policy and no facts.
    """

    kind: Literal["ledger"] = "ledger"
    model: ModelId
    as_of: UtcTime
    ledger_id: Text | None = None
    outcome: Action = "none"
    because: LedgerBecause
    cause: Text | None = None
    causes: tuple[Text, ...] = ()
    severity: Severity = "info"
    words: Text
    signals_uri: Uri | None = None
    policy: LedgerPolicy | None = None
    facts: LedgerFacts | None = None
    retrain_as_of: UtcTime | None
    last_retrain_as_of: UtcTime | None
    decision: Literal["retrain", "wait"] | None = None
    drift_uri: Uri | None = None

    @classmethod
    def upgrade(cls, raw: JsonObject) -> JsonObject:
        """Give a row of an earlier release its outcome."""
        if "outcome" in raw or "decision" not in raw:
            return raw
        return {**raw, "outcome": "retrain" if raw["decision"] == "retrain" else "none"}
