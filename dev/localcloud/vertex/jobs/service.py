"""JobService, custom jobs: checked as the service does, kept in the store, run by the runner."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from google.cloud.aiplatform_v1 import types
from google.cloud.aiplatform_v1.types import CustomJob, CustomJobSpec, JobState, WorkerPoolSpec
from google.longrunning import operations_pb2
from google.protobuf import empty_pb2

from localcloud.vertex.jobs.runner import ACTIVE_STATES
from localcloud.vertex.resources.machines import check_machine
from localcloud.vertex.resources.store import CUSTOM_JOBS, now
from localcloud.vertex.resources.validation import (
    Finding,
    check_bucket,
    check_display_name,
    check_gcs_uri,
    check_labels,
    refuse,
)
from localcloud.vertex.wire import names
from localcloud.vertex.wire.errors import FailedPrecondition, Unimplemented
from localcloud.vertex.wire.listing import JOB_FIELDS, list_page
from localcloud.vertex.wire.schema import clear_output_only

if TYPE_CHECKING:
    from localcloud.vertex.front.dispatch import Context
    from localcloud.vertex.resources.operations import Progress

MAX_POOLS = 4
MAX_PACKAGES = 100


def create_custom_job(request: types.CreateCustomJobRequest, context: Context) -> CustomJob:
    """Check the job, keep it, queue it."""
    location = names.parse_location(request.parent)
    job = CustomJob()
    CustomJob.copy_from(job, request.custom_job)
    clear_output_only(job)
    refuse(_check_job(job, context))
    moment = now()
    job.name = f"{location}/customJobs/{names.new_id()}"
    job.state = JobState.JOB_STATE_QUEUED
    job.create_time = job.update_time = moment
    context.cloud.store.insert(CUSTOM_JOBS, job.name, request.parent, job)
    context.cloud.runner.start(job.name)
    return job


def get_custom_job(request: types.GetCustomJobRequest, context: Context) -> CustomJob:
    """The job as it stands."""
    return context.cloud.store.get(CUSTOM_JOBS, names.check_name(request.name, "customJobs"))


def list_custom_jobs(request: types.ListCustomJobsRequest, context: Context) -> types.ListCustomJobsResponse:
    """Jobs of a location, newest first."""
    names.parse_location(request.parent)
    page, token = list_page(context.cloud.store.list_under(CUSTOM_JOBS, request.parent), request, JOB_FIELDS)
    return types.ListCustomJobsResponse(custom_jobs=page, next_page_token=token)


def cancel_custom_job(request: types.CancelCustomJobRequest, context: Context) -> empty_pb2.Empty:
    """Ask a job to end; one that has ended already stays as it is."""
    with context.cloud.store.change(CUSTOM_JOBS, names.check_name(request.name, "customJobs")) as job:
        if job.state.name in ACTIVE_STATES:
            job.state, job.update_time = JobState.JOB_STATE_CANCELLING, now()
    context.cloud.runner.cancel(request.name)
    return empty_pb2.Empty()


def delete_custom_job(request: types.DeleteCustomJobRequest, context: Context) -> operations_pb2.Operation:
    """Remove a job that has ended, and its files."""
    job = context.cloud.store.get(CUSTOM_JOBS, names.check_name(request.name, "customJobs"))
    if job.state.name in ACTIVE_STATES:
        raise FailedPrecondition(
            f"The CustomJob {job.name} is in state {job.state.name} and cannot be deleted. Cancel it and"
            f" wait until it has ended."
        )

    def work(progress: Progress) -> empty_pb2.Empty:
        progress.check()
        context.cloud.store.delete(CUSTOM_JOBS, job.name)
        context.cloud.runner.delete_files(job.name)
        return empty_pb2.Empty()

    return context.cloud.operations.start(context, job.name, types.DeleteOperationMetadata(), work)


def _check_job(job: CustomJob, context: Context) -> Iterator[Finding]:
    yield from check_display_name(job.display_name, "custom_job.display_name")
    yield from check_labels(job.labels, "custom_job.labels")
    yield from check_job_spec(job.job_spec, "custom_job.job_spec", context)


def check_job_spec(spec: CustomJobSpec, field: str, context: Context) -> Iterator[Finding]:
    """Everything about a job's spec that can be known before it runs.

    Raises:
        Unimplemented: A field whose effect the local cloud cannot give.
    """
    if spec.persistent_resource_id:
        raise Unimplemented(f"The local cloud does not offer {field}.persistent_resource_id. Leave it out.")
    pools = list(spec.worker_pool_specs)
    if len(pools) > MAX_POOLS:
        yield (
            f"{field}.worker_pool_specs",
            (
                f"{len(pools)} worker pools were given. Expected at most {MAX_POOLS}: chief, workers, parameter"
                f" servers, evaluator."
            ),
        )
    if not pools or pools[0].replica_count != 1:
        count = pools[0].replica_count if pools else 0
        yield (
            f"{field}.worker_pool_specs[0].replica_count",
            f"The first worker pool is the chief: its replica count must be 1, found {count}.",
        )
    for index, pool in enumerate(pools):
        if pool != WorkerPoolSpec():
            yield from _check_pool(pool, f"{field}.worker_pool_specs[{index}]")
    if spec.base_output_directory.output_uri_prefix:
        where = f"{field}.base_output_directory.output_uri_prefix"
        yield from check_bucket(spec.base_output_directory.output_uri_prefix, where, context.cloud.buckets)
    if spec.scheduling.timeout is not None and spec.scheduling.timeout.total_seconds() < 0:
        yield (
            f"{field}.scheduling.timeout",
            f"The timeout is {spec.scheduling.timeout}. Expected none, or more than 0 s.",
        )
    if spec.tensorboard and not spec.service_account:
        yield f"{field}.service_account", "A service account is required when tensorboard is set. Set both or none."


def _check_pool(pool: WorkerPoolSpec, field: str) -> Iterator[Finding]:
    if pool.replica_count < 1:
        yield (
            f"{field}.replica_count",
            f"The replica count is {pool.replica_count}. Expected 1 or more, or an empty pool ({{}}) to skip it.",
        )
    yield from check_machine(pool.machine_spec, "training", f"{field}.machine_spec")
    if "container_spec" not in pool and "python_package_spec" not in pool:
        yield field, "One of container_spec and python_package_spec is required."
    for name in ("container_spec", "python_package_spec"):
        if name in pool:
            counts: dict[str, int] = {}
            for variable in getattr(pool, name).env:
                counts[variable.name] = counts.get(variable.name, 0) + 1
            yield from (
                (f"{field}.{name}.env", f"The variable {key!r} is set {count} times.")
                for key, count in counts.items()
                if count > 1
            )
    package = pool.python_package_spec
    if len(package.package_uris) > MAX_PACKAGES:
        yield (
            f"{field}.python_package_spec.package_uris",
            f"{len(package.package_uris)} packages were given. Expected at most {MAX_PACKAGES}.",
        )
    for index, uri in enumerate(package.package_uris):
        yield from check_gcs_uri(uri, f"{field}.python_package_spec.package_uris[{index}]")
