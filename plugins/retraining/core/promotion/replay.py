"""A decision taken again: from the documents that it was taken from, by the rules of now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from retraining.core.documents.document import digest
from retraining.core.documents.evaluation import Decision, EvaluateRequest, Evaluation
from retraining.core.documents.plan import Plan
from retraining.core.promotion import gates
from retraining.core.untyped import JsonObject

REPLAYED = ("plan", "evaluate_request", "evaluation", "decision")
"""Kinds of the documents that a replay reads."""


def replay_decision(stored: Mapping[str, bytes]) -> Decision:
    """Return the decision that follows from stored documents, by kind.

    Raises:
        ContractError: One does not obey its contract, or they are of different runs.
    """
    plan = Plan.parse(stored["plan"])
    request = EvaluateRequest.parse(stored["evaluate_request"])
    evaluation = Evaluation.parse(stored["evaluation"])
    inputs: tuple[gates.InputName, ...] = ("plan", "evaluate_request", "evaluation")
    return gates.decide(plan, request, evaluation, {name: digest(stored[name]) for name in inputs})


def decision_changes(before: Decision, now: Decision) -> list[str]:
    """Return what differs between two decisions, a line for each value; none: they are the same."""
    values = [dict(_leaves(_by_gate(decision), "")) for decision in (before, now)]
    paths = dict.fromkeys(path for side in values for path in side)
    pairs = ((path, *(side.get(path) for side in values)) for path in paths)
    return [f"{path}: stored {stored!r}, now {again!r}" for path, stored, again in pairs if stored != again]


def _by_gate(decision: Decision) -> JsonObject:
    return {**decision.to_json(), "gates": {gate.gate: gate.model_dump(mode="json") for gate in decision.gates}}


def _leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{path}.{key}" if path else key)
    else:
        yield path, value
