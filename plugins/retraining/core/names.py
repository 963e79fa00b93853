"""Every name of a resource is made here: run keys, tables, addresses, registry and endpoint names, labels."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime

from retraining.core.bucket_folders import BucketFolder
from retraining.core.documents.document import MODEL_PATTERN, RUN_KEY_PATTERN, canonical_json
from retraining.core.documents.plan import Plan
from retraining.core.errors import ContractError

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

_AS_OF_FORMAT = "%Y%m%dt%H%M%Sz"


def run_key(as_of: datetime, decides: object) -> str:
    """Key of a run: its time, and a hash of everything that decides the result. Also a valid label value.

    Args:
        as_of: The run's time.
        decides: JSON value of the spec after overrides, SQL hash, image, mode, deploy and attempt.
    """
    return f"{_stamp(as_of)}-{hashlib.sha256(canonical_json(decides)).hexdigest()[:12]}"


def run_key_as_of(key: str) -> datetime:
    """The time (UTC) a run key begins with.

    Raises:
        ContractError: It is no run key.
    """
    if not re.match(RUN_KEY_PATTERN, key):
        raise ContractError("run key", repr(key), "one like 20131120t030000z-0123456789ab")
    return datetime.strptime(key.split("-")[0], _AS_OF_FORMAT).replace(tzinfo=UTC)


def runs_uri(bucket: str, model: str) -> str:
    """Folder of all runs of a model, in order of their time by name."""
    return f"gs://{bucket}/{model}/runs"


def run_uri(bucket: str, model: str, key: str) -> str:
    """Folder of a run's documents, without a slash at the end."""
    return f"{runs_uri(bucket, model)}/{key}"


def studies_uri(bucket: str, model: str) -> str:
    """Folder of a model's studies: the memory of its searches for hyperparameters."""
    return f"gs://{bucket}/{model}/studies"


def study_uri(bucket: str, model: str, key: str) -> str:
    """A run's study, again outside its folder: later runs look here."""
    return f"{studies_uri(bucket, model)}/{key}.json"


def document_uri(folder_uri: str, kind: str) -> str:
    """Address of the document of a kind in a run's (or monitor's) folder."""
    return f"{folder_uri}/{kind}.json"


def report_page_uri(folder_uri: str) -> str:
    """Address of the run's page for humans."""
    return f"{folder_uri}/report.html"


def training_uri(folder_uri: str) -> str:
    """Base output directory of the training job; Vertex AI puts model, checkpoints and logs below it."""
    return f"{folder_uri}/training"


def artifact_uri(folder_uri: str) -> str:
    """Where the training job leaves the SavedModel."""
    return f"{training_uri(folder_uri)}/model"


def lite_uri(folder_uri: str) -> str:
    """Where the evaluation job leaves TF Lite models."""
    return f"{training_uri(folder_uri)}/lite"


def spans_uri(bucket: str, model: str, schema_hash: str) -> str:
    """The span store of a model for one schema."""
    return f"gs://{bucket}/{model}/spans/{schema_hash}"


def monitor_uri(bucket: str, model: str, as_of: datetime, dag_run_id: str) -> str:
    """Folder of one monitor run's documents."""
    return f"{monitors_uri(bucket, model)}/{_stamp(as_of)}-{dag_run_hash(dag_run_id)}"


def monitors_uri(bucket: str, model: str) -> str:
    """Folder of all monitor runs of a model; its ledger rows are `*/ledger.json` in it, in order of time by name."""
    return f"gs://{bucket}/{model}/monitor"


def spans_root(bucket: str, model: str) -> str:
    """The span stores of a model, of every schema."""
    return f"gs://{bucket}/{model}/spans"


def owner_uri(bucket: str) -> str:
    """Where a bucket says whose it is."""
    return f"gs://{bucket}/environment.txt"


def rollout_uri(bucket: str, model: str) -> str:
    """Where it is written down how far the change of a model's champion has come, and what was before it."""
    return f"gs://{bucket}/{model}/rollout.json"


def wakes_uri(bucket: str) -> str:
    """Folder of what waiting tasks remember."""
    return f"gs://{bucket}/{BucketFolder.WAKES}"


def wake_uri(bucket: str, key: str) -> str:
    """What one waiting task remembers: also a sign, by its time, that somebody still waits."""
    return f"{wakes_uri(bucket)}/{key}.json"


def leases_root(bucket: str) -> str:
    """Folder of the leases of all models' runs."""
    return f"gs://{bucket}/{BucketFolder.LEASES}"


def leases_uri(bucket: str, model: str) -> str:
    """Folder of the leases of a model's runs."""
    return f"{leases_root(bucket)}/{model}"


def lease_uri(bucket: str, model: str, key: str) -> str:
    """Where a run says that it is at work on its spans."""
    return f"{leases_uri(bucket, model)}/{key}.json"


def claims_uri(bucket: str, dag_run: str) -> str:
    """Folder of a DAG run's claims, by its label; among the wakes, with which they grow old and are deleted."""
    return f"{wakes_uri(bucket)}/claims/{dag_run}"


def upload_claim_uri(folder_uri: str) -> str:
    """Who may register a run's model."""
    return f"{folder_uri}/upload.json"


def claim_uri(bucket: str, dag_run: str, key: str) -> str:
    """Who may create the next job of a key."""
    return f"{claims_uri(bucket, dag_run)}/{key}.json"


def cleanings_uri(bucket: str) -> str:
    """Folder of all cleanings, in order of their time by name."""
    return f"gs://{bucket}/{BucketFolder.MAINTENANCE}"


def cleaning_uri(bucket: str, as_of: datetime, dag_run_id: str) -> str:
    """Folder of one cleaning's documents."""
    return f"{cleanings_uri(bucket)}/{_stamp(as_of)}-{dag_run_hash(dag_run_id)}"


def dag_run_hash(dag_run_id: str) -> str:
    """What tells the folders of two runs of one time apart."""
    return hashlib.sha1(dag_run_id.encode(), usedforsecurity=False).hexdigest()[:8]


def model_of_dag(dag_id: str) -> str:
    """The model of `retrain__<model>` or `monitor__<model>`.

    Raises:
        ContractError: The DAG has none.
    """
    model = dag_id.partition("__")[2]
    if not re.fullmatch(MODEL_PATTERN, model):
        raise ContractError("DAG id", repr(dag_id), "one like retrain__<model>", "Name the DAG so")
    return model


def run_table(plan: Plan) -> str:
    """Run table as `project.dataset.table`."""
    return f"{plan.project}.{plan.dataset}.run_{plan.model}__{plan.run_key.replace('-', '_')}"


def golden_table(plan: Plan) -> str:
    """Table of the frozen set as `project.dataset.table`: one per text of its query.

    Raises:
        ContractError: The plan has none.
    """
    return f"{plan.project}.{plan.dataset}.golden_{plan.model}__{_golden_query(plan)}"


def golden_uri(plan: Plan) -> str:
    """Where it is written down what the frozen set was when it was made.

    Raises:
        ContractError: The plan has none.
    """
    return f"gs://{plan.bucket}/{plan.model}/golden/{_golden_query(plan)}.json"


def request_log_table(project: str, dataset: str, model: str) -> str:
    """Table the endpoint logs requests and answers to, as `project.dataset.table`."""
    return f"{project}.{dataset}.requests_{model}"


def query_job_id(plan: Plan, purpose: str, attempt: str) -> str:
    """Deterministic BigQuery job id: the same task asking again meets its own job.

    Args:
        plan: The run.
        purpose: `snapshot`, `fingerprint`, `statistics`, …
        attempt: What tells a wanted repetition from a retry, for example `ti.max_tries`.
    """
    asked_by = f"{plan.environment or plan.bucket}|{plan.dag_run_id}|{attempt}"
    short = hashlib.sha1(asked_by.encode(), usedforsecurity=False).hexdigest()[:10]
    return f"{plan.model}__{purpose}__{plan.run_key}__{short}"


def monitor_job_id(environment: str, model: str, as_of: datetime, attempt: str) -> str:
    """Deterministic BigQuery job id of a monitor's question."""
    short = hashlib.sha1(f"{environment}|{attempt}".encode(), usedforsecurity=False).hexdigest()[:10]
    return f"{model}__requests__{_stamp(as_of)}__{short}"


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


def asset_name(model: str) -> str:
    """Name of the asset whose events start a retraining."""
    return f"retrain/{model}"


def asset_uri(model: str) -> str:
    """Address of that asset."""
    return f"x-retraining://{model}/drift"


def _golden_query(plan: Plan) -> str:
    if plan.golden_query is None:
        raise ContractError("plan.json", "no golden_query", "one")
    return plan.golden_query.sha256[:16]


def _stamp(as_of: datetime) -> str:
    return as_of.astimezone(UTC).strftime(_AS_OF_FORMAT)
