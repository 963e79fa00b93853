"""Watching a champion: how far its requests are from its training data, and whether that is worth a retraining."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import Asset, AssetAlias, Context
from pydantic import JsonValue

from retraining.core.documents import Drift, DriftChampion, Ledger, Statistics
from retraining.core.documents.document import format_time
from retraining.core.monitoring import drift, retraining
from retraining.core.naming import bigquery, dags, storage, vertex
from retraining.core.naming.run_keys import stamp
from retraining.core.planning import windows
from retraining.core.planning.params import require_known
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import Row, XCom
from retraining.hooks.ports import CloudPort
from retraining.hooks.registry import Version
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.params import monitor_params
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.record.ownership import own_monitor, require_own_bucket, require_own_model
from retraining.operators.record.run_record import Record

MONITOR_URI = "{{ ti.xcom_pull(task_ids='measure')['monitor_uri'] }}"


class MeasureDriftOperator(CloudOperator):
    """Measure the drift of the logged requests against the champion's training statistics.

    Args:
        model: Name of the spec.

    Returns:
        `{monitor_uri, as_of, rows, drifted}`; `rows` is None while no champion serves.
    """

    def __init__(self, *, model: str, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
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
        found = record.find(Drift)
        if found is None and (champion := cloud.registry.find_by_alias(spec.name, vertex.CHAMPION)):
            asked_by = f"{dag_run.run_id}|{context['ti'].max_tries}"
            found = record.write_once(self._measure(cloud, spec, champion, as_of, asked_by))
        for feature in found.features if found else ():
            self.log.info(
                "%s: %s %.4f%s", feature.name, feature.distance, feature.value, " DRIFTED" if feature.drifted else ""
            )
        return {
            "monitor_uri": folder,
            "as_of": format_time(as_of),
            "rows": found.rows if found else None,
            "drifted": [feature.name for feature in found.features if feature.drifted] if found else [],
        }

    @staticmethod
    def _measure(cloud: CloudPort, spec: ModelSpec, champion: Version, as_of: datetime, asked_by: str) -> Drift:
        settings = cloud.settings
        baseline = Record(cloud.artifacts, storage.run_uri(settings.bucket, spec.name, champion.run_key))
        statistics = baseline.read(Statistics)
        table = bigquery.request_log_table(settings.project, settings.dataset, spec.name)
        rows: list[Row] = []
        # The endpoint makes the table with the first request it logs.
        if cloud.warehouse.table_schema(table) is not None:
            rollout = RolloutState(cloud, spec.name).read()
            smoke_requests = rollout.smoke_requests if rollout else ()
            query = drift.render_requests_sql(spec, table, statistics, as_of, smoke_requests)
            job_id = bigquery.monitor_job_id(settings.environment, spec.name, as_of, asked_by)
            rows = cloud.warehouse.run(query, job_id, "requests").rows
        return drift.measure(
            spec,
            as_of=as_of,
            endpoint_name=vertex.endpoint_name(settings.project, settings.region, spec.name),
            log_table=table,
            champion=DriftChampion(version_id=champion.version_id, run_key=champion.run_key),
            baseline_uri=baseline.uri(Statistics),
            statistics=statistics,
            rows=rows,
        )


class DecideRetrainingOperator(CloudOperator):
    """Decide whether a retraining is due, write the ledger row, and order it by an asset event.

    The event goes through an `AssetAlias`: an asset among the outlets would fire with every success.

    Args:
        model: Name of the spec.
        monitor_uri: Folder of this monitor run's documents.

    Returns:
        `{decision, because, words, ledger_uri}`.
    """

    template_fields = ("monitor_uri",)

    def __init__(self, *, model: str, monitor_uri: str = MONITOR_URI, **kwargs: Any) -> None:  # noqa: ANN401 - BaseOperator's
        super().__init__(**{"outlets": [AssetAlias(dags.asset_name(model))], **kwargs})
        self.model = model
        self.monitor_uri = monitor_uri

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Earlier rows and the drift in, one row out; the event when the row says so."""
        record = own_monitor(cloud, context, self.monitor_uri)
        row = record.find(Ledger) or record.write_once(self._decide(cloud, record, context))
        self.log.info(row.words)
        ledger_uri = record.uri(Ledger)
        if row.decision == "retrain" and row.retrain_as_of is not None:
            extra: dict[str, JsonValue] = {
                "as_of": format_time(row.retrain_as_of),
                "reason": row.words,
                "ledger_uri": ledger_uri,
            }
            asset = Asset(name=dags.asset_name(self.model), uri=dags.asset_uri(self.model))
            # Again for a cleared task: the retraining finds its own run key and makes nothing twice.
            context["outlet_events"][AssetAlias(dags.asset_name(self.model))].add(asset, extra=extra)
        return {"decision": row.decision, "because": row.because, "words": row.words, "ledger_uri": ledger_uri}

    def _decide(self, cloud: CloudPort, record: Record, context: Context) -> Ledger:
        spec = load_spec(self.model)
        measured = context["ti"].xcom_pull(task_ids="measure")
        as_of = windows.parse_time(measured["as_of"], "XCom of measure")
        rows = ledger_rows(cloud, spec, as_of)
        row = retraining.decide_retraining(spec, record.find(Drift), rows, as_of, record.uri(Drift))
        where, given = "Param retrain_as_of", context["params"]["retrain_as_of"]
        time = windows.parse_time(given, where) if given else None
        if row.decision == "retrain" and time is not None:
            windows.require_past(time, context["dag_run"].start_date, where)
        return retraining.retrain_as_of(row, time)


def ledger_rows(cloud: CloudPort, spec: ModelSpec, as_of: datetime) -> list[Ledger]:
    """Earlier ledger rows as far back as the longest cool-down reaches."""
    folder = storage.monitors_uri(cloud.settings.bucket, spec.name)
    uris = cloud.artifacts.list_uris(folder, start=stamp(as_of - retraining.reach(spec)), suffix="/ledger.json")
    return [Ledger.parse(data) for data in cloud.artifacts.read_many(uris)]


def load_spec(model: str) -> ModelSpec:
    """The spec of a model, from the include folder.

    Raises:
        SpecError: The file is wrong.
    """
    return files.load_spec(include_path() / "models" / f"{model}.yaml")
