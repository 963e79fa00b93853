"""A job is of the settings' trainer, whatever the plan of its run names: of each kind of job that a plan leads to."""

from __future__ import annotations

import dataclasses
import json

import pytest

from retraining.core.errors import PlanError
from retraining.core.jobs import requests
from retraining.core.jobs.chains import chained
from retraining.core.jobs.requests import by_settings
from retraining.core.tuning import decision
from retraining.core.tuning.requests import repetition_job, search_job
from tests.support.fakes.settings import SETTINGS
from tests.support.small_model import make_plan, make_snapshot, make_spec, spec_values
from tests.support.small_study import plan_with, study, trial

EVIL = "elsewhere/evil:1"
PACKAGE = "gs://elsewhere/evil.tar.gz"


def orders() -> dict[str, requests.JobRequest]:
    """Each job of a forged plan, by what it is."""
    plan = make_plan(make_spec(jobs="chained")).model_copy(update={"trainer_image": EVIL})
    searching = plan_with().model_copy(update={"trainer_image": EVIL})
    asked = decision.decide(searching, [study(7, trial(1, 0.9, 0.002))], None)
    found = {
        "export": requests.export_job(plan, make_snapshot(plan)),
        "train": requests.training_job(plan),
        "evaluate": requests.evaluation_job(plan, None),
        "recall": repetition_job(searching, asked),
        "search": search_job(searching, asked, searching.spec.tuning.parameters if searching.spec.tuning else ()),
    }
    return {**found, "chained": chained(plan, found["export"], "export")}


@pytest.mark.parametrize("name", orders())
def test_no_job_is_of_an_image_that_a_plan_alone_names(name: str) -> None:
    order = orders()[name]
    before = json.dumps(order.custom_job)
    assert EVIL in before
    made = json.dumps(by_settings(order.custom_job, order.plan, SETTINGS))
    assert EVIL not in made
    assert SETTINGS.trainer_image in made
    assert json.dumps(order.custom_job) == before, "by which the task finds its job again"


def test_a_source_distribution_is_the_settings_too() -> None:
    """With the framework that the model's file names; without one nothing runs."""
    spec = make_spec(training={**spec_values()["training"], "runtime": {"framework": "2.15"}})
    order = requests.training_job(make_plan(spec).model_copy(update={"trainer_package": PACKAGE}))
    assert PACKAGE in json.dumps(order.custom_job)
    settings = dataclasses.replace(SETTINGS, trainer_package="gs://bucket/trainer+tf{framework}.tar.gz")
    made = json.dumps(by_settings(order.custom_job, order.plan, settings))
    assert PACKAGE not in made
    assert "gs://bucket/trainer+tf2.15.tar.gz" in made
    with pytest.raises(PlanError, match="RETRAINING_TRAINER_PACKAGE"):
        by_settings(order.custom_job, order.plan, dataclasses.replace(SETTINGS, trainer_package=None))


def test_an_image_that_the_models_file_names_stays() -> None:
    spec = make_spec(training={**spec_values()["training"], "runtime": {"image": "host/own-trainer:1"}})
    order = requests.training_job(make_plan(spec))
    assert by_settings(order.custom_job, order.plan, SETTINGS) == order.custom_job
