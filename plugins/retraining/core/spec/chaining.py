"""A model's jobs one after the other on one machine (`jobs: chained`), and which models cannot have that."""

from __future__ import annotations

from typing import Literal

from retraining.core.spec.cluster import Replicas, resolve_tier
from retraining.core.spec.training import Training

Jobs = Literal["separate", "chained"]


def chaining_problem(training: Training, export_replicas: int) -> str | None:
    """Return why a model's jobs cannot run one after the other on the machine of its training; None: they can.

    Args:
        training: The section.
        export_replicas: Machines that the export has there; of one that has machines of its own 1.
    """
    own = next((key for key in ("image", "framework") if getattr(training.runtime, key) is not None), None)
    if own:
        return f"jobs is chained, and training.runtime.{own} trains in another container than the rest: remove one"
    cluster = resolve_tier(training.cluster)
    others = (cluster.workers, cluster.parameter_servers, cluster.evaluator)
    count = 1 + sum(role.count if isinstance(role, Replicas) else 1 for role in others if role is not None)
    if count > 1:
        return f"jobs is chained, and training.cluster has {count} machines: give it one, or write jobs: separate"
    if export_replicas > 1:
        return (
            f"jobs is chained, and data.export.replicas is {export_replicas}: there is one machine for all, so remove "
            "it, or write jobs: separate"
        )
    return None
