"""A decision taken again: from the documents that it was taken from, by the rules of now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from retraining.core.documents.document import digest
from retraining.core.documents.evaluation import OWN_GATE, Decision, EvaluateRequest, Evaluation, Gate
from retraining.core.documents.plan import Plan
from retraining.core.errors import SpecError
from retraining.core.promotion import gates
from retraining.core.promotion.own_gates import judge_own_gates
from retraining.core.team_code import TeamFunction
from retraining.core.untyped import JsonObject

REPLAYED = ("plan", "evaluate_request", "evaluation", "decision")
"""Kinds of the documents that a replay reads."""


def replay_decision(
    stored: Mapping[str, bytes], functions: Mapping[str, TeamFunction | SpecError] | None = None
) -> Decision:
    """Return the decision that follows from stored documents, by kind.

    A gate of the team's own is asked again where its code is at hand as it was planned; else it is as it was stored.

    Args:
        stored: The documents.
        functions: Of the team's own gates, by name; those that cannot be loaded are not asked.

    Raises:
        ContractError: One does not obey its contract, or they are of different runs.
    """
    plan = Plan.parse(stored["plan"])
    request = EvaluateRequest.parse(stored["evaluate_request"])
    evaluation = Evaluation.parse(stored["evaluation"])
    inputs: tuple[gates.InputName, ...] = ("plan", "evaluate_request", "evaluation")
    own = _own_gates(plan, evaluation, stored, functions or {})
    return gates.decide(plan, request, evaluation, {name: digest(stored[name]) for name in inputs}, own)


def unasked_gates(plan: Plan, functions: Mapping[str, TeamFunction | SpecError]) -> list[str]:
    """Return the team's own gates that cannot be asked again: their code is another one now, or is gone."""
    return [name for name in plan.gates if _sha256(functions.get(name)) != plan.gates[name].sha256]


def _own_gates(
    plan: Plan, evaluation: Evaluation, stored: Mapping[str, bytes], functions: Mapping[str, TeamFunction | SpecError]
) -> list[Gate]:
    if not plan.gates:
        return []
    kept = {f"{OWN_GATE}{name}" for name in unasked_gates(plan, functions)}
    before = {gate.gate: gate for gate in Decision.parse(stored["decision"]).gates if gate.gate in kept}
    return [before.get(gate.gate, gate) for gate in judge_own_gates(plan, evaluation, functions)]


def _sha256(found: TeamFunction | SpecError | None) -> str | None:
    return found.sha256 if isinstance(found, TeamFunction) else None


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
