"""The facet of our own: which run it is, what decided its result, and what came of it.

Its form is `docs/openlineage/1-0-0/RetrainingRecordRunFacet.json`. It says nothing of people, and nothing that
somebody wrote by hand: no reason, no description, no owner.
"""

from __future__ import annotations

from collections.abc import Mapping

from retraining.core.documents import Decision, Evaluation, Plan, ScoringPlan
from retraining.core.documents.document import format_time
from retraining.core.untyped import JsonObject

KEY = "retraining_record"
NAME = "RetrainingRecordRunFacet"
PRODUCER = "x-retraining://plugins/retraining"
SCHEMA_URL = f"x-retraining://docs/openlineage/1-0-0/{NAME}.json#/$defs/{NAME}"


def record_facet(plan: Plan | ScoringPlan, decision: Decision | None, evaluation: Evaluation | None) -> JsonObject:
    """Return the facet's fields; those of documents that are not there are left out."""
    facet: JsonObject = {
        "model": plan.model,
        "runKey": plan.run_key,
        "asOf": format_time(plan.as_of),
        "runUri": plan.run_uri,
    }
    if isinstance(plan, Plan):
        facet |= {"mode": plan.mode, "specSha256": plan.spec_sha256, "querySha256": plan.query.sha256}
    if decision is not None:
        gates = {gate.gate: gate.passed for gate in decision.gates}
        facet |= {"verdict": decision.verdict, "gates": gates}
        if decision.champion is not None:
            facet["championRunKey"] = decision.champion.run_key
    if evaluation is not None:
        facet["testRows"] = evaluation.rows
        facet["metrics"] = _numbers(evaluation.challenger.metrics.model_dump())
        if evaluation.champion is not None:
            facet["championMetrics"] = _numbers(evaluation.champion.metrics.model_dump())
    return facet


def _numbers(metrics: Mapping[str, object]) -> dict[str, float]:
    """Return the metrics that are one number and defined."""
    return {name: value for name, value in metrics.items() if isinstance(value, float | int)}
