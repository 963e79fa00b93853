"""A night on a pool of machines in the local cloud, where machines of one's own would take minutes to come."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1

from retraining.core.naming import vertex
from retraining.hooks.cloud import Cloud
from retraining.hooks.session import call
from retraining.operators.jobs import machine_pools, places
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.scenes.parcels import make_parcels
from tests.support.scenes.whole_run import load_dags, read_object, run_whole
from tests.support.small_pool import write_pool

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture
def folder(include: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the pool."""
    for module in (machine_pools, places):
        monkeypatch.setattr(module, "include_path", lambda: include)
    monkeypatch.setenv("RETRAINING_WATCH_S", "60")
    (include / "quotas.yaml").write_text("regions: {us-central1: {jobs: 1, machines: 1, cpus: 4}}")
    write_pool(include, machines=[{"machine": "n1-standard-4"}])
    return include


class PoolRun:
    """A run of the pool's DAG."""

    def __init__(self, include: Path, run: Any) -> None:
        from retraining.core.spec.machine_pool import load_pool

        self.dag = load_dags("machine_pools").machine_pool_dag(load_pool(include / "pools" / "nightly.yaml"))
        self.run = run
        run.dag_id = self.dag.dag_id

    def finish(self, task_id: str) -> Any:
        """Run a task to its end."""
        for _ in range(600):
            try:
                return self.run.execute(self.dag.get_task(task_id))
            except AirflowRescheduleException:
                Cloud().clock.sleep(0.1)
        raise AssertionError(f"{task_id} did not end")


def jobs() -> dict[str, str]:
    """The model's custom jobs: on which pool each ran."""
    cloud = Cloud()
    place = f"projects/{cloud.settings.project}/locations/{cloud.settings.region}"
    client: aiplatform_v1.JobServiceClient = cloud.jobs._client
    found = call(lambda: list(client.list_custom_jobs(parent=place)))
    mine = [job for job in found if job.labels.get(vertex.MODEL_LABEL) == "pooled"]
    return {job.labels[vertex.TASK_LABEL]: job.job_spec.persistent_resource_id for job in mine}


def test_a_night_waits_for_no_machines(local_cloud, folder: Path, make_run, add_fault) -> None:
    """Export, training and evaluation on one machine, under a quota of one; afterwards it is gone."""
    pool = PoolRun(folder, make_run(run_id="scheduled__pool", run_after=datetime.now(UTC)))
    pool_id = pool.finish("open")["pool_id"]
    add_fault("Job.Start", "delay", seconds=600)
    spec = make_parcels(local_cloud, folder, "pooled", "machine_pool: nightly")
    found = run_whole(spec, make_run(run_id="manual__pooled"))
    assert found["evaluation"]["challenger"]["metrics"]["log_loss"] < 0.5
    waited = json.loads(read_object(f"gs://{Cloud().settings.bucket}/wakes/places/us-central1.json"))
    assert waited["entries"] == {}, "each job asked for the one place, and gave it back"
    assert jobs() == {"export": pool_id, "train": pool_id, "evaluate": pool_id}
    pool.finish("close")
    assert Cloud().machine_pools.find(pool_id) is None
