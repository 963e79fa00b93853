"""What the task `look` does: it looks at everything, and plans what shall go; nothing is changed.

In: the cloud and an age limit. Out: the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from retraining.core.data.span_store import read_spans
from retraining.core.documents import (
    Deployment,
    FoundMachinePool,
    Litter,
    MaintenancePlan,
    ModelLeftovers,
)
from retraining.core.documents.retention import LitterKind
from retraining.core.errors import ContractError
from retraining.core.jobs.job import Job
from retraining.core.jobs.machine_pools import LEFT_AFTER, STOPPING
from retraining.core.naming import storage, vertex
from retraining.core.naming.run_keys import stamp
from retraining.core.retention import jobs_and_tables, spans
from retraining.core.retention.spans import Limits
from retraining.core.settings import include_path
from retraining.core.spec.machine_pool import find_pools
from retraining.hooks.ports import CloudPort
from retraining.operators.record.run_record import Record
from retraining.operators.retention.references import ModelRuns
from retraining.operators.retention.versions import find_deployments, find_versions


def find_garbage(
    cloud: CloudPort, limits: Limits, models: Sequence[str], keep_versions: int, dry_run: bool, dag_run_id: str
) -> MaintenancePlan:
    """Plan a cleaning; change nothing.

    Args:
        cloud: The hooks.
        limits: Time and age limit.
        models: Whose spans, jobs and versions.
        keep_versions: How many of the newest versions of each model stay.
        dry_run: Whether the plan will be carried out.
        dag_run_id: Whose it is.
    """
    active = cloud.jobs.find_active(vertex.KEY_LABEL)
    settings = cloud.settings
    before = _plan_before(cloud, limits)
    longest = jobs_and_tables.silence(settings.wake_interval_s)
    surveys = [_survey(cloud, model, limits, active) for model in models]
    jobs = [
        jobs_and_tables.judge_job(job, limits, longest, before)
        for job in (find_active_job(cloud, job) for job in active)
        if job is not None and job.model in models
    ]
    return MaintenancePlan(
        as_of=limits.as_of,
        dag_run_id=dag_run_id,
        dry_run=dry_run,
        min_age_days=limits.min_age_days,
        models=tuple(found for found, _ in surveys),
        litter=tuple(_count(cloud, what, uri, limits) for what, uri in object_folders(settings.bucket, models)),
        jobs=tuple(jobs),
        tables=tuple(jobs_and_tables.judge_tables(cloud.warehouse.list_tables(settings.dataset), limits)),
        deployments=tuple(
            deployment for model in models for deployment in find_deployments(cloud, model, limits.as_of)
        ),
        keep_versions=keep_versions,
        machine_pools=find_left_pools(cloud, limits),
        versions=tuple(
            version
            for found, at_work in surveys
            if not found.refused
            for version in find_versions(cloud, found.model, keep_versions, at_work)
        ),
    )


def find_left_pools(cloud: CloudPort, limits: Limits) -> tuple[FoundMachinePool, ...]:
    """Return the pools of machines that nobody closed; where no file names a pool, nobody is asked."""
    pools = cloud.machine_pools.find_all() if find_pools(include_path()) else []
    return tuple(
        FoundMachinePool(
            pool_id=pool.pool_id,
            ends=pool.ends,
            message=f"it is {pool.state}, and its end was at {pool.ends:%Y-%m-%d %H:%M} UTC",
        )
        for pool in pools
        if pool.ends is not None and pool.state != STOPPING and pool.ends + LEFT_AFTER <= limits.as_of
    )


def _survey(
    cloud: CloudPort, model: str, limits: Limits, active: Sequence[Job]
) -> tuple[ModelLeftovers, frozenset[str]]:
    """Find a model's spans that go, and the keys of its runs that are not at their end."""
    runs = ModelRuns(cloud, model, limits)
    try:
        runs.read_runs(active)
    except ContractError as error:
        return spans.refused(model, error), frozenset()
    roots = storage.spans_roots(cloud.settings.bucket, cloud.settings.results_bucket, model)
    stored = chain.from_iterable(read_spans(cloud.objects.walk(root), root) for root in roots)
    found = spans.survey_spans(model, stored, runs.references, runs.kept, limits, runs=runs.count)
    return found, runs.at_work


def _plan_before(cloud: CloudPort, limits: Limits) -> MaintenancePlan | None:
    """Find the plan of the newest cleaning that is long enough ago to tell silence from a pause."""
    root = storage.garbage_collections_uri(cloud.settings.bucket)
    latest = limits.as_of - jobs_and_tables.SEEN_BEFORE
    for folder in reversed(cloud.artifacts.list_folders(root, end=stamp(latest))[-3:]):
        plan = Record(cloud.artifacts, folder).find_document(MaintenancePlan)
        if plan is not None:
            return plan
    return None


def find_active_job(cloud: CloudPort, job: Job) -> jobs_and_tables.ActiveJob | None:
    """Return a job with what is known of its run, and when somebody was last seen to wait for it."""
    run = vertex.run_of(job.labels)
    if run is None:
        return None
    folder = storage.run_uri(cloud.settings.bucket, *run)
    poke = cloud.objects.find_object(storage.poke_uri(cloud.settings.bucket, job.labels[vertex.KEY_LABEL]))
    return jobs_and_tables.active_job(
        job.name,
        job.state,
        job.labels,
        job.created,
        poke.created if poke else None,
        ended=cloud.artifacts.exists(storage.document_uri(folder, Deployment.kind_name())),
    )


def object_folders(bucket: str, models: Sequence[str]) -> list[tuple[LitterKind, str]]:
    """Return the folders of small objects that nobody refers to once they are old, and what they hold."""
    scorings: list[tuple[LitterKind, str]] = [("scorings", storage.scorings_uri(bucket, model)) for model in models]
    uploads: list[tuple[LitterKind, str]] = [("uploads", uri) for uri in storage.unfinished_upload_uris(bucket)]
    return [("wakes", storage.pokes_uri(bucket)), ("leases", storage.leases_root(bucket)), *uploads, *scorings]


def _count(cloud: CloudPort, what: LitterKind, uri: str, limits: Limits) -> Litter:
    objects = old = size = 0
    for item in cloud.objects.walk(uri):
        objects += 1
        if limits.is_old(item.created):
            old, size = old + 1, size + item.bytes
    return Litter(what=what, uri=uri, objects=objects, old=old, old_bytes=size)
