"""A walk-forward under a real scheduler: a dry run that makes nothing, then three versions, of which one is cleared."""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from google.cloud import aiplatform_v1, storage

from demo.dag_run import MODEL
from demo.system import LaptopSystem
from retraining.core.documents import WalkForward
from retraining.core.naming import vertex
from retraining_laptop.dag_run import wait_for_dag
from retraining_laptop.progress import follow_run

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]

DAG_ID = f"walk_forward__{MODEL}"
FORM = {"first": "2013-10-02", "last": "2013-10-16", "every": 7, "horizons": [1, 7, 14], "at_once": 2}


@pytest.fixture(scope="module")
def api(laptop: LaptopSystem) -> Any:
    """Airflow's."""
    found = laptop.airflow.api()
    wait_for_dag(found, DAG_ID)
    found.unpause(DAG_ID)
    return found


def states(api: Any, run_id: str) -> dict[str, Counter[str]]:
    """States of a run's task instances, by task."""
    found: dict[str, Counter[str]] = {}
    for ti in api.task_instances(DAG_ID, run_id):
        found.setdefault(ti["task_id"], Counter())[ti["state"]] += 1
    return found


def paid() -> Counter[str]:
    """The custom jobs that the walk-forward's runs paid for, by what they did."""
    place = f"projects/{os.environ['RETRAINING_PROJECT']}/locations/{os.environ['RETRAINING_REGION']}"
    endpoint = f"{os.environ['RETRAINING_REGION']}-aiplatform.googleapis.com"
    client = aiplatform_v1.JobServiceClient(client_options={"api_endpoint": endpoint})
    return Counter(job.labels[vertex.TASK_LABEL] for job in client.list_custom_jobs(parent=place))


def ended(api: Any, run_id: str) -> str:
    """The state that a run ends in."""
    state, _ = follow_run(api, DAG_ID, run_id, say=print, timeout_s=1500)
    return str(state)


def test_a_walk_forward_scores_each_version_once(api: Any) -> None:
    """Its page is there, production is as it was, and clearing one version pays for that one alone."""
    before = paid()
    dry = api.trigger(DAG_ID, conf={"dry_run": True, **FORM})
    assert ended(api, dry) == "success"
    assert states(api, dry)["report"] == {"skipped": 1}
    assert paid() == before

    run_id = api.trigger(DAG_ID, conf={"dry_run": False, **FORM})
    assert ended(api, run_id) == "success"
    by_task = states(api, run_id)
    for task in ("plan_version", "snapshot_version", "check_data", "export_version", "train", "score"):
        assert by_task[task] == {"success": 3}
    assert paid() - before == Counter(export=4, train=3, evaluate=3)
    result = api.xcom(DAG_ID, run_id, "report")
    assert result["versions"] == 3
    client = storage.Client(project=os.environ["RETRAINING_PROJECT"])
    folder = result["report_uri"].rpartition("/")[0]
    found = WalkForward.parse(storage.Blob.from_uri(f"{folder}/walk_forward.json", client).download_as_bytes())
    assert [len(version.days) for version in found.versions] == [28, 21, 14]
    assert all(version.usd for version in found.versions)
    page = storage.Blob.from_uri(result["report_uri"], client).download_as_text()
    assert "Versions by day" in page

    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": [["score", 1]], "include_downstream": True}
    api.call("POST", f"/dags/{DAG_ID}/clearTaskInstances", json=body | {"only_failed": False})
    assert ended(api, run_id) == "success"
    assert paid() - before == Counter(export=4, train=3, evaluate=3), "what is scored is taken"

    failed = f"/dags/{DAG_ID}/dagRuns/{run_id}/taskInstances/score/1"
    api.call("PATCH", failed, json={"new_state": "failed"})
    body = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["report"], "include_downstream": True}
    api.call("POST", f"/dags/{DAG_ID}/clearTaskInstances", json=body | {"only_failed": False})
    assert ended(api, run_id) == "failed", "a version did not come to its end"
    by_task = states(api, run_id)
    assert by_task["score"] == {"success": 2, "failed": 1}
    assert (by_task["report"], by_task["conclude"]) == ({"success": 1}, {"failed": 1})
    assert paid() - before == Counter(export=4, train=3, evaluate=3)
