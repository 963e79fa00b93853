"""Events of a run's lineage by the provider's own listener, under Airflow's own task runner: `make test-lineage`."""

from __future__ import annotations

import json
import os
import subprocess
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from retraining.core.lineage.record_facet import KEY, NAME, PRODUCER
from tests.support.product import REPOSITORY

pytestmark = pytest.mark.long
LINEAGE_BIN = REPOSITORY / ".venv" / "lineage" / "bin"
SCHEMA = json.loads((REPOSITORY / "docs/openlineage/1-0-0/RetrainingRecordRunFacet.json").read_bytes())
OURS = ["snapshot", "export", "train", "evaluate", "decide", "register", "deploy"]
Names = list[tuple[str, str]]


class Reported:
    """The state of each task, and the events that were written, by task and type.

    Args:
        states: By task id.
        lines: Of the file.
    """

    def __init__(self, states: dict[str, str], lines: list[str]) -> None:
        self.states = states
        events = map(json.loads, lines)
        self.events = {(event["job"]["name"].partition(".")[2], event["eventType"]): event for event in events}

    def flow(self, task_id: str) -> tuple[Names, Names]:
        """Inputs and outputs of a task's end by their names."""
        event = self.events[task_id, "COMPLETE"]
        inputs, outputs = ([(each["namespace"], each["name"]) for each in event[key]] for key in ("inputs", "outputs"))
        return inputs, outputs


def run_dag(home: Any, **configuration: str) -> dict[str, str]:
    """Run the DAG in an Airflow of its own; give each task's state."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "tests/support/scenes"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "PYTHONPATH": "plugins:dev:.",
        **configuration,
    }
    for command in (["airflow", "db", "migrate"], ["python", "-m", "tests.support.scenes.lineage_dag"]):
        done = subprocess.run(
            [LINEAGE_BIN / command[0], *command[1:]], cwd=REPOSITORY, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found: dict[str, str] = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("{")))
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory) -> Reported:
    """A run with a transport that writes to a file."""
    home = tmp_path_factory.mktemp("airflow")
    path = home / "events.jsonl"
    transport = json.dumps({"type": "file", "log_file_path": str(path), "append": True})
    states = run_dag(home, AIRFLOW__OPENLINEAGE__TRANSPORT=transport)
    return Reported(states, path.read_text(encoding="utf-8").splitlines())


def test_the_graph_goes_from_the_source_to_the_endpoint(told) -> None:
    """What one task writes another reads, by the same name."""
    flows = {task_id: told.flow(task_id) for task_id in OURS}
    assert flows["snapshot"][0] == [("bigquery", "local-project.nycflights13.flights")]
    links = [("snapshot", "export"), ("export", "train"), ("train", "register"), ("evaluate", "decide")]
    for writer, reader in [*links, ("decide", "register"), ("register", "deploy")]:
        assert set(flows[writer][1]) & set(flows[reader][0]), (writer, reader)
    assert [namespace for namespace, _ in flows["register"][1] + flows["deploy"][1]] == ["vertex_ai", "vertex_ai"]


def test_every_facet_says_who_made_it_and_by_which_schema(told) -> None:
    """Ours that they are ours; and that of our own is as its schema says."""
    validator = Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{NAME}"})
    for task_id in OURS:
        event = told.events[task_id, "COMPLETE"]
        validator.validate(event["run"]["facets"][KEY])
        for each in event["inputs"] + event["outputs"]:
            for facet in [*each["facets"].values(), *each.get("outputFacets", {}).values()]:
                assert facet["_producer"] == PRODUCER
                assert facet["_schemaURL"].startswith("https://openlineage.io/spec/facets/")


def test_columns_counts_and_query_are_told(told) -> None:
    """As the standard's facets have them."""
    snapshot, export = (told.events[task_id, "COMPLETE"] for task_id in ("snapshot", "export"))
    fields = snapshot["inputs"][0]["facets"]["schema"]["fields"]
    assert [(field["name"], field["type"]) for field in fields] == [("origin", "STRING")]
    assert snapshot["job"]["facets"]["sql"]["dialect"] == "bigquery"
    assert "@window_start" in snapshot["job"]["facets"]["sql"]["query"]
    (shards,) = export["outputs"]
    assert {shards["outputFacets"]["outputStatistics"][key] for key in ("rowCount", "size")} == {1402, 72904}
    assert told.events["decide", "COMPLETE"]["run"]["facets"][KEY]["verdict"] == "reject"


def test_a_task_whose_lineage_cannot_be_told_succeeds(told) -> None:
    """As all others; its event has no facet of ours."""
    assert set(told.states.values()) == {"success"}
    event = told.events["broken", "COMPLETE"]
    assert (event["inputs"], event["outputs"], KEY in event["run"]["facets"]) == ([], [], False)


def test_nothing_is_sent_unless_airflow_is_told_where(tmp_path) -> None:
    """The provider is installed, and no transport is set."""
    states = run_dag(tmp_path)
    assert set(states.values()) == {"success"}
    assert not list(tmp_path.glob("**/*events*"))
