"""Addresses in the buckets: folders and documents of runs, studies, monitors, cleanings and waiting tasks.

    gs://<bucket>/<model>/…                  what Airflow writes, and what it took over from jobs: jobs may read it
    gs://<results bucket>/jobs/<model>/…     what jobs write: spans, a run's results, models, checkpoints

The two buckets may be one: a condition of the jobs' role holds their account to the folder `jobs/`.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from retraining.core.bucket_folders import UPLOAD_FOLDER, UPLOAD_TOOLS, BucketFolder
from retraining.core.documents.plan import Plan
from retraining.core.naming.addresses import ObjectAddress, folder_of
from retraining.core.naming.dags import dag_run_hash
from retraining.core.naming.run_keys import frozen_set_key, stamp


def runs_uri(bucket: str, model: str) -> str:
    """Return the folder of all runs of a model, in order of their time by name."""
    return f"gs://{bucket}/{model}/runs"


def run_uri(bucket: str, model: str, key: str) -> str:
    """Return the folder of a run's documents, without a slash at the end."""
    return f"{runs_uri(bucket, model)}/{key}"


def results_root(results_bucket: str, model: str) -> str:
    """Return the folder below which the jobs of a model write; Airflow only where it copies another stage's version."""
    return f"gs://{results_bucket}/{BucketFolder.JOBS}/{model}"


def run_results_uri(results_bucket: str, model: str, key: str) -> str:
    """Return the folder that the jobs of a run write in."""
    return f"{results_root(results_bucket, model)}/runs/{key}"


def results_uri(plan: Plan) -> str:
    """Return the folder that a run's jobs write in; of a plan of an earlier release that of the run's documents."""
    return plan.results_uri or plan.run_uri


def monitor_results_uri(results_bucket: str, model: str, ledger_id: str) -> str:
    """Return the folder that the job of a monitor run writes in."""
    return f"{results_root(results_bucket, model)}/monitor/{ledger_id}"


def studies_uri(bucket: str, model: str) -> str:
    """Return the folder of a model's studies: the memory of its searches for hyperparameters."""
    return f"gs://{bucket}/{model}/studies"


def study_uri(bucket: str, model: str, key: str) -> str:
    """Return a run's study, again outside its folder: later runs look here."""
    return f"{studies_uri(bucket, model)}/{key}.json"


def document_uri(folder_uri: str, kind: str) -> str:
    """Return the address of the document of a kind in a run's (or monitor's) folder."""
    return f"{folder_uri}/{kind}.json"


def adoption_uri(stored_uri: str) -> str:
    """Return where it stands that a job's result was taken over to its place in the record, and its SHA-256."""
    return f"{folder_of(stored_uri)}/adopted/{ObjectAddress.parse(stored_uri).stem}.txt"


def taken_uri(folder_uri: str, kind: str) -> str:
    """Return where a run keeps a document of the run of another stage whose version it took over."""
    return document_uri(taken_folder_uri(folder_uri), kind)


def taken_folder_uri(folder_uri: str) -> str:
    """Return the folder of all of them."""
    return f"{folder_uri}/taken_from"


def tfdv_uri(folder_uri: str, what: str) -> str:
    """Return the address of a run's `schema` or `statistics` as TensorFlow Data Validation reads it."""
    return f"{folder_uri}/{what}.pbtxt"


def schema_uri(folder_uri: str, what: str) -> str:
    """Return where a run's version describes an `instance`, a `prediction` or the `parameters` of a request."""
    return f"{folder_uri}/schemata/{what}.yaml"


def report_page_uri(folder_uri: str) -> str:
    """Return the address of the run's page for humans."""
    return f"{folder_uri}/report.html"


def all_runs_page_uri(bucket: str, model: str) -> str:
    """Return the address of the page with all runs of a model side by side."""
    return f"gs://{bucket}/{model}/runs.html"


def overview_uri(bucket: str) -> str:
    """Return where the Models page reads all models."""
    return document_uri(f"gs://{bucket}", "overview")


def model_overview_uri(bucket: str, model: str) -> str:
    """Return where the Models page reads one model."""
    return document_uri(f"gs://{bucket}/{model}", "model_overview")


def spendings_uri(bucket: str, month: str) -> str:
    """Return the folder of what the models cost in a month, such as `2026-11`."""
    return f"gs://{bucket}/{BucketFolder.SPENDING}/{month}"


def spending_uri(bucket: str, month: str, model: str) -> str:
    """Return where it stands what a model cost in a month."""
    return document_uri(f"{spendings_uri(bucket, month)}/{model}", "spending")


def models_page_uri(bucket: str, model: str | None = None) -> str:
    """Return the Models page as a file: of all models, or of one."""
    return f"gs://{bucket}/{f'{model}/model' if model else 'models'}.html"


def submissions_uri(folder_uri: str) -> str:
    """Return the folder of a run's jobs as people submit them."""
    return f"{folder_uri}/submit"


def submission_uri(folder_uri: str, task: str) -> str:
    """Return the address of a task's job as people submit it, without the ending: `.json`, `.sh` and `.py`."""
    return f"{submissions_uri(folder_uri)}/{task}"


def chained_job_uri(folder_uri: str) -> str:
    """Return where it stands which of a run's jobs goes on with its next task."""
    return f"{folder_uri}/chained/job.json"


def chained_use_uri(folder_uri: str, task: str, job_id: str) -> str:
    """Return where it stands which generation of a task has its work done by the job of an earlier one."""
    return f"{folder_uri}/chained/{task}-{job_id}.json"


def contact_sheet_uri(results_uri: str) -> str:
    """Return where a training leaves its contact sheet of changed images, beside its report."""
    return f"{results_uri}/augmentation.png"


def training_uri(results_uri: str) -> str:
    """Return the base output directory of the training job; Vertex AI puts model, checkpoints and logs below it."""
    return f"{results_uri}/training"


def job_uri(results_uri: str, task: str) -> str:
    """Return the base output directory of another job of the run."""
    return f"{results_uri}/{task}"


def tuning_uri(folder_uri: str, phase: str) -> str:
    """Return the folder of one tuning job of the run's study: its base output directory, or that of its request."""
    return f"{folder_uri}/tuning/{phase}"


def model_uri(base_uri: str) -> str:
    """Return where a training job leaves the SavedModel, below its base output directory."""
    return f"{base_uri}/model"


NUMBER = "1"


def numbered_uri(folder_uri: str) -> str:
    """Return the folder of a model below one that TensorFlow Serving is told."""
    return f"{folder_uri}/{NUMBER}"


def model_file_uri(model_uri: str, *, own: bool = False) -> str:
    """Return the file that tells whether a model is there.

    Args:
        model_uri: Its folder.
        own: Whether it is of another framework, whose trainer describes it in a file, and no SavedModel.
    """
    return f"{model_uri}/{'trainer.json' if own else 'saved_model.pb'}"


def checkpoints_uri(base_uri: str) -> str:
    """Return where a training job keeps its checkpoints, below its base output directory."""
    return f"{base_uri}/checkpoints"


def tensorboard_uri(base_uri: str) -> str:
    """Return where a training job writes for TensorBoard, below its base output directory."""
    return f"{base_uri}/logs"


def lite_uri(results_uri: str) -> str:
    """Return where the evaluation job leaves TF Lite models."""
    return f"{training_uri(results_uri)}/lite"


def scores_uri(folder_uri: str) -> str:
    """Return the folder of the models' scores per example, which the comparison reads."""
    return f"{folder_uri}/scores"


def scores_document_uri(folder_uri: str, side: str) -> str:
    """Return where the scores of one side of the comparison are described: `challenger` or `champion`."""
    return document_uri(f"{scores_uri(folder_uri)}/{side}", "scores")


def spans_uri(plan: Plan, schema_hash: str) -> str:
    """Return the span store of a run's model for one schema."""
    return f"{folder_of(folder_of(results_uri(plan)))}/spans/{schema_hash}"


def scoring_uri(bucket: str, model: str, key: str) -> str:
    """Return the folder of the documents of one scoring in bulk."""
    return f"{scorings_uri(bucket, model)}/{key}"


def scorings_uri(bucket: str, model: str) -> str:
    """Return the folder of all scorings of a model, in order of their time by name."""
    return f"gs://{bucket}/{model}/scoring"


def destination_claim_uri(bucket: str, table: str) -> str:
    """Return where it stands who may write a table, or a day of it (`…$20131120`): among the pokes, as jobs' claims."""
    short = hashlib.sha256(table.lower().encode()).hexdigest()[:32]
    return f"{pokes_uri(bucket)}/destinations/{short}.json"


def walk_forwards_uri(bucket: str, model: str) -> str:
    """Return the folder of all walk-forwards of a model, and of the runs of their versions."""
    return f"gs://{bucket}/{model}/walk_forward"


def walk_forward_uri(bucket: str, model: str, key: str) -> str:
    """Return the folder of a walk-forward, or of the run of one of its versions."""
    return f"{walk_forwards_uri(bucket, model)}/{key}"


def walk_forward_results_uri(results_bucket: str, model: str, key: str) -> str:
    """Return the folder that the jobs of such a run write in; as far below its model's as those of other runs."""
    return f"{results_root(results_bucket, model)}/walk_forward/{key}"


def scored_version_uri(folder_uri: str, key: str) -> str:
    """Return where a walk-forward keeps how good one of its versions is: in its folder, or where its jobs write."""
    return f"{folder_uri}/versions/{key}"


def monitor_uri(bucket: str, model: str, as_of: datetime, dag_run_id: str) -> str:
    """Return the folder of one monitor run's documents."""
    return f"{monitors_uri(bucket, model)}/{stamp(as_of)}-{dag_run_hash(dag_run_id)}"


def monitors_uri(bucket: str, model: str) -> str:
    """Return the folder of all monitor runs of a model.

    Its ledger rows are `*/ledger.json` in it, in order of time by name.
    """
    return f"gs://{bucket}/{model}/monitor"


def ledger_id(folder_uri: str) -> str:
    """Return the id of a monitor run's ledger row: the name of its folder."""
    return folder_uri.rpartition("/")[2]


def ledger_uri(bucket: str, model: str, ledger_id: str) -> str:
    """Return the address of a row of the ledger, by its id."""
    return document_uri(f"{monitors_uri(bucket, model)}/{ledger_id}", "ledger")


def spans_roots(bucket: str, results_bucket: str, model: str) -> tuple[str, str]:
    """Return the span stores of a model, of every schema: that of today, and that of earlier releases."""
    return f"{results_root(results_bucket, model)}/spans", f"gs://{bucket}/{model}/spans"


def owner_uri(bucket: str) -> str:
    """Return where a bucket says whose it is."""
    return f"gs://{bucket}/environment.txt"


def rollout_uri(bucket: str, model: str) -> str:
    """Return where it is written down how far the change of a model's champion has come, and what was before it."""
    return f"gs://{bucket}/{model}/rollout.json"


def rollback_name(asked: datetime, dag_run_id: str) -> str:
    """Return the name of one rollback: its folder, and how the model's rollout calls it."""
    return f"{stamp(asked)}-{dag_run_hash(dag_run_id)}"


def rollback_time(name: str) -> datetime:
    """Return when a rollback was asked for, by its name."""
    return datetime.strptime(name.partition("-")[0], "%Y%m%dt%H%M%Sz").replace(tzinfo=UTC)


def rollback_uri(bucket: str, model: str, name: str) -> str:
    """Return the folder of one rollback's document; in order of time by name."""
    return f"{rollbacks_uri(bucket, model)}/{name}"


def rollbacks_uri(bucket: str, model: str) -> str:
    """Return the folder of all rollbacks of a model."""
    return f"gs://{bucket}/{model}/rollbacks"


def last_order_uri(bucket: str, model: str) -> str:
    """Return where the ledger row is that ordered something last: two monitor runs at once see each other there."""
    return f"gs://{bucket}/{model}/last_order.json"


def pause_uri(bucket: str, model: str) -> str:
    """Return where it is written down until when no retraining of a model begins."""
    return f"gs://{bucket}/{model}/pause.json"


def notification_uri(bucket: str, model: str | None, event: str, slot: str) -> str:
    """Return where it stands what people were told of a cause that later runs may share."""
    return f"gs://{bucket}/{BucketFolder.NOTIFICATIONS}/{model or '-'}/{event}-{slot}.json"


def run_notification_uri(folder_uri: str, event: str) -> str:
    """Return where a run's record has what people were told of it."""
    return f"{folder_uri}/notifications/{event}.json"


def failures_uri(folder_uri: str) -> str:
    """Return the folder of the messages of a run's failed tries."""
    return f"{folder_uri}/failures"


def failure_uri(folder_uri: str, task: str, attempt: int) -> str:
    """Return where it stands why a try of a task failed."""
    return document_uri(failures_uri(folder_uri), f"{task}-{attempt}")


END_OF_TASK = "-end.json"


def task_end_uri(folder_uri: str, task: str, attempt: int) -> str:
    """Return where it stands that a task ended without a word of its own."""
    return f"{failures_uri(folder_uri)}/{task}-{attempt}{END_OF_TASK}"


def no_plan_uri(bucket: str, model: str) -> str:
    """Return where it stands why the newest run of a model came to no plan, and so to no folder."""
    return f"gs://{bucket}/{model}/failed_start.json"


def unplanned_runs_uri(bucket: str, model: str) -> str:
    """Return the folder of a model's runs that came to no plan."""
    return f"gs://{bucket}/{model}/unplanned"


def unplanned_run_uri(bucket: str, model: str, due: datetime, dag_run_id: str) -> str:
    """Return the folder of a run that came to no plan, in order of time by name; its failures and page lie as a run's.

    Args:
        bucket: This environment's.
        model: Whose.
        due: When the run was due to begin.
        dag_run_id: Its DAG run.
    """
    return f"{unplanned_runs_uri(bucket, model)}/{stamp(due)}-{dag_run_hash(dag_run_id)}"


def pokes_uri(bucket: str) -> str:
    """Return the folder of what waiting tasks remember."""
    return f"gs://{bucket}/{BucketFolder.POKES}"


def poke_uri(bucket: str, key: str) -> str:
    """Return what one waiting task remembers: also a sign, by its time, that somebody still waits."""
    return f"{pokes_uri(bucket)}/{key}.json"


def unfinished_upload_uris(bucket: str) -> tuple[str, ...]:
    """Return the folders with pieces of large uploads that were cut off."""
    return tuple(f"gs://{bucket}/{tool}/{UPLOAD_FOLDER}" for tool in UPLOAD_TOOLS)


def leases_root(bucket: str) -> str:
    """Return the folder of the leases of all models' runs."""
    return f"gs://{bucket}/{BucketFolder.LEASES}"


def leases_uri(bucket: str, model: str) -> str:
    """Return the folder of the leases of a model's runs."""
    return f"{leases_root(bucket)}/{model}"


def lease_uri(bucket: str, model: str, key: str) -> str:
    """Return where a run says that it is at work on its spans."""
    return f"{leases_uri(bucket, model)}/{key}.json"


def claims_uri(bucket: str, dag_run: str) -> str:
    """Return the folder of a DAG run's claims, by its label.

    Among the pokes, with which they grow old and are deleted.
    """
    return f"{pokes_uri(bucket)}/claims/{dag_run}"


def places_uri(bucket: str, region: str) -> str:
    """Return where it stands which jobs are about to begin in a region, and which wait for room: among the pokes."""
    return f"{pokes_uri(bucket)}/places/{region}.json"


def upload_claim_uri(folder_uri: str) -> str:
    """Return where it stands who may register a run's model."""
    return f"{folder_uri}/upload.json"


def claim_uri(bucket: str, dag_run: str, key: str) -> str:
    """Return where it stands who may create the next job of a key."""
    return f"{claims_uri(bucket, dag_run)}/{key}.json"


def garbage_collections_uri(bucket: str) -> str:
    """Return the folder of all garbage collections, in order of their time by name."""
    return f"gs://{bucket}/{BucketFolder.MAINTENANCE}"


def garbage_collection_uri(bucket: str, as_of: datetime, dag_run_id: str) -> str:
    """Return the folder of one garbage collection's documents."""
    return f"{garbage_collections_uri(bucket)}/{stamp(as_of)}-{dag_run_hash(dag_run_id)}"


def frozen_set_uri(plan: Plan) -> str:
    """Return where it is written down what the frozen set was when it was made.

    Raises:
        ContractError: The plan has none.
    """
    return f"gs://{plan.bucket}/{plan.model}/golden/{frozen_set_key(plan)}.json"
