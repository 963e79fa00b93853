"""A ramp on the local cloud, while customers ask: one that is as good comes to all traffic, a broken one goes back.

Minutes are real here: endpoints are measured by the minute.
"""

from __future__ import annotations

import math
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform_v1

from retraining.core.documents import Deployment
from retraining.core.naming import vertex
from retraining.core.promotion import ramp
from retraining.hooks.clock import Clock
from retraining.hooks.cloud import Cloud
from retraining.operators.deployment.rollout_state import RolloutState
from retraining.operators.deployment.version_deployment import DeployModelOperator
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import INSTANCE, save_models

SCORE, WRONG_BY = 0.25, 0.5
SHARE = 10
CANARY = {
    "percent": [SHARE, 100],
    "bake_minutes": 1,
    "min_requests": 20,
    "max_latency_ratio": 20.0,
    "max_error_increase": 0.05,
}
WITHIN_S = 400.0
PAUSE_S = 0.02


class Customers:
    """Ask an endpoint without a pause, and count what they are told."""

    def __init__(self, cloud: Cloud, model: str) -> None:
        region = cloud.settings.region
        self.answers: Counter[float] = Counter()
        self._name = vertex.endpoint_name(cloud.settings.project, region, model)
        options = {"api_endpoint": f"{region}-aiplatform.googleapis.com"}
        self._client = aiplatform_v1.PredictionServiceClient(client_options=options)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> Customers:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stop.set()
        self._thread.join()

    def _ask(self) -> None:
        while not self._stop.wait(PAUSE_S):
            answer = self._client.predict(endpoint=self._name, instances=[INSTANCE])
            self.answers[float(answer.predictions[0])] += 1


@pytest.fixture
def second_run(local_cloud, make_run, tmp_path, monkeypatch) -> Iterator[DeployedRun]:
    """A version after a champion that says the same, to come up in steps; the measurements are there at once."""
    del local_cloud
    monkeypatch.setattr(ramp, "METRICS_LATE", timedelta(seconds=2))
    save_models(tmp_path, SCORE)
    cloud, dag_id = Cloud(), f"retrain__ramp_{uuid.uuid4().hex[:8]}"
    cloud.clock = Waiting()
    first = _night(cloud, make_run, dag_id, 20, tmp_path)
    first.deploy()
    cloud.clock = Clock()
    made = _night(cloud, make_run, dag_id, 21, tmp_path, canary=CANARY)
    yield made
    made.retire()


def _night(cloud: Cloud, make_run: Any, dag_id: str, day: int, path: Path, **deployment: Any) -> DeployedRun:
    run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
    return DeployedRun(cloud, run, datetime(2013, 11, day, 3, tzinfo=UTC), path / str(SCORE), **deployment)


def ramp_up(night: DeployedRun, at_step: Any = lambda: None) -> Deployment:
    """Wake the task until it ends; once the version has its share something may happen. Gives the document."""
    task = DeployModelOperator(task_id="deploy", run_uri=night.folder, cloud=lambda: night.cloud)
    until, is_open = time.monotonic() + WITHIN_S, False
    while time.monotonic() < until:
        try:
            night.run.execute(task)
        except AirflowRescheduleException:
            rollout = RolloutState(night.cloud, night.model).read_rollout()
            if rollout and rollout.steps and not is_open:
                is_open = True
                at_step()
            time.sleep(1)
            continue
        return Deployment.parse(night.cloud.artifacts.read_object(f"{night.folder}/deployment.json"))
    raise AssertionError("it never ends")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_version_that_is_as_good_comes_to_all_traffic(second_run) -> None:
    """Each gate was judged by what customers asked meanwhile, and nobody was told anything else."""
    with Customers(second_run.cloud, second_run.model) as customers:
        document = ramp_up(second_run)
    assert document.deployed
    (step,) = document.steps
    assert [(gate.name, gate.passed) for gate in step.gates] == [
        ("requests", True),
        ("errors", True),
        ("latency", True),
        ("answers", True),
    ]
    assert customers.answers.keys() == {SCORE}
    assert second_run.state() == {
        "score": SCORE,
        "answers": "2",
        "deployed": 2,
        "champion": "2",
        "previous": "1",
        "default": "2",
    }


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_version_that_breaks_when_it_serves_goes_back_by_a_gate(second_run, add_fault) -> None:
    """Its answers are right until it has its share; who is told something wrong are at most that share."""
    broken = f"DeployedModel.Predict {vertex.endpoint_id(second_run.model)}/{second_run.deployed_id}"
    with Customers(second_run.cloud, second_run.model) as customers:
        document = ramp_up(second_run, lambda: add_fault(broken, "skew", count=0, by=WRONG_BY))
    assert not document.deployed, customers.answers
    assert f"at {SHARE} % of the traffic" in document.message
    assert {gate.name: gate.passed for gate in document.steps[0].gates}["answers"] is False
    wrong, asked = customers.answers[SCORE + WRONG_BY], customers.answers.total()
    print(f"ramp: {wrong} of {asked} answers were wrong ({wrong / asked:.1%}), at a share of {SHARE} %")
    share = SHARE / 100
    assert 0 < wrong <= share * asked + 4 * math.sqrt(asked * share * (1 - share))
    assert second_run.state() == {
        "score": SCORE,
        "answers": "1",
        "deployed": 1,
        "champion": "1",
        "previous": None,
        "default": "1",
    }
