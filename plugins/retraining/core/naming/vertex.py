"""Names in Vertex AI: models, endpoints and jobs, their labels and aliases."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from retraining.core.documents.document import canonical_json
from retraining.core.documents.plan import Plan

MODEL_LABEL = "retraining-model"
RUN_LABEL = "retraining-run"
TASK_LABEL = "retraining-task"
KEY_LABEL = "retraining-key"
OWNER_LABEL = "retraining-owner"
DAG_RUN_LABEL = "retraining-dag-run"
GENERATION_LABEL = "retraining-generation"

CHALLENGER = "challenger"
CHAMPION = "champion"
PREVIOUS = "previous"
DEFAULT = "default"
"""Vertex AI gives it to a model's first version, and exactly one version has it at any time."""


def location_name(project: str, region: str) -> str:
    """Parent of all Vertex AI resources of a region."""
    return f"projects/{project}/locations/{region}"


def model_name(project: str, region: str, model: str) -> str:
    """Registry name of a model."""
    return f"{location_name(project, region)}/models/{model}"


def endpoint_id(model: str) -> str:
    """Endpoint ids allow hyphens only."""
    return model.replace("_", "-")


def endpoint_name(project: str, region: str, model: str) -> str:
    """Full name of a model's endpoint."""
    return f"{location_name(project, region)}/endpoints/{endpoint_id(model)}"


def alias_as_of(as_of: datetime) -> str:
    """Alias of a backfilled version."""
    return f"as-of-{as_of.astimezone(UTC):%Y%m%d}"


def version_labels(plan: Plan) -> dict[str, str]:
    """Labels of a registered version: the way back to its run."""
    return {MODEL_LABEL: plan.model, RUN_LABEL: plan.run_key}


def job_labels(plan: Plan, task: str) -> dict[str, str]:
    """Labels of a job, but for the one that identifies it (`KEY_LABEL`, see `job_key`)."""
    return {MODEL_LABEL: plan.model, RUN_LABEL: plan.run_key, TASK_LABEL: task}


def job_key(*, dag_id: str, run_id: str, task_id: str, map_index: int, max_tries: int, job: object) -> str:
    """Identity of a job: the same task instance with the same job finds it again; a cleared one makes another.

    `max_tries` changes when a task instance is cleared and not when it is retried.
    """
    spec = hashlib.sha1(canonical_json(job), usedforsecurity=False).hexdigest()
    text = "|".join((dag_id, run_id, task_id, str(map_index), str(max_tries), spec))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def job_owner(*, dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    """Label of all jobs of a task instance, whatever its generation: what an older one left can be found."""
    text = "|".join((dag_id, run_id, task_id, str(map_index)))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def dag_run_label(dag_id: str, run_id: str) -> str:
    """Label of all jobs of a DAG run."""
    return hashlib.sha1(f"{dag_id}|{run_id}".encode(), usedforsecurity=False).hexdigest()


def job_display_name(model: str, task: str, key: str) -> str:
    """Name of a job for humans: sorts by model, task and time; at most 128 characters."""
    return f"{model}__{task}__{key.replace('-', '_')}"[:128]
