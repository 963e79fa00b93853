"""Links beside a task in the UI. A link is an XCom value, pushed as soon as the address is known.

The provider's `BaseGoogleLink` would bring its hooks into every DAG's parsing (over a second of CPU), and put addresses
together from a format in each class: `core.naming.pages` makes them here, for the report as well.
"""

from __future__ import annotations

from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink, Context

from retraining.core.naming import pages


class ConsoleLink(BaseOperatorLink):
    """One link: a name on the button, a key in XCom."""

    name = ""
    key = ""

    @property
    def xcom_key(self) -> str:
        """Return where the address is kept."""
        return self.key

    def get_link(self, operator: BaseOperator, *, ti_key: object) -> str:
        """Return the address that the task pushed; empty when it did not. Airflow asks once, as each poke ends."""
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
    """The run's documents, as Airflow shows them; of a run of all models their folder in the Storage browser."""

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


class RollBackLink(ConsoleLink):
    """The DAG that goes back: its trigger form is one click further, for no release fills it in by address."""

    name = "Roll back to the version before"
    key = "link_roll_back"


class ReportLink(ConsoleLink):
    """The run's page for humans."""

    name = "Report"
    key = "link_report"


class AllRunsLink(ConsoleLink):
    """The page with all runs of the model side by side."""

    name = "All runs"
    key = "link_all_runs"


def airflow_address() -> str:
    """Return the address of Airflow's UI, without a slash at its end; empty: it is not configured."""
    from airflow.configuration import conf

    return (conf.get("api", "base_url", fallback="") or "").rstrip("/")


def dag_address(dag_id: str) -> str:
    """Return the page of a DAG in Airflow's UI; without a configured address relative to whoever shows it."""
    return f"{airflow_address()}/dags/{dag_id}"


def shown_address(uri: str) -> str:
    """Return where Airflow shows an object or a folder of documents; relative as `dag_address`."""
    return f"{airflow_address()}/{pages.path_of(uri)}"


def task_address(dag_id: str, run_id: str, task_id: str, attempt: int) -> str | None:
    """Return the page of a task's try, with its log; None without a configured address: it is stored."""
    page = f"/dags/{dag_id}/runs/{quote(run_id, safe='')}/tasks/{quote(task_id, safe='')}?try_number={attempt}"
    return f"{airflow_address()}{page}" if airflow_address() else None


def push_link(operator: BaseOperator, context: Context, link: type[ConsoleLink], address: str) -> None:
    """Show a link beside the task from now on."""
    operator.pushed_links = {**getattr(operator, "pushed_links", {}), link.key: address}  # for get_link
    context["ti"].xcom_push(key=link.key, value=address)
