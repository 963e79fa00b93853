"""Links beside a task in the UI. A link is an XCom value, pushed as soon as the address is known."""

from __future__ import annotations

from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink, Context

CONSOLE = "https://console.cloud.google.com"


class ConsoleLink(BaseOperatorLink):
    """One link: a name on the button, a key in XCom."""

    name = ""
    key = ""

    @property
    def xcom_key(self) -> str:
        """Where the address is kept."""
        return self.key

    def get_link(self, operator: BaseOperator, *, ti_key: object) -> str:
        """The address that the task pushed; empty when it did not. Airflow asks once, at the end of each wake."""
        del ti_key
        pushed: dict[str, str] = getattr(operator, "pushed_links", {})
        return pushed.get(self.key, "")


class JobLink(ConsoleLink):
    """The job in the Vertex AI console."""

    name = "Vertex AI job"
    key = "link_job"


class JobLogsLink(ConsoleLink):
    """The job's lines in the Logs Explorer."""

    name = "Job logs"
    key = "link_job_logs"


class RunDocumentsLink(ConsoleLink):
    """The run's folder in the Storage browser."""

    name = "Run documents"
    key = "link_run_documents"


class ModelVersionLink(ConsoleLink):
    """The version in the model registry."""

    name = "Model version"
    key = "link_model_version"


class EndpointLink(ConsoleLink):
    """The endpoint."""

    name = "Endpoint"
    key = "link_endpoint"


class ReportLink(ConsoleLink):
    """The run's page for humans."""

    name = "Report"
    key = "link_report"


def push_link(operator: BaseOperator, context: Context, link: type[ConsoleLink], address: str) -> None:
    """Show a link beside the task from now on."""
    operator.pushed_links = {**getattr(operator, "pushed_links", {}), link.key: address}  # for get_link
    context["ti"].xcom_push(key=link.key, value=address)


def job_address(project: str, region: str, job_id: str) -> str:
    """A custom job in the console."""
    return f"{CONSOLE}/vertex-ai/locations/{region}/training/{job_id}?project={project}"


def tuning_job_address(project: str, region: str, job_id: str) -> str:
    """A tuning job with its trials in the console."""
    return f"{CONSOLE}/vertex-ai/locations/{region}/training/hyperparameterTuningJobs/{job_id}?project={project}"


def job_logs_address(project: str, job_id: str) -> str:
    """A custom job's lines in the Logs Explorer."""
    query = quote(f'resource.type="ml_job" resource.labels.job_id="{job_id}"', safe="")
    return f"{CONSOLE}/logs/query;query={query}?project={project}"


def folder_address(uri: str, project: str) -> str:
    """A folder in the Storage browser."""
    return f"{CONSOLE}/storage/browser/{uri.removeprefix('gs://')}?project={project}"


def object_address(uri: str) -> str:
    """An object, opened in the browser by whoever may read it."""
    return f"https://storage.cloud.google.com/{uri.removeprefix('gs://')}"


def version_address(version_name: str) -> str:
    """A version (`projects/…/locations/…/models/<id>@<version>`) in the model registry."""
    _, project, _, region, _, model = version_name.split("/")
    model_id, _, version_id = model.partition("@")
    return f"{CONSOLE}/vertex-ai/models/locations/{region}/models/{model_id}/versions/{version_id}?project={project}"


def endpoint_address(endpoint_name: str) -> str:
    """An endpoint (`projects/…/locations/…/endpoints/<id>`) in the console."""
    _, project, _, region, _, endpoint_id = endpoint_name.split("/")
    return f"{CONSOLE}/vertex-ai/locations/{region}/endpoints/{endpoint_id}?project={project}"
