"""What the tasks `cancel_jobs` and `delete` do: end a job, delete what the plan says.

In: the cloud and a plan. Out: documents. Whatever moved since it was planned is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from retraining.core.documents import (
    CleanedJob,
    CleanedLitter,
    CleanedModel,
    FoundJob,
    Litter,
    Maintenance,
    MaintenancePlan,
    ModelLeftovers,
)
from retraining.core.errors import ContractError
from retraining.core.jobs.job import CANCELLED, CANCELLING
from retraining.core.naming import vertex
from retraining.core.naming.trust import require_own_places
from retraining.core.retention import jobs_and_tables, summary
from retraining.core.retention.spans import Limits
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record
from retraining.operators.retention.left_deployments import end_deployment
from retraining.operators.retention.old_versions import delete_versions
from retraining.operators.retention.references import ModelRuns
from retraining.operators.retention.span_deletion import SpanDeletion
from retraining.operators.retention.survey import find_active_job, object_folders


def cancel_unattended_job(cloud: CloudPort, unattended: FoundJob) -> CleanedJob:
    """Cancel a job that nobody waits for; one that has ended, or that somebody looks at again, is left."""
    job = cloud.jobs.find_by_name(unattended.name)
    if job is not None and job.state in (CANCELLING, CANCELLED):  # by an earlier try
        return CleanedJob(name=unattended.name, outcome="cancelled", words=unattended.words)
    active = find_active_job(cloud, job) if job is not None and job.active else None
    ours = job is not None and cloud.environment.owns(job.labels, job.folder_uri)
    if reason := jobs_and_tables.reason_to_leave(unattended, active, ours=ours):
        return CleanedJob(name=unattended.name, outcome="left", words=reason)
    cloud.jobs.cancel(unattended.name)
    return CleanedJob(name=unattended.name, outcome="cancelled", words=unattended.words)


def delete_garbage(cloud: CloudPort, record: Record, jobs: Sequence[CleanedJob]) -> Maintenance:
    """Delete what the plan of a record says; return the document, which the caller stores.

    Args:
        cloud: The hooks.
        record: Of the cleaning.
        jobs: What became of jobs.
    """
    plan = record.read_document(MaintenancePlan)
    limits = Limits(as_of=plan.as_of, min_age_days=plan.min_age_days)
    bucket = cloud.settings.bucket
    folders = object_folders(bucket, [model.model for model in plan.models])
    require_own_places(plan, [uri for _, uri in folders], cloud.settings)
    models = [_delete_spans(cloud, model, limits, plan.dry_run) for model in plan.models]
    small_objects = [] if plan.dry_run else [_delete_objects(cloud, item, limits) for item in plan.litter]
    deployments = [] if plan.dry_run else [end_deployment(cloud, item, plan.as_of) for item in plan.deployments]
    versions = [] if plan.dry_run else list(delete_versions(cloud, plan))
    plan_sha256 = record.document_digest(MaintenancePlan)
    return summary.conclude(plan, plan_sha256, models, small_objects, jobs, deployments, versions)


def _delete_spans(cloud: CloudPort, model: ModelLeftovers, limits: Limits, dry_run: bool) -> CleanedModel:
    if dry_run or model.refused or not (model.delete or model.restore):
        return summary.untouched(model)
    runs = ModelRuns(cloud, model.model, limits)
    try:
        runs.read_runs(cloud.jobs.find_active(vertex.KEY_LABEL))
    except ContractError as error:
        return summary.untouched(model, f"nothing of {model.model} is deleted: {error}")
    return SpanDeletion(cloud, runs).delete_spans(model)


def _delete_objects(cloud: CloudPort, folder: Litter, limits: Limits) -> CleanedLitter:
    """Delete what is old, page by page; what was saved again meanwhile has another generation and stays."""
    deleted = size = 0
    if folder.old:
        for item in cloud.objects.delete(
            item for item in cloud.objects.walk(folder.uri) if limits.is_old(item.created)
        ):
            deleted, size = deleted + item.gone, size + item.object.bytes * item.gone
    return CleanedLitter(what=folder.what, deleted=deleted, freed_bytes=size)
