"""Where the page's links lead: within it, to Airflow, to the bucket and to Google's console.

Names come from documents: what goes into an address is quoted, and what is no address is no link.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from retraining.core.errors import RetrainingError
from retraining.core.naming import console, storage


@dataclass(frozen=True, kw_only=True)
class Places:
    """The addresses of one rendering.

    Attributes:
        airflow: What an address in Airflow begins with, to be followed by `dags/…`; None: it is not known.
        models: Address of the page of all models.
        bucket: Where the documents are; "" within Airflow, whose pages lie beside each other.
    """

    airflow: str | None
    models: str
    bucket: str = ""
    prefix: str = ""

    def model(self, model: str) -> str:
        """Return a model's page."""
        if self.bucket:
            return console.object_address(storage.models_page_uri(self.bucket, model))
        return f"{self.prefix}{quote(model, safe='')}"

    def page(self, number: int) -> str | None:
        """Return the page of so many models that come later; None: it is a file, and has no further pages."""
        return None if self.bucket else f"{self.models}?page={number}"

    def dag(self, dag_id: str) -> str | None:
        """Return a DAG in Airflow."""
        return None if self.airflow is None else f"{self.airflow}dags/{quote(dag_id, safe='')}"

    def dag_run(self, dag_id: str, run_id: str) -> str | None:
        """Return a run of a DAG in Airflow, with its tasks and their links to jobs."""
        return None if self.airflow is None else f"{self.dag(dag_id)}/runs/{quote(run_id, safe='')}"

    @staticmethod
    def run_page(run_uri: str) -> str:
        """Return the page of a run."""
        return _quoted(console.object_address(storage.report_page_uri(run_uri)))

    @staticmethod
    def folder(uri: str, project: str) -> str:
        """Return a folder in the Storage browser."""
        return _quoted(console.folder_address(uri, project))

    @staticmethod
    def version(version_name: str) -> str | None:
        """Return a version in the registry; None: its name is no such name."""
        try:
            return _quoted(console.version_address(version_name))
        except RetrainingError:
            return None

    @staticmethod
    def endpoint(endpoint_name: str | None) -> str | None:
        """Return an endpoint in the console."""
        try:
            return _quoted(console.endpoint_address(endpoint_name)) if endpoint_name else None
        except RetrainingError:
            return None

    @staticmethod
    def jobs(project: str) -> str:
        """Return the project's training jobs in the console."""
        return f"{console.CONSOLE}/vertex-ai/training/custom-jobs?project={quote(project, safe='')}"


def in_airflow(*, of_model: bool) -> Places:
    """Return the addresses of the page that Airflow serves below `retraining/`: all relative, as a proxy may be before.

    Args:
        of_model: Whether it is a model's page, which lies one folder deeper.
    """
    if of_model:
        return Places(airflow="../../", models="../models", prefix="")
    return Places(airflow="../", models="models", prefix="models/")


def in_bucket(bucket: str, airflow: str) -> Places:
    """Return the addresses of the page as files in the bucket.

    Args:
        bucket: Its name.
        airflow: Address of Airflow's UI; empty: it is not configured.
    """
    whole = airflow.startswith(("https://", "http://"))
    return Places(
        airflow=f"{airflow.rstrip('/')}/" if whole else None,
        models=console.object_address(storage.models_page_uri(bucket)),
        bucket=bucket,
    )


def _quoted(address: str) -> str:
    return quote(address, safe=":/?&=%;,@+~#")
