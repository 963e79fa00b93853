"""The task `measure`: how far a champion's requests are from its training data."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import Context

from retraining.core.documents import Drift, DriftChampion, Evaluation, Plan, Statistics
from retraining.core.documents.document import format_time
from retraining.core.monitoring import drift
from retraining.core.naming import bigquery, storage, vertex
from retraining.core.planning import windows
from retraining.core.planning.params import require_known
from retraining.core.promotion.versions import Version
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import Row, XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.params import monitor_params
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.record.ownership import require_own_bucket, require_own_model
from retraining.operators.record.run_record import Record


class MeasureDriftOperator(CloudOperator):
    """Measure the drift of the logged requests against the champion's training statistics.

    Args:
        model: Name of the spec.

    Returns:
        `{monitor_uri, as_of, rows, drifted}`; `rows` is None while no champion serves.
    """

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Resolve the time, ask BigQuery, write `drift.json`."""
        dag_run, params = context["dag_run"], context["params"]
        require_own_bucket(cloud)
        require_own_model(cloud, self.model)
        spec = load_spec(self.model)
        require_known(params, monitor_params(spec))
        spec = spec.with_overrides({"monitoring.window_hours": params["window_hours"]})
        as_of = windows.resolve_as_of(
            params["as_of"], None, dag_run.logical_date, dag_run.run_after, dag_run.start_date
        ).value
        folder = storage.monitor_uri(cloud.settings.bucket, spec.name, as_of, dag_run.run_id)
        record = Record(cloud.artifacts, folder)
        measured = record.find_document(Drift)
        if measured is None and (champion := cloud.registry.find_by_alias(spec.name, vertex.CHAMPION)):
            asked_by = f"{dag_run.run_id}|{context['ti'].max_tries}"
            measured = record.write_once(self._measure(cloud, spec, champion, as_of, asked_by))
        for feature in measured.features if measured else ():
            self.log.info(
                "%s: %s %.4f%s", feature.name, feature.distance, feature.value, " DRIFTED" if feature.drifted else ""
            )
        return {
            "monitor_uri": folder,
            "as_of": format_time(as_of),
            "rows": measured.rows if measured else None,
            "drifted": [feature.name for feature in measured.features if feature.drifted] if measured else [],
        }

    @staticmethod
    def _measure(cloud: CloudPort, spec: ModelSpec, champion: Version, as_of: datetime, asked_by: str) -> Drift:
        settings = cloud.settings
        baseline = Record(cloud.artifacts, storage.run_uri(settings.bucket, spec.name, champion.run_key))
        statistics, evaluation = baseline.read_document(Statistics), baseline.find_document(Evaluation)
        answers = evaluation.challenger.answers if evaluation else None
        if spec.patterns:  # which columns they named when the champion was trained
            spec = spec.model_copy(update={"entries": baseline.read_document(Plan).spec.entries})
        table = bigquery.request_log_table(settings.project, settings.dataset, spec.name)
        rows: list[Row] = []
        # The endpoint makes the table with the first request it logs.
        if cloud.warehouse.table_schema(table) is not None:
            rollout = RolloutState(cloud, spec.name).read_rollout()
            smoke_requests = rollout.smoke_requests if rollout else ()
            query = drift.render_requests_sql(spec, table, statistics, as_of, smoke_requests, answers)
            job_id = bigquery.monitor_job_id(settings.environment, spec.name, as_of, asked_by)
            rows = cloud.warehouse.run_query(query, job_id, "requests").rows
        measured = drift.measure(
            spec,
            as_of=as_of,
            endpoint_name=vertex.endpoint_name(settings.project, settings.region, spec.name),
            log_table=table,
            champion=DriftChampion(version_id=champion.version_id, run_key=champion.run_key),
            baseline_uri=baseline.uri(Statistics),
            statistics=statistics,
            rows=rows,
        )
        return drift.add_answers(measured, spec, rows, answers)


def load_spec(model: str) -> ModelSpec:
    """Read the spec of a model from the include folder.

    Raises:
        SpecError: The file is wrong.
    """
    return files.load_spec(include_path() / "models" / f"{model}.yaml")
