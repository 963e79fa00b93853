"""What each task tells of its run's documents: datasets by OpenLineage's names, and the facet of our own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from retraining.core import documents
from retraining.core.documents import Column, Manifest, Plan, Snapshot
from retraining.core.documents.snapshot import SourceTable
from retraining.core.lineage import datasets
from retraining.core.lineage.datasets import Dataset
from retraining.core.lineage.record_facet import NAME, PRODUCER, SCHEMA_URL
from retraining.core.lineage.steps import (
    STEPS,
    Documents,
    Lineage,
    Steps,
)
from retraining.core.spec.source_files import SourceFiles
from tests.support.contracts import EXAMPLES
from tests.support.product import REPOSITORY

SCHEMA = json.loads((REPOSITORY / "docs/openlineage/1-0-0/RetrainingRecordRunFacet.json").read_bytes())
BUCKET, VERTEX = "gs://my-retraining", "vertex_ai"
RUN = "late/runs/20131120t030000z-4be2344f8642"
RUN_TABLE = ("bigquery", "my-project.retraining.run_late__20131120t030000z_4be2344f8642")
SHARDS = (BUCKET, "late/spans/9f8e7d6c5b4a3210")
MODEL = ("gs://local-retraining", "flight_delays/runs/20131120t030000z-0a1b2c3d4e5f/training/model")
CHAMPION = ("gs://local-retraining", "flight_delays/runs/20131119t030000z-0a1b2c3d4e50/training/model")
EVALUATION, DECISION = (BUCKET, f"{RUN}/evaluation.json"), (BUCKET, f"{RUN}/decision.json")
VERSION = (VERTEX, "projects/my-project/locations/us-central1/models/late@4")
ENDPOINT = (VERTEX, "projects/my-project/locations/us-central1/endpoints/late")
SOURCE = SourceTable(name="my-project.airport.flights", columns=(Column(name="at", type="TIMESTAMP", mode="REQUIRED"),))


def example(name: str) -> Any:
    """A document that is kept as an example."""
    kind = "".join(part.capitalize() for part in name.split("__")[0].split("_"))
    known = {"Deployment": documents.Deployment, "Scoring": documents.ScoringResult}
    model: Any = known.get(kind) or getattr(documents, kind)
    return model.parse((EXAMPLES / f"{name}.json").read_bytes())


PLAN = example("plan__scheduled")
SNAPSHOT = example("snapshot__three_new_spans").model_copy(update={"sources": (SOURCE,)})
WHOLE = [
    PLAN,
    SNAPSHOT,
    *map(
        example,
        [
            "manifest__three_spans",
            "report__first_attempt",
            "evaluate_request__duel",
            "evaluation__duel",
            "decision__promote",
            "registration__challenger",
            "deployment__champion",
        ],
    ),
]
SCORED = [*map(example, ["scoring_plan__query", "scoring_input__one_row", "predictions__timed", "scoring__day"])]


def tell(task_id: str, found: list[Any], steps: Steps = STEPS["run"]) -> Lineage:
    """What a task tells, of those documents that it reads."""
    kinds = steps.kinds_read(task_id)
    lineage = steps.describe(task_id, Documents([each for each in found if type(each) in kinds]))
    assert lineage is not None
    return lineage


def names(listed: tuple[Dataset, ...]) -> list[tuple[str, str]]:
    """Datasets as an event names them."""
    return [(each.namespace, each.name) for each in listed]


@pytest.mark.parametrize(
    ("task_id", "inputs", "outputs"),
    [
        ("snapshot", [("bigquery", SOURCE.name)], [("bigquery", SNAPSHOT.table)]),
        ("check_data", [RUN_TABLE], []),
        ("export", [RUN_TABLE], [SHARDS]),
        ("tune", [SHARDS], []),
        ("train", [SHARDS], [MODEL]),
        ("evaluate", [SHARDS, MODEL, CHAMPION], [EVALUATION]),
        ("decide", [EVALUATION], [DECISION]),
        ("register", [MODEL, DECISION], [VERSION]),
        ("deploy", [VERSION], [ENDPOINT]),
        ("report", [], []),
    ],
)
def test_each_task_of_a_run_tells_what_it_read_and_wrote(task_id: str, inputs: Any, outputs: Any) -> None:
    """So the graph goes from the source's tables to the endpoint without a gap."""
    flow = tell(task_id, WHOLE).flow
    assert (names(flow.inputs), names(flow.outputs)) == (inputs, outputs)


@pytest.mark.parametrize("task_id", [*STEPS["run"].by_task, "report"])
def test_a_task_that_came_to_nothing_tells_no_output(task_id: str) -> None:
    """Its run's plan is all that there is."""
    assert tell(task_id, [PLAN]).flow.outputs == ()


def test_a_run_without_a_plan_tells_nothing() -> None:
    """It is not known which run it is."""
    assert STEPS["run"].describe("train", Documents([])) is None


def test_columns_and_counts_are_told() -> None:
    """Of the source's tables, of the run table and of the shards that this run wrote."""
    snapshot, export = tell("snapshot", WHOLE), tell("export", WHOLE)
    assert [each.columns for each in snapshot.flow.inputs] == [SOURCE.columns]
    assert [(each.columns, each.rows) for each in snapshot.flow.outputs] == [(SNAPSHOT.columns, 300)]
    assert [(each.rows, each.bytes, len(each.columns)) for each in export.flow.outputs] == [(1402, 72904, 5)]
    assert snapshot.flow.sql == PLAN.query.sql


def test_what_is_read_from_the_table_needs_no_shards() -> None:
    """A training without an export reads the run table."""
    manifest = example("manifest__three_spans")
    splits = {name: split.model_copy(update={"files": ()}) for name, split in manifest.splits.items()}
    found = [PLAN, manifest.model_copy(update={"splits": splits})]
    assert names(tell("train", found).flow.inputs) == [RUN_TABLE]
    assert tell("export", found).flow.outputs == ()


def test_files_are_the_source_and_not_the_table_they_were_loaded_into() -> None:
    """By the folders of their addresses, each once."""
    files = {
        "uris": ["gs://visits/2013/*.csv", "gs://visits/2013/*.csv.gz", "gs://visits/all.csv"],
        "format": "csv",
        "columns": [{"name": "n", "type": "INT64"}],
    }
    data = PLAN.spec.data.model_copy(update={"files": SourceFiles.model_validate(files)})
    spec = PLAN.spec.model_copy(update={"data": data})
    flow = tell("snapshot", [PLAN.model_copy(update={"spec": spec})]).flow
    assert names(flow.inputs) == [("gs://visits", "2013"), ("gs://visits", "all.csv")]


@pytest.mark.parametrize(
    ("uri", "name"), [("gs://b", "/"), ("gs://b/*.csv", "/"), ("gs://b/a/", "a"), ("gs://b/a/b*/c", "a")]
)
def test_a_folder_has_no_slash_and_no_star(uri: str, name: str) -> None:
    """A bucket as a whole is `/`."""
    assert names((datasets.objects(uri),)) == [("gs://b", name)]


def test_nothing_deployed_writes_no_endpoint() -> None:
    """The endpoint stays as it was."""
    found = [PLAN, example("registration__challenger"), example("deployment__nothing_changed")]
    assert tell("deploy", found).flow.outputs == ()


def test_a_scoring_tells_its_source_version_and_destination() -> None:
    """From task to task without a gap."""
    plan, made, answered, done = SCORED
    version = (VERTEX, plan.version.version_name)
    flows = {task_id: tell(task_id, SCORED, STEPS["scoring"]).flow for task_id in ("snapshot", "predict", "write")}
    assert flows["snapshot"].sql == plan.source.query.sql
    assert {task_id: (names(flow.inputs), names(flow.outputs)) for task_id, flow in flows.items()} == {
        "snapshot": ([], [("bigquery", made.table)]),
        "predict": ([("bigquery", made.table), version], [("bigquery", answered.table)]),
        "write": ([("bigquery", answered.table)], [("bigquery", done.destination.table)]),
    }
    assert flows["write"].outputs[0].rows == done.rows


def test_a_rollback_tells_the_version_and_the_endpoint() -> None:
    """Of no run: it made no model. Where a first version was stopped nothing serves."""
    done = example("rollback__previous")
    told = tell("roll_back", [done], STEPS["rollback"])
    place = done.version_name.partition("/models/")[0]
    endpoint = (VERTEX, f"{place}/endpoints/{done.model.replace('_', '-')}")
    assert (names(told.flow.inputs), names(told.flow.outputs)) == ([(VERTEX, done.version_name)], [endpoint])
    assert told.record is None
    stopped = done.model_copy(update={"version_name": None})
    assert tell("roll_back", [stopped], STEPS["rollback"]).flow == type(told.flow)()


def test_the_monitor_tells_the_request_log_that_it_read() -> None:
    """Without an endpoint there is none."""
    watched = example("signals__skew")
    flow = tell("measure", [watched], STEPS["monitor"]).flow
    assert (names(flow.inputs), flow.outputs) == ([("bigquery", watched.log_table)], ())
    assert tell("measure", [example("signals__no_endpoint")], STEPS["monitor"]).flow.inputs == ()


def test_the_decision_reads_signals_and_writes_the_ledger() -> None:
    """The row's document, and its table in the dataset of the request log."""
    watched, row = example("signals__skew"), example("ledger__retrain")
    folder = "late/monitor/20131120t030000z-01234567"
    flow = tell("decide", [watched, row], STEPS["monitor"]).flow
    assert names(flow.inputs) == [(BUCKET, f"{folder}/signals.json")]
    table = f"{watched.log_table.rpartition('.')[0]}.retraining_ledger"
    assert names(flow.outputs) == [(BUCKET, f"{folder}/ledger.json"), ("bigquery", table)]
    unlogged = tell("decide", [example("signals__no_endpoint"), row], STEPS["monitor"]).flow
    assert names(unlogged.outputs) == [(BUCKET, f"{folder}/ledger.json")]
    assert tell("decide", [watched], STEPS["monitor"]).flow == type(flow)()


def test_the_classifier_reads_the_request_log_and_writes_its_sample() -> None:
    """A skipped one asked for nothing, and a failed one left its sample alone."""
    watched, asked, found = (
        example(name) for name in ("signals__skew", "multivariate_request__two_features", "multivariate__drifted")
    )
    flow = tell("multivariate", [watched, asked, found], STEPS["monitor"]).flow
    assert names(flow.inputs) == [("bigquery", watched.log_table)]
    assert names(flow.outputs)[0] == ("bigquery", asked.table)
    assert flow.outputs[0].rows == found.requests + found.examples
    assert flow.outputs[1].name.endswith("/multivariate.json")
    failed = tell("multivariate", [watched, asked], STEPS["monitor"]).flow
    assert names(failed.outputs) == [("bigquery", asked.table)]
    assert failed.outputs[0].rows is None
    assert tell("multivariate", [watched], STEPS["monitor"]).flow == type(flow)()


@pytest.mark.parametrize(("steps", "found"), [(STEPS["run"], WHOLE), (STEPS["scoring"], SCORED)])
def test_the_facet_is_as_its_schema_says(steps: Steps, found: list[Any]) -> None:
    """Of every task; and every field of the schema is one that some task tells."""
    validator = Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{NAME}"})
    told: set[str] = set()
    for task_id in [*steps.by_task, "report"]:
        facet = tell(task_id, found, steps).record | {"_producer": PRODUCER, "_schemaURL": SCHEMA_URL}
        validator.validate(facet)
        told |= set(facet)
    expected = SCHEMA["$defs"][NAME]["properties" if steps is STEPS["run"] else "required"]
    assert told == set(expected)
    assert f"{SCHEMA['$id']}#/$defs/{NAME}" == SCHEMA_URL


def test_the_facet_tells_the_decision_and_its_numbers() -> None:
    """And no undefined metric, nor anything that a person wrote."""
    record = tell("decide", WHOLE).record
    assert (record["runKey"], record["verdict"], record["gates"]["mode"]) == (PLAN.run_key, "promote", True)
    assert record["metrics"]["auc"] == 0.71
    assert None not in record["metrics"].values()
    assert PLAN.trigger.reason not in json.dumps(record)


def test_documents_of_another_kind_are_not_found() -> None:
    """Each is asked for by its kind."""
    found = Documents([PLAN])
    assert (found.find(Plan), found.find(Snapshot), found.find(Manifest)) == (PLAN, None, None)
