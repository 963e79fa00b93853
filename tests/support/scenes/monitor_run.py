"""Runs of a monitor whose `measure` saw what a test says: the task `decide`, on a cloud in memory."""

from __future__ import annotations

import dataclasses
import json
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk.execution_time.context import OutletEventAccessors

from retraining.core import documents as d
from retraining.core.data.sql import Query
from retraining.core.monitoring.replay import Recorded, decide_again
from retraining.core.naming import storage
from retraining.hooks.ports import ArtifactsPort
from retraining.operators.monitoring.decision import DecideRetrainingOperator
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.ledger import signal, signals

MODEL = "flight_delays"
START = datetime(2013, 11, 21, 5, tzinfo=UTC)
CHAMPION = d.DriftChampion(version_id="1", run_key="20131120t030000z-0123456789ab")


@dataclasses.dataclass(kw_only=True)
class Monitor:
    """Monitor runs of one model, an hour after the other.

    Args:
        make_run: Makes DAG runs.
        cloud: That all of them ask.
        dag_runs: States of other DAG runs, as Airflow has them.
        task_states: Of tasks, by DAG and run.
    """

    make_run: Any
    cloud: FakeCloud = dataclasses.field(default_factory=FakeCloud)
    dag_runs: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    task_states: dict[tuple[str, str], dict[str, str]] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Let the cloud's BigQuery have a ledger, of which statements are run as they say."""
        self.table: dict[str, str | None] = {}
        self.inserts = 0
        effects = self.cloud.warehouse.effects
        effects["ledger_insert"], effects["ledger_result"] = self._insert, self._complete
        effects["ledger_rows"] = lambda _: [{"ledger_id": key, "state": state} for key, state in self.table.items()]

    def _insert(self, query: Query) -> list[Any]:
        self.inserts += 1
        self.table.setdefault(str(_value(query, "ledger_id")), None)
        return []

    def _complete(self, query: Query) -> list[Any]:
        self.table[str(_value(query, "ledger_id"))] = str(_value(query, "state"))
        return []

    def measured(self, hour: float, *found: Any, champion: Any = CHAMPION, waits: bool = False) -> Any:
        """A monitor run that has measured, by default one feature over its threshold.

        A person gave the time that a retraining computes as of, so that it waits for no new days, unless `waits`.
        """
        as_of = START + timedelta(hours=hour)
        retrain_as_of = None if waits else f"{as_of:%Y-%m-%dT%H:%M:%SZ}"
        run = self.make_run(
            dag_id=f"monitor__{MODEL}",
            run_id=f"scheduled__{hour:g}",
            logical_date=as_of,
            params={"as_of": None, "retrain_as_of": retrain_as_of, "window_hours": 24},
            outlet_events=OutletEventAccessors(),
            dag_runs=self.dag_runs,
            task_states=self.task_states,
        )
        folder = storage.monitor_uri(self.cloud.settings.bucket, MODEL, as_of, run.run_id)
        seen = signals(*(found or (signal(),)), champion=champion).model_copy(update={"model": MODEL, "as_of": as_of})
        self.cloud.artifacts.write_once(storage.document_uri(folder, "signals"), seen.to_bytes())
        run.xcoms["measure", "return_value"] = {"monitor_uri": folder}
        return run

    def decide(self, run: Any, cloud: Any = None) -> d.Ledger:
        """A try of the task; gives the row that is stored then."""
        task = DecideRetrainingOperator(task_id="decide", model=MODEL, cloud=(cloud or self.cloud).connect)
        told = run.execute(task)
        return require_replayed(self.cloud.artifacts, told["ledger_uri"])

    def give_up(self, run: Any) -> None:
        """Let the run's task have failed for good: what it had added to its events is not sent."""
        self.task_states[run.dag_id, run.run_id] = {"decide": "failed", "roll_back": "upstream_failed"}
        run.outlet_events = OutletEventAccessors()

    def rows(self) -> list[d.Ledger]:
        """All rows that are stored, oldest first."""
        folder = storage.monitors_uri(self.cloud.settings.bucket, MODEL)
        uris = self.cloud.artifacts.list_uris(folder, suffix="/ledger.json")
        return [d.Ledger.parse(data) for data in self.cloud.artifacts.read_many(uris)]

    def last_order(self) -> d.Ledger:
        """The row that ordered something last."""
        uri = storage.last_order_uri(self.cloud.settings.bucket, MODEL)
        return d.Ledger.parse(self.cloud.artifacts.objects[uri])

    def store_plan(self, plan: d.Plan, **found: d.Document) -> None:
        """Leave a run's plan and other documents as the run would."""
        for document in (plan, *found.values()):
            uri = storage.document_uri(plan.run_uri, document.kind_name())
            self.cloud.artifacts.objects[uri] = document.to_bytes()


def require_replayed(artifacts: ArtifactsPort, ledger_uri: str) -> d.Ledger:
    """Return a stored row, once it comes out the same from what is stored beside it."""
    folder = ledger_uri.removesuffix("/ledger.json")
    uris = artifacts.list_uris(folder.rpartition("/")[0], suffix="/ledger.json")
    rows = {uri: d.Ledger.parse(data) for uri, data in artifacts.read_some(uris).items()}
    row, seen = rows[ledger_uri], artifacts.read_object(storage.document_uri(folder, "signals"))
    assert seen is not None
    again = decide_again(Recorded(signals=d.Signals.parse(seen), row=row), tuple(rows.values()))
    # Of two runs at once one may name the other's order before its row is there: then the words differ.
    assert (again.outcome, again.reason, again.cause) == (row.outcome, row.reason, row.cause)
    return row


def _value(query: Query, name: str) -> object:
    return next(parameter.value for parameter in query.parameters if parameter.name == name)


def added(run: Any) -> list[dict[str, Any]]:
    """What the events of a run say."""
    return [event.extra for accessor in run.outlet_events.values() for event in accessor.asset_alias_events]


def example(kind: str, example_name: str, /, **values: Any) -> Any:
    """Return a stored example of a document with other values."""
    from tests.support.contracts import EXAMPLES

    raw = json.loads((EXAMPLES / f"{kind}__{example_name}.json").read_text())
    return d.KINDS[kind].parse(json.dumps(raw | values))
