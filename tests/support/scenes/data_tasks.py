"""The data tasks of one run for a model of a test's own: real tasks with real hooks; only the scheduler is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.cloud import bigquery

from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.operators.airflow.cloud_task import Connect
from retraining.operators.airflow.params import retrain_params
from retraining.operators.data.checks import CheckDataOperator
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.planning.run_plan import PlanRunOperator


def make_source(local_cloud: Any, dataset: str, *statements: str) -> bigquery.Client:
    """BigQuery, with a source made by statements, and the dataset for run tables."""
    client = bigquery.Client(project=local_cloud.project)
    for name in (dataset, local_cloud.dataset):
        client.create_dataset(name, exists_ok=True)
    for statement in statements:
        client.query_and_wait(statement)
    return client


class DataRun:
    """One run's data tasks.

    Args:
        include: Its folder of models and SQL.
        name: The model's.
        run: The DAG run.
        spec: YAML of the spec, with `{name}` where the model's name stands; its query is `<name>/examples.sql`.
        cloud: Makes what the tasks ask.
    """

    def __init__(self, include: Path, name: str, run: Any, spec: str, cloud: Connect = Cloud) -> None:
        self.include, self.name, self._run, self._spec, self._cloud = include, name, run, spec, cloud

    def write(self, query: str, **others: str) -> None:
        """Write the examples query, other queries by name, and the spec beside them."""
        (self.include / "sql" / self.name).mkdir(parents=True, exist_ok=True)
        for name, sql in {"examples": query, **others}.items():
            (self.include / "sql" / self.name / f"{name}.sql").write_text(sql)
        path = self.include / "models" / f"{self.name}.yaml"
        path.write_text(self._spec.format(name=self.name))
        spec = load_spec(path)
        self._run.params = {name: param.value for name, param in retrain_params(spec).items()}

    def plan(self, **params: Any) -> dict[str, Any]:
        """Run the first task, with some of the form's values changed."""
        self._run.params = {**self._run.params, **params}
        return self._run.execute(PlanRunOperator(task_id="plan", model=self.name, cloud=self._cloud))

    def snapshot(self, **options: Any) -> dict[str, Any]:
        """Run the second."""
        return self._run.execute(SnapshotOperator(task_id="snapshot", cloud=self._cloud), **options)

    def check_data(self, **options: Any) -> dict[str, Any]:
        """Run the third."""
        return self._run.execute(CheckDataOperator(task_id="check_data", cloud=self._cloud), **options)
