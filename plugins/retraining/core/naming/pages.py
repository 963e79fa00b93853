"""What of the bucket Airflow itself shows, for who may read the model's DAG: which objects, and at which address.

A page's path below Airflow is that of its object in the bucket: `gs://<bucket>/<model>/runs/<run key>/report.html` is
`<Airflow>/retraining/models/<model>/runs/<run key>/report.html`, and without the last part all documents of the run.
Google's own browser of the bucket needs a role there, and exists for Google's cloud alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
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


ROOT: Final = "retraining/models"
RUN_PAGE, ALL_RUNS = "report.html", "runs.html"
KINDS: Mapping[str, tuple[str, ...]] = {
    "runs": (
        "plan",
        "snapshot",
        "statistics",
        "checks",
        "export_request",
        "manifest",
        "tuning_request",
        "tuning",
        "train_request",
        "report",
        "evaluate_request",
        "evaluation",
        "decision",
        "registration",
        "model_card",
        "approval",
        "deployment",
        "attribution_baseline",
        "timings",
    ),
    "monitor": (
        "drift",
        "new_day",
        "attribution_request",
        "attributions",
        "signals",
        "multivariate_request",
        "multivariate",
        "ledger",
    ),
    "scoring": ("scoring_plan", "scoring_input", "predictions", "scoring"),
    "rollbacks": ("rollback",),
    "unplanned": (),
    "walk_forward": (
        "walk_forward_plan",
        "walk_forward",
        "plan",
        "snapshot",
        "statistics",
        "checks",
        "export_request",
        "manifest",
        "train_request",
        "report",
    ),
}
"""Documents that are shown, by the model's folder that their own folders lie in."""
WITH_PAGE = ("runs", "unplanned", "walk_forward")
"""Those of them whose folders have a page, and the messages of failed tries."""
FAILURES = "failures"
FAILURE_NAME = r"[a-z_]{1,40}-[1-9]\d{0,3}(-end)?\.json"
FOLDER_NAME = r"\d{8}t\d{6}z-[0-9a-f]{8,12}"
"""Of a run, a monitor run, a scoring, a rollback: its time, and a hash."""


def is_shown(folder: str, key: str, name: str = "") -> bool:
    """Return whether there may be such a folder, and such an object in it.

    Args:
        folder: As in `KINDS`.
        key: Name of the folder in that.
        name: Of the object; empty: the folder itself is asked for.
    """
    if folder not in KINDS or re.fullmatch(FOLDER_NAME, key, re.ASCII) is None:
        return False
    names = {"", *(f"{kind}.json" for kind in KINDS[folder]), *((RUN_PAGE,) if folder in WITH_PAGE else ())}
    return name in names


def is_shown_failure(folder: str, key: str, name: str) -> bool:
    """Return whether there may be the message of a failed try of such a name in a folder."""
    return folder in WITH_PAGE and is_shown(folder, key) and re.fullmatch(FAILURE_NAME, name, re.ASCII) is not None


def run_page_of(model: str, folder_uri: str) -> tuple[str, str] | None:
    """Return in which of a model's folders a run's folder is, and its name; None: it has no page, or is another's."""
    owner, folder, key = [*ObjectAddress.parse(folder_uri).path.split("/"), "", ""][:3]
    return (folder, key) if owner == model and folder in WITH_PAGE and is_shown(folder, key) else None


def path_of(uri: str) -> str:
    """Return where Airflow shows an object or a folder of documents, below its own address."""
    return f"{ROOT}/{quote(ObjectAddress.parse(uri).path, safe='/')}"


def page_address(uri: str, airflow: str) -> str:
    """Return an object's or a folder's page as a link that stands anywhere.

    Args:
        uri: Its address in the bucket.
        airflow: Address of Airflow's UI. Where it is not configured the link leads to Google's browser of the bucket.
    """
    if not is_whole(airflow):
        return object_address(uri)
    return f"{airflow.rstrip('/')}/{path_of(uri)}"


def is_whole(airflow: str) -> bool:
    """Return whether an address of Airflow's UI is one that a link can begin with anywhere."""
    return airflow.startswith(("https://", "http://"))
