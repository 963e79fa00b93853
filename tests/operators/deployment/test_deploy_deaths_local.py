"""The process dies during a deployment on the local cloud, through Google's clients: who answers at the endpoint then.

Every call of a deployment is died at in test_deploy_deaths.py, on the cloud in memory. Here the endpoint is asked.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from retraining.hooks.cloud import Cloud
from tests.support.scenes.deployed_run import DeployedRun, Waiting
from tests.support.scenes.served_models import save_models

OLD, NEW = 0.25, 0.75
CHANGES = {"start_deploy", "set_traffic", "predict", "merge_aliases", "move_alias", "remove_alias"}
MOST_OF_ONE = 3


@pytest.fixture(scope="module")
def model_paths(tmp_path_factory) -> Path:
    """Two SavedModels, each in a folder named after what it always says."""
    path = tmp_path_factory.mktemp("models")
    save_models(path, OLD, NEW)
    return path


@pytest.fixture
def night(local_cloud, make_run, model_paths) -> Iterator[Callable[[], DeployedRun]]:
    """Makes the second night of a model whose first one serves."""
    del local_cloud
    made: list[DeployedRun] = []

    def make() -> DeployedRun:
        cloud = Cloud()
        cloud.clock = Waiting()
        dag_id = f"retrain__deaths_{uuid.uuid4().hex[:8]}"
        for day, score in ((20, OLD), (21, NEW)):
            run = make_run(run_id=f"scheduled__{day}", dag_id=dag_id)
            as_of = datetime(2013, 11, day, 3, tzinfo=UTC)
            made.append(DeployedRun(cloud, run, as_of, model_paths / str(score)))
            if score == OLD:
                made[-1].deploy()
                assert made[-1].state()["score"] == OLD
        return made[-1]

    yield make
    for one in made:
        one.retire()


BEFORE = {"score": OLD, "answers": "1", "deployed": 1, "champion": "1", "previous": None, "default": "1"}
THEN = {"score": NEW, "answers": "2", "deployed": 2, "champion": "2", "previous": "1", "default": "2"}


@pytest.mark.long
def test_dead_with_the_traffic_on_a_wrong_model(night) -> None:
    """The old version answers again, and the new machines are not paid."""
    right = night()
    right.deploy()
    assert right.state() == THEN
    wrong = night()
    wrong.expect_other_answers()
    wrong.deploy("set_traffic", after=True)
    wrong.teardown()
    assert wrong.died
    assert wrong.state() == BEFORE


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_dead_at_every_change(night) -> None:
    """Before and after each call that changes something, another try leads to one champion that answers."""
    calls = night().deploy()
    assert {"set_traffic", "merge_aliases", "start_deploy"} <= set(calls)
    assert "undeploy" not in calls  # the version before stays for a day
    for number, name in enumerate(calls, 1):
        if name not in CHANGES:
            continue
        nth = calls[:number].count(name)
        if nth > MOST_OF_ONE:  # how often the champion answers a smoke request in the other's place is chance
            continue
        for after in (False, True):
            it = night()
            where = f"{'after' if after else 'before'} {name} {nth}"
            it.deploy(name, nth, after=after)
            assert it.died, where
            assert it.state() == THEN, where
            it.retire()
