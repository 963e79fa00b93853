"""Going back on the local cloud, through Google's clients: how soon the earlier version answers, deployed still or not.

Deaths and races are in test_rollback.py, on the cloud in memory. Here the endpoint is asked while the task goes on.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core.naming.dags import rollback_dag_id
from retraining.hooks.clock import Clock
from retraining.hooks.cloud import Cloud
from retraining.operators.deployment.version_rollback import RollBackOperator
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import save_models

OLD, NEW = 0.25, 0.75
WITHIN_S = 240.0
pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def two_runs(local_cloud, make_run, tmp_path) -> Iterator[list[DeployedRun]]:
    """Version 2 serves, version 1 did before; it is deployed still, without traffic."""
    del local_cloud
    save_models(tmp_path, OLD, NEW)
    cloud, dag_id, made = Cloud(), f"retrain__back_{uuid.uuid4().hex[:8]}", []
    cloud.clock = Waiting()
    for day, score in ((20, OLD), (21, NEW)):
        run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
        made.append(DeployedRun(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), tmp_path / str(score)))
        made[-1].deploy()
    cloud.clock = Clock()
    yield made
    made[-1].retire()


def go_back(night: DeployedRun, make_run: Any) -> None:
    """The DAG run that a person triggers, woken until its task ends."""
    run = make_run(
        dag_id=rollback_dag_id(night.model),
        run_id="manual__1",
        run_after=datetime.now(UTC).replace(microsecond=0),
        params={"model": night.model, "to": "previous", "reason": "complaints", "pause_until": None},
    )
    task = RollBackOperator(task_id="roll_back", cloud=lambda: night.cloud)
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        try:
            assert run.execute(task)["model"] == night.model
        except AirflowRescheduleException:
            time.sleep(1)
        else:
            return
    raise AssertionError("it never ends")


@pytest.mark.parametrize("still_deployed", [True, False], ids=["still deployed", "undeployed since"])
def test_the_version_before_answers_again(two_runs, make_run, still_deployed: bool) -> None:
    """Nobody meets an error meanwhile, and the aliases have changed places in the end."""
    first, second = two_runs
    if not still_deployed:
        second.cloud.endpoints.undeploy(second.cloud.endpoints.get(second.model), first.deployed_id)
    assert second.answer() == (NEW, "2")
    start = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        going = pool.submit(go_back, second, make_run)
        while second.answer() != (OLD, "1") and not going.done():
            time.sleep(0.05)
        answered_s = time.monotonic() - start
        going.result()
    words = "still deployed" if still_deployed else "deployed anew"
    print(f"rollback: the version before, {words}, answered after {answered_s:.1f} s")
    expected = {"score": OLD, "answers": "1", "champion": "1", "previous": "2", "default": "1"}
    assert second.state() == {"deployed": 2, **expected}
