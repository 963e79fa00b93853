"""What the monitor tells OpenLineage, once it has looked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from retraining.core.documents import Ledger, Signals
from retraining.core.lineage.steps import STEPS, Documents
from retraining.operators.monitoring.decision import DecideRetrainingOperator
from retraining.operators.monitoring.measurement import MeasureSignalsOperator
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.monitor_run import MODEL, Monitor

FORM = {"as_of": None, "retrain_as_of": None, "window_hours": 24}


def test_a_look_without_an_endpoint_read_no_log(make_run: Any) -> None:
    """It knows its signals; before it has looked it knows nothing."""
    cloud = FakeCloud()
    task = MeasureSignalsOperator(task_id="measure", model="flight_delays", cloud=cloud.connect)
    assert task.get_openlineage_facets_on_complete(None) is None
    at = datetime(2013, 11, 21, 5, tzinfo=UTC)
    make_run(dag_id="monitor__flight_delays", run_id="scheduled__1", logical_date=at, params=FORM).execute(task)
    assert task.lineage_record is not None
    watched = task.lineage_record.find_document(Signals)
    assert watched is not None
    told = STEPS[task.lineage_steps].describe("measure", Documents([watched]))
    assert told is not None
    assert (told.flow.inputs, told.flow.outputs, told.record) == ((), (), None)


def test_a_decision_tells_its_row(make_run: Any) -> None:
    """It knows its folder once it has decided."""
    monitor = Monitor(make_run=make_run)
    task = DecideRetrainingOperator(task_id="decide", model=MODEL, cloud=monitor.cloud.connect)
    assert task.get_openlineage_facets_on_complete(None) is None
    ledger_uri = monitor.measured(0).execute(task)["ledger_uri"]
    assert task.lineage_record is not None
    documents = [task.lineage_record.find_document(kind) for kind in STEPS[task.lineage_steps].kinds_read("decide")]
    told = STEPS[task.lineage_steps].describe("decide", Documents(document for document in documents if document))
    assert told is not None
    assert ledger_uri.endswith(told.flow.outputs[0].name)
    assert Ledger in {type(document) for document in documents}
