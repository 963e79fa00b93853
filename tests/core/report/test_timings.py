"""What a run's tasks took."""

from __future__ import annotations

import pytest

from retraining.core import settings
from retraining.core.catalog.cost import load_prices
from retraining.core.report.timings import EndedTask, run_seconds, run_timings
from tests.support.small_model import make_plan

PRICES = load_prices(settings.include_path())
HOUR = {"job": "j", "seconds": 3600.0, "spot_seconds": 0.0}


def _by_task(ended, prices=PRICES):
    return {task.task: task for task in run_timings(make_plan(), None, None, ended, prices).tasks}


def test_a_job_costs_its_machines_and_a_reused_result_nothing():
    left = {
        "plan": EndedTask(seconds=1.5),
        "export": EndedTask(result={"job": None, "seconds": None, "spot_seconds": None}),
        "train": EndedTask(result=HOUR),
    }
    found = _by_task(left)
    assert (found["plan"].seconds, found["plan"].machine) == (1.5, None)
    assert (found["export"].reused, found["export"].estimated_usd) == (True, None)
    assert found["train"].seconds == 3600.0
    assert found["train"].estimated_usd > 0.1
    assert found["deploy"].seconds is None


def test_without_a_price_list_nothing_has_a_price():
    assert _by_task({"train": EndedTask(result=HOUR)}, None)["train"].estimated_usd is None


@pytest.mark.parametrize("had_job", [True, False])
def test_a_task_without_a_result_names_the_machine_that_it_had(had_job):
    found = _by_task({"train": EndedTask(had_job=had_job)})
    assert (found["train"].machine is not None) is had_job


def test_a_run_took_as_long_as_from_its_start_to_its_end():
    """Its tasks' work alone leaves out all waiting; it is all that an earlier release wrote down."""
    timings = run_timings(make_plan(), None, None, {"plan": EndedTask(seconds=2.0)}, None)
    assert run_seconds(timings) == 2.0
    assert run_seconds(timings.model_copy(update={"elapsed_seconds": 71.0})) == 71.0
