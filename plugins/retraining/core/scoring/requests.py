"""The batch prediction of a scoring, as Vertex AI is asked for it."""

from __future__ import annotations

from retraining.core.documents.scoring import Predictions, ScoringInput, ScoringPlan
from retraining.core.errors import JobError
from retraining.core.jobs.job import Job
from retraining.core.jobs.requests import JobRequest
from retraining.core.naming import vertex
from retraining.core.scoring.source import key_field

TASK = "predict"


def batch_job(plan: ScoringPlan, instances: ScoringInput, service_account: str | None = None) -> JobRequest:
    """Return the job: the version, its rows from the table of instances or from files, its answers into the like.

    Another job follows only what the service did to one: a model that fails on its rows would fail again.
    """
    files = plan.source.files
    job = {
        "display_name": vertex.job_display_name(plan.model, TASK, plan.run_key),
        "model": plan.version.version_name,
        "input_config": {
            "instances_format": "bigquery",
            "bigquery_source": {"input_uri": f"bq://{instances.table}"},
        }
        if not files
        else {"instances_format": "jsonl", "gcs_source": {"uris": [files]}},
        # The answers have the key alone: the rows themselves would be written a second time.
        "instance_config": {"instance_type": "object", "key_field": key_field(plan)},
        "output_config": {
            "predictions_format": "bigquery",
            "bigquery_destination": {"output_uri": f"bq://{plan.project}.{plan.dataset}"},
        }
        if not files
        else {"predictions_format": "jsonl", "gcs_destination": {"output_uri_prefix": plan.destination.table}},
        "dedicated_resources": {
            "machine_spec": {"machine_type": plan.machine},
            "starting_replica_count": plan.replicas,
            "max_replica_count": plan.replicas,
        },
        "manual_batch_tuning_parameters": {"batch_size": plan.batch_size},
        "labels": {vertex.MODEL_LABEL: plan.model, vertex.RUN_LABEL: plan.run_key, vertex.TASK_LABEL: TASK},
    }
    if service_account:
        job["service_account"] = service_account
    way_out = "Mend what it names, then trigger the DAG again with Force"
    return JobRequest(custom_job=job, retries=0, way_out=way_out)


def predictions_of(plan: ScoringPlan, job: Job) -> Predictions:
    """Return what a job that succeeded left.

    Raises:
        JobError: It does not say where.
    """
    if plan.source.files and job.output_folder:
        return Predictions(
            model=plan.model,
            run_key=plan.run_key,
            job=job.name,
            table=job.output_folder.rstrip("/"),
            errors_table=job.output_folder.rstrip("/"),
            seconds=job.seconds,
        )
    if "." not in job.output_table:
        found = "it succeeded and does not say where its predictions are"
        raise JobError(
            job.job_id, found, "an output table or directory", "Look at the job, then trigger again with Force"
        )
    return Predictions(
        model=plan.model,
        run_key=plan.run_key,
        job=job.name,
        table=job.output_table,
        errors_table=errors_table_of(job.output_table),
        seconds=job.seconds,
    )


def errors_table_of(predictions: str) -> str:
    """Return where a batch prediction writes the rows that it has no answer for, by the table of its answers."""
    dataset, _, table = predictions.rpartition(".")
    return f"{dataset}.{table.replace('predictions', 'errors', 1)}"
