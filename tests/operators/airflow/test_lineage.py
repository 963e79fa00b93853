"""What a task gives Airflow's OpenLineage provider: here to stand-ins, in `test_lineage_events.py` to the real one."""

from __future__ import annotations

import logging
import subprocess
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import attr
import pytest

from retraining.core.documents import ScoringPlan
from retraining.core.lineage.record_facet import PRODUCER, SCHEMA_URL
from retraining.core.lineage.steps import STEPS
from retraining.core.naming import bigquery
from retraining.operators.airflow.lineage import LineageMixin
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.scoring.prediction import SnapshotInstancesOperator
from tests.support.fakes.cloud import FakeCloud
from tests.support.product import REPOSITORY
from tests.support.scenes.planned_run import FORM, fill, plan, stored_plan

CONVERSION = "retraining.operators.airflow.openlineage"
FLIGHTS = "local-project.nycflights13.flights"


@attr.define
class RunFacet:
    """As the client's: it knows who made it, and its schema."""

    _producer: str = attr.field(default="", kw_only=True)
    _schemaURL: str = attr.field(default="", init=False)

    def __attrs_post_init__(self) -> None:
        self._schemaURL = self._get_schema()

    @staticmethod
    def _get_schema() -> str:
        return ""


class StandIn(SimpleNamespace):
    """Any other class of the client: keeps what it is given."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules that the provider would bring."""

    def module(name: str, **names: Any) -> None:
        made = ModuleType(name)
        vars(made).update(names)
        monkeypatch.setitem(sys.modules, name, made)

    facets = {
        "dataset_type_dataset": "DatasetTypeDatasetFacet",
        "output_statistics_output_dataset": "OutputStatisticsOutputDatasetFacet",
        "sql_job": "SQLJobFacet",
    }
    schemas = SimpleNamespace(SchemaDatasetFacet=StandIn, SchemaDatasetFacetFields=StandIn)
    by_module = {name: SimpleNamespace(**{facet: StandIn}) for name, facet in facets.items()}
    module("airflow.providers.openlineage")
    module("airflow.providers.openlineage.extractors", OperatorLineage=StandIn)
    module("openlineage")
    module("openlineage.client")
    module("openlineage.client.event_v2", InputDataset=StandIn, OutputDataset=StandIn)
    module("openlineage.client.facet_v2", RunFacet=RunFacet, schema_dataset=schemas, **by_module)
    monkeypatch.delitem(sys.modules, CONVERSION, raising=False)
    yield
    sys.modules.pop(CONVERSION, None)


@pytest.fixture
def snapshot(make_run) -> SnapshotOperator:
    """The task of a run, done."""
    cloud, run = FakeCloud(), make_run(params=FORM)
    planned = stored_plan(cloud, plan(cloud, run))
    fill(cloud, planned)
    cloud.warehouse.reads[planned.query.path] = (FLIGHTS, bigquery.files_table(planned))
    cloud.warehouse.schemas[FLIGHTS] = [{"name": "tags", "type": "STRING", "mode": "REPEATED"}]
    task = SnapshotOperator(task_id="snapshot", cloud=cloud.connect)
    run.execute(task)
    return task


def test_a_task_gives_the_classes_that_the_provider_knows(provider, snapshot) -> None:
    """Datasets with their facets, the query, and a facet of our own, all of them said to be ours."""
    told = snapshot.get_openlineage_facets_on_complete(None)
    source = told.inputs[0]
    assert (source.namespace, source.name) == ("bigquery", FLIGHTS)
    assert [(field.name, field.type) for field in source.facets["schema"].fields] == [("tags", "ARRAY<STRING>")]
    assert told.outputs[0].outputFacets["outputStatistics"].rowCount == 15
    assert told.job_facets["sql"].dialect == "bigquery"
    facet = told.run_facets["retraining_record"]
    assert (type(facet).__name__, facet.model) == ("RetrainingRecordRunFacet", "flight_delays")
    assert (facet._producer, facet._schemaURL) == (PRODUCER, SCHEMA_URL)
    assert {source.facets["datasetType"].producer, told.job_facets["sql"].producer} == {PRODUCER}


def test_a_task_that_did_nothing_tells_nothing(provider) -> None:
    """It failed before it knew its run."""
    assert SnapshotOperator(task_id="snapshot").get_openlineage_facets_on_complete(None) is None


def test_a_scoring_tells_by_its_own_plan() -> None:
    """Its tasks have the names of a run's."""
    assert STEPS[SnapshotInstancesOperator(task_id="snapshot").lineage_steps].plan is ScoringPlan


def test_what_goes_wrong_is_a_warning(snapshot, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    """The task is done: without the provider's classes, and when a document cannot be read."""
    monkeypatch.setitem(sys.modules, CONVERSION, None)
    with caplog.at_level(logging.WARNING):
        assert snapshot.get_openlineage_facets_on_complete(None) is None
        snapshot.lineage_record = SimpleNamespace(find_document=lambda _kind: 1 / 0)
        assert snapshot.get_openlineage_facets_on_complete(None) is None
    warnings = [record.getMessage().split(": ")[:2] for record in caplog.records]
    assert warnings == [["no lineage", "ModuleNotFoundError"], ["no lineage", "ZeroDivisionError"]]


def test_nothing_of_lineage_is_imported_without_being_asked() -> None:
    """Neither OpenLineage's packages, nor what a task would tell."""
    program = (
        "import sys, retraining.operators.data.snapshot, retraining.operators.scoring.prediction\n"
        "print([name for name in sys.modules if 'openlineage' in name or 'core.lineage' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=REPOSITORY, env={"PYTHONPATH": "plugins"}, capture_output=True, check=True
    )
    assert done.stdout.decode().strip().splitlines()[-1] == "[]"


def test_the_methods_are_those_that_the_provider_looks_for() -> None:
    """By name; that of a start is not among them, that of a failure is the provider's own way to the same method."""
    assert [name for name in vars(LineageMixin) if name.startswith("get_openlineage")] == [
        "get_openlineage_facets_on_complete"
    ]
