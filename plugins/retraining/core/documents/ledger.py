"""Document of what the monitor decided: one row of the ledger, with the policy and the facts that it was decided by."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from retraining.core.documents.document import Count, Document, ModelId, Number, RunKey, Text, Uri, UtcTime, Value
from retraining.core.documents.monitoring import DriftChampion, NamedState, Signal
from retraining.core.signal_kinds import SignalKind
from retraining.core.spec.monitoring import Action, Clock
from retraining.core.untyped import JsonObject

Severity = Literal["info", "warning", "critical"]
ResultState = Literal["unknown", "running", "promoted", "rejected", "failed", "rolled_back"]
LedgerBecause = Literal[
    SignalKind,
    "no_signal",
    "too_few_requests",
    "no_champion",
    "named_state",
    "hysteresis",
    "new_days",
    "half_learned",
    "cooldown",
    "budget",
    "loop_guard",
    "quiet_hours",
    "paused",
    "no_previous",
    "rolled_back",
    "settled",
    "no_drift",
]
"""A kind of signal: it was acted on, or warned of. `no_drift` is of rows of earlier releases; the others say what
held an action back, or why there was nothing to decide."""


class QuietHours(Value):
    """From when to before when, UTC, nothing is begun; it may pass midnight."""

    start: Clock
    end: Clock


class TrainingDays(Value):
    """What passes before a day is trained on: its labels come, and it is a test day no more.

    `trained_days` is how many are trained on; 0: all that the query gives. `answered_days` is of how many days answers
    are held against labels.
    """

    label_lag_days: Count
    test_days: Count
    trained_days: Count
    answered_days: Count


class LedgerPolicy(Value):
    """The rules that a row was decided by: the model's `monitoring.policy`, with what belongs to it.

    Without `training`, in rows of earlier releases, no order waits for new days.
    """

    windows_exceeded: Annotated[int, Field(ge=1)]
    windows_of: Annotated[int, Field(ge=1)]
    actions: dict[SignalKind, Action]
    min_requests: Count
    cooldown_hours: Annotated[Number, Field(ge=0)]
    max_retrainings_per_week: Count | None
    quiet_hours: QuietHours | None
    max_age_days: Annotated[Number, Field(gt=0)] | None
    rollback_within_hours: Annotated[Number, Field(ge=0)]
    training: TrainingDays | None = None


class LedgerResult(Value):
    """What came of a retraining or rollback that an earlier row ordered.

    `version_id` is the version that the run registered, `gain` its metric's gain over the champion's.
    """

    ledger_id: Text
    ordered_at: UtcTime
    cause: Text | None
    dag_run_id: Text | None
    run_key: RunKey | None
    state: ResultState
    version_id: Text | None
    gain: Number | None


class LedgerOrder(Value):
    """What a monitor run ordered: by the last one two at once see each other."""

    ledger_id: Text
    as_of: UtcTime
    outcome: Action
    cause: Text | None = None


class LedgerFacts(Value):
    """What was known beside the signals: enough to take the decision again.

    `by_rollback`: the champion came by a rollback, so that the version before it is the broken one. `last_by_hand` is
    when a person last started a retraining. `classifier` is one more signal, of the task `multivariate`; null: it was
    not asked for. `lost_orders` are the ids of rows that ordered something of which nothing began, and nothing will:
    their task failed before its event was out. They hold nothing back. `remembered` are the ids of orders from before
    the time that all rows are looked at since, which still matter. `retrain_as_of` is the time that a person gave for
    what is ordered: it waits for no new days.
    """

    champion: DriftChampion | None
    champion_since: UtcTime | None
    previous_version: Text | None
    paused: Text | None
    results: tuple[LedgerResult, ...]
    by_rollback: bool = False
    last_by_hand: UtcTime | None = None
    last_order: LedgerOrder | None = None
    classifier: Signal | None = None
    lost_orders: tuple[Text, ...] = ()
    remembered: tuple[Text, ...] = ()
    retrain_as_of: UtcTime | None = None


class Ledger(Document):
    """What one monitor run came to (none, warn, retrain, tune or rollback), the reason, and all that was exceeded.

    With the policy and the facts that it was decided by. The model's `last_order.json` is a copy of the row that
    ordered something last.
    """

    written_by: ClassVar[str] = "decide"
    read_by: ClassVar[str] = "later monitor runs, people"
    kind: Literal["ledger"] = "ledger"
    model: ModelId
    as_of: UtcTime
    ledger_id: Text | None = None
    dag_run_id: Text | None = None
    """The monitor's own run, by which a later one sees whether the order went out."""
    outcome: Action = "none"
    reason: LedgerBecause
    cause: Text | None = None
    """The signal that it is about, `kind:subject`."""
    causes: tuple[Text, ...] = ()
    """All that were exceeded, worst first."""
    since: dict[Text, UtcTime] = Field(default_factory=dict)
    """Since when the data are other, by cause that lasts: an order waits until it trains on some of these days."""
    named_states: dict[Text, NamedState] = Field(default_factory=dict)
    """Signals whose input was wrong, with what was wrong."""
    severity: Severity = "info"
    message: Text
    signals_uri: Uri | None = None
    policy: LedgerPolicy | None = None
    """null: of an earlier release."""
    facts: LedgerFacts | None = None
    """null: of an earlier release."""
    retrain_as_of: UtcTime | None
    """Time that an ordered retraining computes as of."""
    last_retrain_as_of: UtcTime | None
    earlier_orders: tuple[LedgerOrder, ...] = ()
    """Of a row that orders something: all orders before it, oldest first, so that none is forgotten."""
    decision: Literal["retrain", "wait"] | None = None
    """Of an earlier release alone."""
    drift_uri: Uri | None = None
    """Of an earlier release alone."""

    @classmethod
    def upgrade(cls, raw: JsonObject) -> JsonObject:
        """Give a row of an earlier release its outcome."""
        if "outcome" in raw or "decision" not in raw:
            return raw
        return {**raw, "outcome": "retrain" if raw["decision"] == "retrain" else "none"}
