"""`jobs: chained`: which models may have their jobs on one machine, and on which."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from retraining.core.catalog.machines import all_machines
from retraining.core.jobs import requests
from retraining.core.jobs.chains import chained
from tests.support.small_model import make_plan, make_snapshot, make_spec, spec_values

LARGE = {"tier": "CUSTOM", "chief": {"machine": "n1-highmem-8"}}


def training(**changes: object) -> dict[str, object]:
    """The small model's section, changed."""
    return {**spec_values()["training"], **changes}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"training": training(runtime={"image": "gcr.io/p/t:1"})},
            "training.runtime.image trains in another container",
        ),
        ({"training": training(runtime={"framework": "2.15"})}, "training.runtime.framework trains in another"),
        (
            {"training": training(cluster={**LARGE, "workers": {"machine": "n1-highmem-8", "count": 2}})},
            "training.cluster has 3 machines",
        ),
        ({"training": training(cluster={**LARGE, "evaluator": {"machine": "n1-highmem-8"}})}, "has 2 machines"),
        ({"data": {**spec_values()["data"], "export": {"replicas": 4}}}, "data.export.replicas is 4"),
        ({"jobs": "together"}, "separate"),
    ],
)
def test_what_does_not_go_on_one_machine_is_named(changes, words) -> None:
    with pytest.raises(ValidationError, match=words):
        make_spec(**{"jobs": "chained", **changes})
    if "jobs" not in changes:
        make_spec(**changes)


def test_the_machine_is_that_of_the_training() -> None:
    """With the time limit that each task has, so that the plan's price stays that of each task."""
    separate = all_machines(make_spec(training=training(cluster=LARGE)))
    found = all_machines(make_spec(jobs="chained", training=training(cluster=LARGE)))
    assert found["train"] == separate["train"]
    for task in ("export", "evaluate"):
        assert found[task].pools == separate["train"].pools
        assert found[task].timeout_s == separate[task].timeout_s


def test_a_search_lies_between_two_machines() -> None:
    """The export has its own, and may have several."""
    tuning = {
        "metric": "val_loss",
        "max_trials": 8,
        "parallel_trials": 1,
        "parameters": [{"name": "learning_rate", "kind": "double", "min": 0.001, "max": 0.1}],
    }
    data = {**spec_values()["data"], "export": {"replicas": 4}}
    spec = make_spec(jobs="chained", data=data, tuning=tuning)
    machines = all_machines(spec)
    assert [pool.count for pool in machines["export"].pools] == [1, 3]
    plan = make_plan(spec)
    own = requests.export_job(plan, make_snapshot(plan))
    assert chained(plan, own, "export") == own
    wanted = chained(plan, requests.training_job(plan), "train")
    assert wanted.chain is not None
    assert wanted.chain.tasks == ("train", "evaluate")
    assert not wanted.chain.before_uri


def test_a_run_of_separate_jobs_has_the_jobs_that_it_had() -> None:
    plan = make_plan()
    own = requests.training_job(plan)
    assert chained(plan, own, "train") == own


def test_a_run_is_the_same_run() -> None:
    """What it leaves does not depend on where it ran."""
    assert make_plan(make_spec(jobs="chained")).run_key == make_plan(make_spec()).run_key
