"""Where the page's links lead: within it, to Airflow, to the bucket and to Google's console.

Names come from documents: what goes into an address is quoted, and what is no address is no link.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from retraining.core.documents.overview import ShownRun
from retraining.core.errors import RetrainingError
from retraining.core.naming import pages, storage


@dataclass(frozen=True, kw_only=True)
class Places:
    """The addresses of one rendering.

    Attributes:
        airflow: What an address in Airflow begins with, to be followed by `dags/…`; None: it is not known.
        models: Address of the page of all models.
        bucket: Where the page lies as a file; "" within Airflow, whose pages lie beside each other.
        prefix: What the address of a model begins with.
        of_model: Whose page it is; "": that of all models.
    """

    airflow: str | None
    models: str
    bucket: str = ""
    prefix: str = ""
    of_model: str = ""

    def model(self, model: str) -> str:
        """Return a model's page."""
        if self.bucket:
            return pages.object_address(storage.models_page_uri(self.bucket, model))
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

    def run_page(self, run: ShownRun) -> str:
        """Return the page of a run."""
        if self.bucket:
            return _quoted(pages.object_address(storage.report_page_uri(run.run_uri)))
        return f"{self._folder('runs', run.run_key)}/{pages.RUN_PAGE}"

    def failed_run_page(self, model: str, folder_uri: str) -> str | None:
        """Return the page of a model's run by its folder, also of one without a plan; None: it is no such folder."""
        found = pages.run_page_of(model, folder_uri)
        if found is None:
            return None
        if self.bucket:
            return _quoted(pages.object_address(storage.report_page_uri(folder_uri)))
        return f"{self._folder(*found)}/{pages.RUN_PAGE}"

    def run_documents(self, run: ShownRun, project: str) -> str:
        """Return the documents of a run; of a page in the bucket their folder in the Storage browser."""
        if self.bucket:
            return _quoted(pages.folder_address(run.run_uri, project))
        return self._folder("runs", run.run_key)

    def monitor_documents(self, key: str) -> str | None:
        """Return the documents of a monitor run by the name of its folder; None: they are not shown, or it is none."""
        return None if self.bucket or not pages.is_shown("monitor", key) else self._folder("monitor", key)

    def model_card(self, run_key: str | None) -> str | None:
        """Return the card of the version that a run made."""
        if self.bucket or run_key is None:
            return None
        return f"{self._folder('runs', run_key)}/model_card.json"

    def all_runs(self, bucket: str, model: str) -> str:
        """Return the page with all runs of the model side by side."""
        if self.bucket:
            return _quoted(pages.object_address(storage.all_runs_page_uri(bucket, model)))
        return f"{quote(model, safe='')}/{pages.ALL_RUNS}"

    def _folder(self, folder: str, key: str) -> str:
        return f"{quote(self.of_model, safe='')}/{folder}/{quote(key, safe='')}"

    @staticmethod
    def version(version_name: str) -> str | None:
        """Return a version in the registry; None: its name is no such name."""
        try:
            return _quoted(pages.version_address(version_name))
        except RetrainingError:
            return None

    @staticmethod
    def endpoint(endpoint_name: str | None) -> str | None:
        """Return an endpoint in the console."""
        try:
            return _quoted(pages.endpoint_address(endpoint_name)) if endpoint_name else None
        except RetrainingError:
            return None

    @staticmethod
    def jobs(project: str) -> str:
        """Return the project's training jobs in the console."""
        return f"{pages.CONSOLE}/vertex-ai/training/custom-jobs?project={quote(project, safe='')}"


def in_airflow(of_model: str = "") -> Places:
    """Return the addresses of the page that Airflow serves below `retraining/`: all relative, as a proxy may be before.

    Args:
        of_model: Whose page it is, which lies one folder deeper; empty: that of all models.
    """
    if of_model:
        return Places(airflow="../../", models="../models", prefix="", of_model=of_model)
    return Places(airflow="../", models="models", prefix="models/")


def in_bucket(bucket: str, airflow: str) -> Places:
    """Return the addresses of the page as files in the bucket.

    Args:
        bucket: Its name.
        airflow: Address of Airflow's UI; empty: it is not configured.
    """
    return Places(
        airflow=f"{airflow.rstrip('/')}/" if pages.is_whole(airflow) else None,
        models=pages.object_address(storage.models_page_uri(bucket)),
        bucket=bucket,
    )


def _quoted(address: str) -> str:
    return quote(address, safe=":/?&=%;,@+~#")
