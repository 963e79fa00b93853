"""The task `decide`: whether the drift, or the time since the last training, is worth a retraining."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from airflow.sdk import Asset, AssetAlias, Context
from pydantic import JsonValue

from retraining.core.documents import Drift, Ledger
from retraining.core.documents.document import format_time
from retraining.core.monitoring import retraining
from retraining.core.naming import dags, storage
from retraining.core.naming.run_keys import stamp
from retraining.core.planning import pauses, windows
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.monitoring.signal_measurement import load_spec
from retraining.operators.record.ownership import own_monitor
from retraining.operators.record.pauses import find_pause
from retraining.operators.record.run_record import Record

MONITOR_URI = "{{ ti.xcom_pull(task_ids='measure')['monitor_uri'] }}"


class DecideRetrainingOperator(CloudOperator):
    """Decide whether a retraining is due, write the ledger row, and order it by an asset event.

    The event goes through an `AssetAlias`: an asset among the outlets would fire with every success.

    Args:
        model: Name of the spec.
        monitor_uri: Folder of this monitor run's documents.

    Returns:
        `{outcome, because, words, ledger_uri}`.
    """

    template_fields = ("monitor_uri",)

    def __init__(self, *, model: str, monitor_uri: str = MONITOR_URI, **kwargs: Any) -> None:
        super().__init__(**{"outlets": [AssetAlias(dags.asset_name(model))], **kwargs})
        self.model = model
        self.monitor_uri = monitor_uri

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Read earlier rows and the drift, write one row; give the event when the row says so."""
        record = own_monitor(cloud, context, self.monitor_uri)
        row = record.find_document(Ledger) or record.write_once(self._decide(cloud, record, context))
        self.log.info(row.words)
        ledger_uri = record.uri(Ledger)
        if row.outcome == "retrain" and row.retrain_as_of is not None:
            extra: dict[str, JsonValue] = {
                "as_of": format_time(row.retrain_as_of),
                "reason": row.words,
                "ledger_uri": ledger_uri,
            }
            asset = Asset(name=dags.asset_name(self.model), uri=dags.asset_uri(self.model))
            # Again for a cleared task: the retraining finds its own run key and makes nothing twice.
            context["outlet_events"][AssetAlias(dags.asset_name(self.model))].add(asset, extra=extra)
        return {"outcome": row.outcome, "because": row.because, "words": row.words, "ledger_uri": ledger_uri}

    def _decide(self, cloud: CloudPort, record: Record, context: Context) -> Ledger:
        spec = load_spec(self.model)
        measured = context["ti"].xcom_pull(task_ids="measure")
        as_of = windows.parse_time(measured["as_of"], "XCom of measure")
        rows = ledger_rows(cloud, spec, as_of)
        pause = find_pause(cloud, self.model, context)
        paused = pauses.explain_pause(pause) if pause else None
        drift = record.find_document(Drift)
        row = retraining.decide_retraining(spec, drift, rows, as_of, record.uri(Drift), paused)
        where, given = "Param retrain_as_of", context["params"]["retrain_as_of"]
        time = windows.parse_time(given, where) if given else None
        if row.outcome == "retrain" and time is not None:
            windows.require_past(time, context["dag_run"].start_date, where)
        return retraining.retrain_as_of(row, time)


def ledger_rows(cloud: CloudPort, spec: ModelSpec, as_of: datetime) -> list[Ledger]:
    """Read earlier ledger rows as far back as the longest cool-down reaches."""
    folder = storage.monitors_uri(cloud.settings.bucket, spec.name)
    uris = cloud.artifacts.list_uris(folder, start=stamp(as_of - retraining.reach(spec)), suffix="/ledger.json")
    return [Ledger.parse(data) for data in cloud.artifacts.read_many(uris)]
