"""The task `measure`: all that is watched of a model, one signal for each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk import Context

from retraining.core.documents import DriftChampion, Signals
from retraining.core.documents.document import format_time
from retraining.core.naming import storage, vertex
from retraining.core.planning import windows
from retraining.core.planning.params import require_known
from retraining.core.settings import include_path
from retraining.core.spec import files
from retraining.core.spec.model import ModelSpec
from retraining.core.untyped import XCom
from retraining.hooks.ports import CloudPort
from retraining.operators.airflow.cloud_task import CloudOperator
from retraining.operators.airflow.lineage import TellsLineage
from retraining.operators.airflow.params import monitor_params
from retraining.operators.monitoring.label_watch import watch_labels
from retraining.operators.monitoring.request_watch import watch_requests
from retraining.operators.monitoring.source_watch import watch_age, watch_sources
from retraining.operators.monitoring.watch import Seen, Watch, begin_watch
from retraining.operators.record.ownership import require_own_bucket, require_own_model
from retraining.operators.record.run_record import Record

if TYPE_CHECKING:
    from retraining.core.lineage.steps import Steps

WATCHERS: tuple[Callable[[Watch], Seen], ...] = (watch_requests, watch_labels, watch_sources, watch_age)
"""Each adds its signals; their order is that of the document."""


class MeasureSignalsOperator(TellsLineage, CloudOperator):
    """Measure all signals of a model: what it was asked, what it answered, what it lives on.

    Args:
        model: Name of the spec.

    Returns:
        `{monitor_uri, as_of, rows, drifted}`: instances in the window's log (None while no champion serves), and the
        subjects whose signal is exceeded.
    """

    def __init__(self, *, model: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.model = model

    def lineage_steps(self) -> Steps:
        """Return what the monitor reads."""
        from retraining.core.lineage.steps import MONITOR_STEPS

        return MONITOR_STEPS

    def act(self, cloud: CloudPort, context: Context) -> XCom:
        """Resolve the time, let every watcher look, write `signals.json`."""
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
        self.lineage_record = record
        measured = record.find_document(Signals)
        if measured is None:
            measured = self._measure(record, cloud, spec, as_of, f"{dag_run.run_id}|{context['ti'].max_tries}")
        for signal in measured.signals:
            self.log.info("%s %s: %s. %s", signal.kind, signal.subject, signal.state.upper(), signal.words)
        return {
            "monitor_uri": folder,
            "as_of": format_time(as_of),
            "rows": measured.requests if measured.champion else None,
            "drifted": [signal.subject for signal in measured.signals if signal.state == "exceeded"],
        }

    @staticmethod
    def _measure(record: Record, cloud: CloudPort, spec: ModelSpec, as_of: datetime, asked_by: str) -> Signals:
        champion = cloud.registry.find_by_alias(spec.name, vertex.CHAMPION)
        watch = begin_watch(cloud, spec, champion, as_of, asked_by)
        seen = [look(watch) for look in WATCHERS]
        measured = Signals(
            model=spec.name,
            as_of=as_of,
            window_hours=spec.monitoring.window_hours,
            champion=DriftChampion(version_id=champion.version_id, run_key=champion.run_key) if champion else None,
            endpoint_name=watch.endpoint.name if watch.endpoint else None,
            log_table=watch.log_table,
            requests=max(item.requests for item in seen),
            bytes_read=sum(item.bytes_read for item in seen),
            signals=tuple(signal for item in seen for signal in item.signals),
        )
        return record.write_once(measured)


def load_spec(model: str) -> ModelSpec:
    """Read the spec of a model from the include folder.

    Raises:
        SpecError: The file is wrong.
    """
    return files.load_spec(include_path() / "models" / f"{model}.yaml")
