"""What is wrong with a custom job, as far as it can be known before it runs.

Comes in: a job, or the spec of one. Goes out: findings.
"""

from __future__ import annotations

from collections.abc import Iterator

from google.cloud.aiplatform_v1.types import CustomJob, CustomJobSpec, WorkerPoolSpec

from localcloud.vertex.resources.buckets import Buckets
from localcloud.vertex.resources.machines import check_machine
from localcloud.vertex.resources.validation import (
    Finding,
    check_bucket,
    check_display_name,
    check_gcs_uri,
    check_labels,
)
from localcloud.vertex.wire.errors import Unimplemented

MAX_POOLS = 4
MAX_PACKAGES = 100


def check_job(job: CustomJob, buckets: Buckets) -> Iterator[Finding]:
    """Find what is wrong with a job."""
    yield from check_display_name(job.display_name, "custom_job.display_name")
    yield from check_labels(job.labels, "custom_job.labels")
    yield from _check_spec(job.job_spec, "custom_job.job_spec", buckets)


def check_job_spec(spec: CustomJobSpec, field: str, buckets: Buckets) -> Iterator[Finding]:
    """Find everything about the spec of a trial's or a pipeline's job that can be known before it runs.

    Raises:
        Unimplemented: A field whose effect the local cloud cannot give.
    """
    if spec.persistent_resource_id:
        raise Unimplemented(f"The local cloud does not offer {field}.persistent_resource_id. Leave it out.")
    yield from _check_spec(spec, field, buckets)


def _check_spec(spec: CustomJobSpec, field: str, buckets: Buckets) -> Iterator[Finding]:
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
        yield from check_bucket(spec.base_output_directory.output_uri_prefix, where, buckets)
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
