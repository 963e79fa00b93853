"""Addresses in Google's console, for people."""

from __future__ import annotations

from urllib.parse import quote

from retraining.core.naming.addresses import ObjectAddress
from retraining.core.naming.vertex import BATCH_JOBS, TUNING_JOBS, ResourceName

CONSOLE = "https://console.cloud.google.com"


def job_address(job_name: str, project: str) -> str:
    """Return the page of a custom job, of a tuning job with its trials, or of a batch prediction.

    Args:
        job_name: The service may write the project's number in it.
        project: Its id.
    """
    job = ResourceName.parse(job_name)
    if job.collection == BATCH_JOBS:
        page = f"{job.region}/batch-predictions/{job.resource_id}"
        return f"{CONSOLE}/vertex-ai/locations/{page}?project={project}"
    page = f"{job.collection}/{job.resource_id}" if job.collection == TUNING_JOBS else job.resource_id
    return f"{CONSOLE}/vertex-ai/locations/{job.region}/training/{page}?project={project}"


def job_logs_address(job_name: str, project: str) -> str:
    """Return a job's lines in the Logs Explorer."""
    job_id = ResourceName.parse(job_name).resource_id
    query = quote(f'resource.type="ml_job" resource.labels.job_id="{job_id}"', safe="")
    return f"{CONSOLE}/logs/query;query={query}?project={project}"


def version_address(version_name: str) -> str:
    """Return the page of a version (`projects/…/models/<id>@<version>`) in the model registry."""
    version = ResourceName.parse(version_name)
    page = f"{version.region}/models/{version.resource_id}/versions/{version.version}"
    return f"{CONSOLE}/vertex-ai/models/locations/{page}?project={version.project}"


def endpoint_address(endpoint_name: str) -> str:
    """Return the page of an endpoint."""
    endpoint = ResourceName.parse(endpoint_name)
    page = f"{endpoint.region}/endpoints/{endpoint.resource_id}"
    return f"{CONSOLE}/vertex-ai/locations/{page}?project={endpoint.project}"


def folder_address(uri: str, project: str) -> str:
    """Return a folder in the Storage browser."""
    return f"{CONSOLE}/storage/browser/{ObjectAddress.parse(uri).without_scheme}?project={project}"


def object_address(uri: str) -> str:
    """Return an object, opened in the browser by whoever may read it."""
    return f"https://storage.cloud.google.com/{ObjectAddress.parse(uri).without_scheme}"
