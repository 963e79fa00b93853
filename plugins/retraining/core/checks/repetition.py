"""Whether a run would come out as an earlier one did: the same rows, the same trainer, the same way to train and judge.

A training is repeatable: its seed is in the spec, its rows are in the shards. So what would be equal is not paid twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from retraining.core.documents import Decision, Plan, Repetition, Snapshot
from retraining.core.untyped import JsonObject

DECIDES = ("data", "entries", "crosses", "label", "auxiliary_labels", "training", "evaluation", "deployment")
"""Fields of the spec that a run's result follows from. `monitoring`, `scoring`, what starts a run and who is told are
not among them."""

WAY_OUT = "Param force trains all the same"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What a run's result follows from.

    Attributes:
        plan: The run.
        snapshot: Its rows, by day.
        quarantined: Days that it goes on without, as ISO dates.
    """

    plan: Plan
    snapshot: Snapshot
    quarantined: tuple[str, ...] = ()


def may_repeat(plan: Plan) -> bool:
    """Return whether a run can be a repetition of another.

    Not a backfill, a search, a warm start, a forced one, or one that takes a version over.
    """
    trains = plan.taken_from is None and not plan.spec.tuning and plan.spec.training.initial != "champion"
    return trains and plan.mode == "live" and plan.attempt is None


def is_repetition(mine: Inputs, other: Inputs) -> bool:
    """Return whether two runs have the same rows, and would do the same with them."""
    return _rows(mine) == _rows(other) and _way(mine.plan) == _way(other.plan)


def of_champion(other: Plan, version_id: str) -> Repetition:
    """Return that the champion was made of the same.

    Args:
        other: Its run.
        version_id: Its version.
    """
    made = f"made version {version_id}, the champion, of the same rows in the same way"
    return Repetition(run_key=other.run_key, message=f"Nothing new since run {other.run_key}, which {made}. {WAY_OUT}.")


def of_rejected(other: Plan, decision: Decision) -> Repetition:
    """Return that the same was rejected already, against the champion that is it still.

    Args:
        other: The run.
        decision: That it came to.
    """
    met = f"against version {decision.champion.version_id}" if decision.champion else "by the floor"
    message = f"Nothing new since run {other.run_key}, which had the same rows and was rejected {met}. {WAY_OUT}."
    return Repetition(run_key=other.run_key, message=message)


def _rows(inputs: Inputs) -> JsonObject:
    taken, by_time = inputs.snapshot, inputs.plan.spec.data.split == "time"
    return {
        "test_start": inputs.plan.window.test_start if by_time else None,
        "schema": taken.schema_hash,
        "spans": [(span.span, span.fingerprint) for span in taken.spans],
        "quarantined": sorted(inputs.quarantined),
        "golden": taken.golden.fingerprint if taken.golden else None,
    }


def _way(plan: Plan) -> JsonObject:
    return {
        "spec": plan.spec.model_dump(mode="json", include=set(DECIDES)),
        "images": (plan.trainer_image, plan.trainer_package, plan.serving_image),
        "gates": {name: code.sha256 for name, code in plan.gates.items()},
        "deploy": plan.deploy,
        "environment": plan.environment,
        "taken_from": plan.taken_from,
    }
