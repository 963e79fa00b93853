"""What the tasks of the daily cleaning do: look at everything, end a job, delete what the plan says.

In: the hooks and a plan. Out: documents. Whatever stood still while it was looked at and moved since is left alone.
"""

from __future__ import annotations

from collections.abc import Sequence

from retraining.core.data.span_store import read_spans
from retraining.core.documents import (
    CleanedJob,
    CleanedLitter,
    CleanedModel,
    Deployment,
    FoundJob,
    Litter,
    Maintenance,
    MaintenancePlan,
    ModelLeftovers,
)
from retraining.core.documents.retention import LitterKind
from retraining.core.errors import ContractError
from retraining.core.jobs.job import CANCELLED, CANCELLING, Job
from retraining.core.naming import storage, vertex
from retraining.core.naming.run_keys import stamp
from retraining.core.naming.trust import require_own_places
from retraining.core.retention import jobs_and_tables, spans, summary
from retraining.core.retention.spans import Limits
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record
from retraining.operators.retention.left_deployments import end_deployment, find_deployments
from retraining.operators.retention.references import ModelRuns
from retraining.operators.retention.sweep import Sweep


def look(cloud: CloudPort, limits: Limits, models: Sequence[str], dry_run: bool, dag_run_id: str) -> MaintenancePlan:
    """The plan of a cleaning; nothing is changed.

    Args:
        cloud: The hooks.
        limits: Time and age limit.
        models: Whose spans and jobs.
        dry_run: Whether the plan will be carried out.
        dag_run_id: Whose it is.
    """
    active = cloud.jobs.find_active(vertex.KEY_LABEL)
    settings = cloud.settings
    before = _plan_before(cloud, limits)
    longest = jobs_and_tables.silence(settings.wake_interval_s)
    jobs = [
        jobs_and_tables.judge_job(job, limits, longest, before)
        for job in (_active_job(cloud, job) for job in active)
        if job is not None and job.model in models
    ]
    return MaintenancePlan(
        as_of=limits.as_of,
        dag_run_id=dag_run_id,
        dry_run=dry_run,
        min_age_days=limits.min_age_days,
        models=tuple(_survey(cloud, model, limits, active) for model in models),
        litter=tuple(_count(cloud, what, uri, limits) for what, uri in _litter_places(settings.bucket)),
        jobs=tuple(jobs),
        tables=tuple(jobs_and_tables.judge_tables(cloud.warehouse.list_tables(settings.dataset), limits)),
        deployments=tuple(found for model in models for found in find_deployments(cloud, model, limits.as_of)),
    )


def _survey(cloud: CloudPort, model: str, limits: Limits, active: Sequence[Job]) -> ModelLeftovers:
    runs = ModelRuns(cloud, model, limits)
    try:
        runs.read(active)
    except ContractError as error:
        return spans.refused(model, error)
    root = storage.spans_root(cloud.settings.bucket, model)
    stored = read_spans(cloud.objects.walk(root), root)
    return spans.survey(model, stored, runs.references, runs.kept, limits, runs=runs.count)


def _plan_before(cloud: CloudPort, limits: Limits) -> MaintenancePlan | None:
    """The plan of the newest cleaning before this one that is long enough ago to tell silence from a pause."""
    root = storage.cleanings_uri(cloud.settings.bucket)
    latest = limits.as_of - jobs_and_tables.SEEN_BEFORE
    for folder in reversed(cloud.artifacts.list_folders(root, end=stamp(latest))[-3:]):
        plan = Record(cloud.artifacts, folder).find(MaintenancePlan)
        if plan is not None:
            return plan
    return None


def _active_job(cloud: CloudPort, job: Job) -> jobs_and_tables.ActiveJob | None:
    """A job with what is known of its run, and when somebody was last seen to wait for it."""
    run = vertex.run_of(job.labels)
    if run is None:
        return None
    folder = storage.run_uri(cloud.settings.bucket, *run)
    wake = cloud.objects.find(storage.wake_uri(cloud.settings.bucket, job.labels[vertex.KEY_LABEL]))
    return jobs_and_tables.active_job(
        job.name,
        job.state,
        job.labels,
        job.created,
        wake.created if wake else None,
        ended=cloud.artifacts.exists(storage.document_uri(folder, Deployment.kind_name())),
    )


def end_job(cloud: CloudPort, found: FoundJob) -> CleanedJob:
    """Cancel a job that nobody waits for; one that has ended, or that somebody looks at again, is left."""
    job = cloud.jobs.find_by_name(found.name)
    if job is not None and job.state in (CANCELLING, CANCELLED):  # by an earlier try
        return CleanedJob(name=found.name, outcome="cancelled", words=found.words)
    active = _active_job(cloud, job) if job is not None and job.active else None
    ours = job is not None and cloud.environment.owns(job.labels, job.folder_uri)
    if reason := jobs_and_tables.reason_to_leave(found, active, ours=ours):
        return CleanedJob(name=found.name, outcome="left", words=reason)
    cloud.jobs.cancel(found.name)
    return CleanedJob(name=found.name, outcome="cancelled", words=found.words)


def clean(cloud: CloudPort, record: Record, jobs: Sequence[CleanedJob]) -> Maintenance:
    """Delete what the plan of a record says; gives the document, which the caller stores.

    Args:
        cloud: The hooks.
        record: Of the cleaning.
        jobs: What became of jobs.
    """
    plan = record.read(MaintenancePlan)
    limits = Limits(as_of=plan.as_of, min_age_days=plan.min_age_days)
    require_own_places(plan, [uri for _, uri in _litter_places(cloud.settings.bucket)], cloud.settings.bucket)
    models = [_sweep(cloud, found, limits, plan.dry_run) for found in plan.models]
    litter = [] if plan.dry_run else [_delete_litter(cloud, item, limits) for item in plan.litter]
    deployments = [] if plan.dry_run else [end_deployment(cloud, item, plan.as_of) for item in plan.deployments]
    return summary.conclude(plan, record.digest(MaintenancePlan), models, litter, jobs, deployments)


def _sweep(cloud: CloudPort, found: ModelLeftovers, limits: Limits, dry_run: bool) -> CleanedModel:
    if dry_run or found.refused or not (found.delete or found.restore):
        return summary.untouched(found)
    runs = ModelRuns(cloud, found.model, limits)
    try:
        runs.read(cloud.jobs.find_active(vertex.KEY_LABEL))
    except ContractError as error:
        return summary.untouched(found, f"nothing of {found.model} is deleted: {error}")
    return Sweep(cloud, runs).run(found)


def _litter_places(bucket: str) -> list[tuple[LitterKind, str]]:
    uploads: list[tuple[LitterKind, str]] = [("uploads", uri) for uri in storage.unfinished_upload_uris(bucket)]
    return [("wakes", storage.wakes_uri(bucket)), ("leases", storage.leases_root(bucket)), *uploads]


def _count(cloud: CloudPort, what: LitterKind, uri: str, limits: Limits) -> Litter:
    objects = old = size = 0
    for item in cloud.objects.walk(uri):
        objects += 1
        if limits.is_old(item.created):
            old, size = old + 1, size + item.bytes
    return Litter(what=what, uri=uri, objects=objects, old=old, old_bytes=size)


def _delete_litter(cloud: CloudPort, found: Litter, limits: Limits) -> CleanedLitter:
    """What is old goes, page by page; a wake that was saved again meanwhile has another generation and stays."""
    deleted = size = 0
    if found.old:
        for item in cloud.objects.delete(item for item in cloud.objects.walk(found.uri) if limits.is_old(item.created)):
            deleted, size = deleted + item.gone, size + item.object.bytes * item.gone
    return CleanedLitter(what=found.what, deleted=deleted, freed_bytes=size)
