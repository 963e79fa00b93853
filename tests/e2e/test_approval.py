"""A person is asked by a real scheduler and answers by Airflow's API: no, not at all, yes; then nobody is wanted.

The first night is asked for three times: what was recorded is deleted and `approve` cleared, as the docs say.
In between somebody writes a yes into the XCom of `approve`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from demo.dag_run import DAG_ID
from demo.system import LaptopSystem
from retraining_laptop.airflow import USERNAME
from retraining_laptop.dag_run import read_documents, wait_for_dag
from retraining_laptop.progress import follow_run

from .conftest import make_bundle, running_laptop

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]

FIRST, SECOND = "2013-11-20T03:00:00Z", "2013-11-21T03:00:00Z"
HOURS, SECONDS = "ANSWER_WITHIN = timedelta(hours=12)", "ANSWER_WITHIN = timedelta(seconds=60)"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Airflow's, where a first version needs a person, who has a minute."""
    base = tmp_path_factory.mktemp("approval")
    dags_path = make_bundle(base / "bundle", approval="first")
    file = dags_path.parent / "plugins" / "retraining" / "dags" / "retrain.py"
    source = file.read_text()
    assert HOURS in source
    file.write_text(source.replace(HOURS, SECONDS))
    with running_laptop(base, dags_path) as laptop:
        yield _ready(laptop)


def _ready(laptop: LaptopSystem) -> Any:
    api = laptop.airflow.api()
    wait_for_dag(api, DAG_ID)
    api.unpause(DAG_ID)
    return api


def wait_for(what: str, found: Callable[[], bool], timeout_s: float = 400) -> None:
    """Wait for something that a run comes to."""
    deadline = time.monotonic() + timeout_s
    while not found():
        assert time.monotonic() < deadline, f"{what} did not happen within {timeout_s:.0f} s"
        time.sleep(0.3)


def task(api: Any, run_id: str, task_id: str) -> dict[str, Any]:
    """A task of a run as Airflow has it."""
    return dict(api.call("GET", f"/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/{task_id}"))


def answered(api: Any, run_id: str, option: str | None) -> dict[str, Any]:
    """Wait until the run asks, answer it at once or not; give its `deployment.json` once the run has ended, green."""
    details = f"/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/approve/-1/hitlDetails"
    wait_for("the question", lambda: task(api, run_id, "approve")["state"] in ("awaiting_input", "deferred"))
    if option:
        api.call("PATCH", details, json={"chosen_options": [option], "params_input": {}})
    else:
        assert api.call("GET", "/pools/default_pool")["running_slots"] == 0
    assert api.call("GET", details)["options"] == ["Approve", "Reject"]
    return ended(api, run_id)


def ended(api: Any, run_id: str) -> dict[str, Any]:
    """Return a green run's `deployment.json`."""
    state, _ = follow_run(api, DAG_ID, run_id, say=print, timeout_s=400)
    assert state == "success"
    assert {ti["state"] for ti in api.task_instances(DAG_ID, run_id)} == {"success"}
    run_uri = api.xcom(DAG_ID, run_id, "plan")["run_uri"]
    return dict(read_documents(os.environ["RETRAINING_PROJECT"], run_uri)["deployment"])


def stored(api: Any, run_id: str, name: str) -> Any:
    """A document of a run, as storage has it."""
    from google.cloud import storage

    run_uri = api.xcom(DAG_ID, run_id, "plan")["run_uri"]
    return storage.Blob.from_uri(f"{run_uri}/{name}", client=storage.Client(project=os.environ["RETRAINING_PROJECT"]))


def ask_again(api: Any, run_id: str, task_id: str = "approve") -> None:
    """Delete what was recorded, and clear `approve`, or another task, with what follows."""
    stored(api, run_id, "deployment.json").delete()
    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": [task_id], "include_downstream": True}
    api.call("POST", f"/dags/{DAG_ID}/clearTaskInstances", json=body | {"only_failed": False})


def test_no_no_answer_yes_and_nobody_wanted(api: Any) -> None:
    """Every one of these runs is green, and says what happened and by whom."""
    run_id = api.trigger(DAG_ID, logical_date=FIRST)
    no = answered(api, run_id, "Reject")
    assert not no["deployed"]
    assert no["words"] == f"Nothing deployed: rejected by {USERNAME}."
    assert (no["approval"]["person"], no["approval"]["approved"]) == (USERNAME, False)
    assert no["approval"]["answered"]

    forged = no["approval"] | {"approved": True, "person": "eve", "words": "approved by eve"}
    xcom = f"/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/approve/xcomEntries/return_value"
    api.call("PATCH", xcom, json={"value": forged, "map_index": -1})
    assert "eve" in str(api.xcom(DAG_ID, run_id, "approve"))
    ask_again(api, run_id, "deploy")
    still = ended(api, run_id)
    assert not still["deployed"]
    assert still["approval"] == no["approval"]

    ask_again(api, run_id)
    late = answered(api, run_id, None)
    assert not late["deployed"]
    assert late["words"] == "Nothing deployed: rejected without an answer in time."
    assert (late["approval"]["asked"], late["approval"]["person"]) == (True, None)

    ask_again(api, run_id)
    yes = answered(api, run_id, "Approve")
    assert yes["deployed"]
    assert yes["approval"] == {
        "approved": True,
        "asked": True,
        "person": USERNAME,
        "answered": yes["approval"]["answered"],
        "words": f"approved by {USERNAME}",
    }

    assert json.loads(stored(api, run_id, "model_card.json").download_as_bytes())["approval"] == yes["approval"]

    second = api.trigger(DAG_ID, logical_date=SECOND)
    alone = ended(api, second)
    assert alone["deployed"]
    assert (alone["approval"]["asked"], alone["approval"]["approved"]) == (False, True)
    words = "nobody was asked: deployment.approval is first, and version 1 is champion"
    assert words in "\n".join(api.log_lines(DAG_ID, second, "approve", 1))
