"""Names in Vertex AI: models, endpoints and jobs, their labels and aliases."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from retraining.core.documents.document import canonical_json
from retraining.core.documents.plan import Plan, Trigger
from retraining.core.errors import ContractError
from retraining.core.naming.dags import find_model_of_dag, is_model
from retraining.core.naming.run_keys import is_run_key

MODEL_LABEL = "retraining-model"
RUN_LABEL = "retraining-run"
TASK_LABEL = "retraining-task"
KEY_LABEL = "retraining-key"
OWNER_LABEL = "retraining-owner"
DAG_RUN_LABEL = "retraining-dag-run"
GENERATION_LABEL = "retraining-generation"
MODELS_LABEL = "retraining-models"
"""Of a version: `own`, where its trainer's image answers for it and not this project's trainer."""
OWN = "own"
CAUSE_LABEL = "retraining-cause"
"""Of a version: why its run was started."""
PROMOTED_FROM_LABEL = "retraining-promoted-from"
"""Of a version: the stage that it was taken over from."""
PROMOTED_RUN_LABEL = "retraining-promoted-run"
"""Of a version: key of the run there."""
ROLLOUT_LABEL = "retraining-rollout"
"""Of an endpoint: the generation of the model's `rollout.json` that allowed what it serves."""

CHALLENGER = "challenger"
CHAMPION = "champion"
BEST = "best"
"""Side of the comparison, no alias: the best champion of late."""
PREVIOUS = "previous"
DEFAULT = "default"
"""Vertex AI gives it to a model's first version, and exactly one version has it at any time."""
AS_OF_ALIAS = "as-of-"
"""What the alias of a backfilled version begins with."""


_LABEL_CHARACTERS = 63

TUNING_JOBS = "hyperparameterTuningJobs"
BATCH_JOBS = "batchPredictionJobs"
PERSISTENT_RESOURCES = "persistentResources"
ENDPOINTS = "endpoints"
SHARED_MACHINES = "deploymentResourcePools"
MODELS = "models"


@dataclass(frozen=True, kw_only=True)
class ResourceName:
    """Full name of a resource of Vertex AI: `projects/<project>/locations/<region>/<collection>/<id>`.

    `project` is an id or a number, as the service writes it. `version` is an id or an alias of a model's version
    (`…/models/<id>@<version>`), empty where the name has none.
    """

    project: str
    region: str
    collection: str
    resource_id: str
    version: str = ""

    @classmethod
    def parse(cls, name: str) -> ResourceName:
        """Read a full name.

        Raises:
            ContractError: It has another form.
        """
        parts = name.split("/")
        if len(parts) != 6 or (parts[0], parts[2]) != ("projects", "locations"):
            raise ContractError("resource of Vertex AI", repr(name), "projects/…/locations/…/<collection>/<id>")
        resource_id, _, version = parts[5].partition("@")
        return cls(project=parts[1], region=parts[3], collection=parts[4], resource_id=resource_id, version=version)

    def __str__(self) -> str:
        """Return the name as text."""
        name = f"{location_name(self.project, self.region)}/{self.collection}/{self.resource_id}"
        return version_name(name, self.version) if self.version else name


def location_name(project: str, region: str) -> str:
    """Return the parent of all Vertex AI resources of a region."""
    return f"projects/{project}/locations/{region}"


def last_id(name: str) -> str:
    """Return the id of a resource: what stands behind the last slash of its name."""
    return name.rpartition("/")[2]


def model_name(project: str, region: str, model: str) -> str:
    """Return the registry name of a model."""
    return str(ResourceName(project=project, region=region, collection=MODELS, resource_id=model))


def version_name(model: str, version: str) -> str:
    """Return the full name of a version: a model's full name, and the version's id or alias."""
    return f"{model}@{version}"


def unversioned(name: str) -> str:
    """Return the full name of a model, of one that may have a version."""
    return name.partition("@")[0]


def version_id_of(version_name: str) -> str | None:
    """Return the id in the full name of a version; None: the name has none."""
    return version_name.partition("@")[2] or None


def endpoint_id(model: str) -> str:
    """Return the endpoint ids allow hyphens only."""
    return model.replace("_", "-")


def endpoint_name(project: str, region: str, model: str, given: str | None = None) -> str:
    """Return the full name of a model's endpoint, of a given id or else of its own."""
    found = given or endpoint_id(model)
    return str(ResourceName(project=project, region=region, collection=ENDPOINTS, resource_id=found))


def shared_machines_name(project: str, region: str, pool_id: str) -> str:
    """Return the full name of machines that models share: a deployment resource pool."""
    return str(ResourceName(project=project, region=region, collection=SHARED_MACHINES, resource_id=pool_id))


def staging_of(model: str) -> str:
    """Return the name that stands for a model where its versions are tried before its own endpoint is touched."""
    return f"{model}_staging"


def deployed_model_id(run_key: str) -> str:
    """Return the id of a run's deployed model: 1 to 10 digits, as DeployedModel.id wants it, without a leading zero."""
    number = int(hashlib.sha256(run_key.encode()).hexdigest(), 16)
    return str(10**9 + number % (9 * 10**9))


def alias_as_of(as_of: datetime) -> str:
    """Return the alias of a backfilled version."""
    return f"{AS_OF_ALIAS}{as_of.astimezone(UTC):%Y%m%d}"


def run_of(labels: Mapping[str, str]) -> tuple[str, str] | None:
    """Return model and run key that the labels of a resource name; None: no run of ours made it."""
    model, run_key = labels.get(MODEL_LABEL, ""), labels.get(RUN_LABEL, "")
    return (model, run_key) if is_model(model) and is_run_key(run_key) else None


def version_labels(plan: Plan) -> dict[str, str]:
    """Return the labels of a registered version.

    The way back to its run, why that was started, who scores it, and which stage it was taken over from.
    """
    own = {MODELS_LABEL: OWN} if plan.spec.training.runtime.scoring_image else {}
    taken = plan.taken_from
    promoted = {PROMOTED_FROM_LABEL: taken.stage, PROMOTED_RUN_LABEL: taken.run_key} if taken else {}
    return {MODEL_LABEL: plan.model, RUN_LABEL: plan.run_key, CAUSE_LABEL: cause_label(plan.trigger), **own, **promoted}


def cause_label(trigger: Trigger) -> str:
    """Return a run's cause as a label may have it (`skew:carrier` is `skew-carrier`); without one the trigger's kind.

    https://cloud.google.com/resource-manager/docs/labels-overview#requirements
    """
    cause = re.sub(r"[^a-z0-9_]+", "-", (trigger.cause or trigger.kind).lower())
    return cause.strip("-")[:_LABEL_CHARACTERS].rstrip("-") or trigger.kind


def job_labels(plan: Plan, task: str) -> dict[str, str]:
    """Return the labels of a job, but for the one that identifies it (`KEY_LABEL`, see `job_key`)."""
    return {MODEL_LABEL: plan.model, RUN_LABEL: plan.run_key, TASK_LABEL: task}


def caller_names(dag_id: str, task_id: str) -> dict[str, str]:
    """Return the labels of a task's statements on BigQuery, by which a bill tells models apart.

    Args:
        dag_id: Of the task; one of no model has no label of it.
        task_id: Its name, with the groups that it is in.
    """
    model = find_model_of_dag(dag_id)
    named = re.sub(r"[^a-z0-9_-]", "-", task_id.lower())[:_LABEL_CHARACTERS]
    return {**({MODEL_LABEL: model} if model else {}), TASK_LABEL: named}


def job_key(*, dag_id: str, run_id: str, task_id: str, map_index: int, max_tries: int, job: object) -> str:
    """Return the identity of a job: the same task instance with the same job finds it again.

    A cleared one makes another.

    `max_tries` changes when a task instance is cleared and not when it is retried.
    """
    spec = hashlib.sha1(canonical_json(job), usedforsecurity=False).hexdigest()
    text = "|".join((dag_id, run_id, task_id, str(map_index), str(max_tries), spec))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def job_owner(*, dag_id: str, run_id: str, task_id: str, map_index: int) -> str:
    """Return the label of all jobs of a task instance, whatever its generation: what an older one left can be found."""
    text = "|".join((dag_id, run_id, task_id, str(map_index)))
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def dag_run_label(dag_id: str, run_id: str) -> str:
    """Return the label of all jobs of a DAG run."""
    return hashlib.sha1(f"{dag_id}|{run_id}".encode(), usedforsecurity=False).hexdigest()


def job_display_name(model: str, task: str, key: str) -> str:
    """Name of a job for humans: sorts by model, task and time; at most 128 characters."""
    return f"{model}__{task}__{key.replace('-', '_')}"[:128]


def image_digest(image: str) -> str | None:
    """Return the digest that an image is named by, `sha256:…`; None: it is named by a tag, which may be moved."""
    return image.partition("@")[2] or None


def prebuilt_image(region: str, framework: str, *, accelerated: bool) -> str:
    """Return the google's training container of a TensorFlow, near a region.

    https://cloud.google.com/vertex-ai/docs/training/pre-built-containers

    Args:
        region: Where the job runs.
        framework: TensorFlow's version, for example `2.15`.
        accelerated: Whether the job has accelerators.
    """
    continent = region.partition("-")[0]
    place = continent if continent in ("us", "europe", "asia") else "us"
    image = f"tf-{'gpu' if accelerated else 'cpu'}.{framework.replace('.', '-')}.py310"
    return f"{place}-docker.pkg.dev/vertex-ai/training/{image}:latest"
