"""Document of the decision: the verdict, gate by gate."""

from __future__ import annotations

from typing import Literal

from retraining.core.documents.document import Document, ModelId, RunKey, Sha256, Text, UtcTime, Value

GateName = Literal["floor", "gain", "slices", "examples", "newer_champion", "unseen", "signature", "serving", "mode"]
Verdict = Literal["promote", "reject", "record"]


class Gate(Value):
    """One condition for promotion."""

    gate: GateName
    passed: bool
    found: str
    expected: str
    words: Text


class DecisionChampion(Value):
    """The champion the challenger was held against."""

    version_id: Text
    run_key: RunKey
    as_of: UtcTime


class Decision(Document):
    """The verdict, its gates, one sentence for a human, and the digests of what it was taken from."""

    kind: Literal["decision"] = "decision"
    model: ModelId
    run_key: RunKey
    as_of: UtcTime
    mode: Literal["live", "backfill"]
    verdict: Verdict
    gates: tuple[Gate, ...]
    words: Text
    champion: DecisionChampion | None
    inputs: dict[Literal["plan", "evaluation", "evaluate_request"], Sha256]
