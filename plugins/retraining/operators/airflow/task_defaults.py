"""What the tasks of the DAGs have in common: how often and when Airflow tries them again, and when it gives them up."""

from __future__ import annotations

from datetime import timedelta

from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import Foreign

BOUNDED = {"execution_timeout": timedelta(hours=3)}
"""A statement on BigQuery is given up after two hours."""
RETRIES = {
    "retries": 3,
    "retry_delay": timedelta(seconds=30),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=10),
}


FIRST: dict[str, object] = {"priority_weight": 300, "weight_rule": "absolute"}
"""Weight of tasks that give an earlier version its traffic back."""


MACHINE_WAITS = 20
"""Added to a task's weight for each step of a machine that may be paid while it waits for the task."""


def weighed(priority: int, *, production: bool = True, step: int = 0) -> dict[str, object]:
    """Return the weight of a DAG's tasks, by which Airflow starts them where more wait than it may run.

    It is of the DAG, whatever starts its run: a backfill of `retrain__<model>` has that of the nightly run.

    Args:
        priority: Of the model, 1 to 10.
        production: Whether something that serves today waits for it; else it comes after all that does.
        step: Of chained jobs, 1 to 3, whose machine waits, and is paid, until this task begins; 0: none waits for it.
    """
    base = 200 if production else 100
    return {"priority_weight": base + MACHINE_WAITS * step + priority, "weight_rule": "absolute"}


def of_step(spec: ModelSpec, step: int) -> dict[str, Foreign]:
    """Return what a task of chained jobs has otherwise than its DAG: the later ones go first, so that machines end."""
    return weighed(spec.priority, step=step) if spec.jobs == "chained" else {}


def of_model(spec: ModelSpec, *, production: bool = True) -> dict[str, object]:
    """Return what the tasks of a model's DAG have of its file: owner, labels, weight.

    Args:
        spec: The file.
        production: As for `weighed`.
    """
    return {"owner": spec.owner, "labels": spec.labels, **weighed(spec.priority, production=production)}
