"""The jobs of a study: their specs, and their trials read back."""

from __future__ import annotations

import pytest

from retraining.core.catalog.machines import machines
from retraining.core.documents import Tuning
from retraining.core.jobs.requests import training_job
from retraining.core.tuning import decision
from retraining.core.tuning import requests as tuning_requests
from tests.support.small_study import CHAMPION, SECTION, plan_with, study, trial

RESERVATION = "projects/p/zones/us-central1-b/reservations/night"


def test_the_whole_study_spec():
    section = {
        **SECTION,
        "parallel_trials": 2,
        "early_stopping": "decay",
        "parameters": [
            {"name": "hidden_units", "kind": "categorical", "values": ["small", "large"]},
            {"name": "dropout", "kind": "double", "min": 0.0, "max": 0.5,
             "when": {"parameter": "hidden_units", "values": ["large"]}},
            {"name": "learning_rate", "kind": "discrete", "values": [0.001, 0.01], "scale": "log"},
        ],
    }  # fmt: skip
    plan = plan_with(section)
    request = decision.decide(plan, [], None)
    job = tuning_requests.search_job(plan, request, plan.spec.tuning.parameters).custom_job
    study_spec = job["study_spec"]
    assert study_spec["metrics"] == [{"metric_id": "val_auc", "goal": "MAXIMIZE"}]
    assert "decay_curve_stopping_spec" in study_spec
    assert "algorithm" not in study_spec
    first, second = study_spec["parameters"]
    assert first["conditional_parameter_specs"] == [
        {
            "parent_categorical_values": {"values": ["large"]},
            "parameter_spec": {
                "parameter_id": "dropout",
                "double_value_spec": {"min_value": 0.0, "max_value": 0.5},
                "scale_type": "UNIT_LINEAR_SCALE",
            },
        }
    ]
    assert second["discrete_value_spec"] == {"values": [0.001, 0.01]}
    assert (job["max_trial_count"], job["parallel_trial_count"]) == (8, 2)
    assert job["trial_job_spec"]["scheduling"]["strategy"] == "SPOT"


def test_trials_run_on_spot_machines_and_the_final_training_on_demand():
    """Unless the spec says otherwise: a lost trial costs little, a lost training the night."""
    from retraining.core.jobs import requests

    plan = plan_with()
    request = decision.decide(plan, [], None)
    trials = tuning_requests.search_job(plan, request, plan.spec.tuning.parameters).custom_job["trial_job_spec"]
    training = requests.training_job(plan, None).custom_job["job_spec"]
    assert trials["scheduling"]["strategy"] == "SPOT"
    assert "strategy" not in training["scheduling"]
    plan = plan_with({**SECTION, "spot": False})
    trials = tuning_requests.search_job(plan, request, plan.spec.tuning.parameters).custom_job["trial_job_spec"]
    assert "strategy" not in trials["scheduling"]


def test_trials_get_reserved_machines_as_the_training_does():
    """Then they are on no spot machines, whatever `tuning.spot` says."""
    plan = plan_with()
    cluster = plan.spec.training.cluster.model_copy(update={"reservation": RESERVATION})
    spec = plan.spec.model_copy(update={"training": plan.spec.training.model_copy(update={"cluster": cluster})})
    tried = machines(spec, "tune")
    assert (tried.spot, tried.reservation) == (False, RESERVATION)
    assert machines(plan.spec, "tune").spot


def test_the_repetition_tries_each_once_and_leaves_the_rest_to_the_search():
    plan = plan_with({**SECTION, "max_failed_trials": 1})
    earlier = [study(7, trial(1, 0.9, 0.002), trial(2, 0.8, 0.05))]
    request = decision.decide(plan, earlier, None)
    order = tuning_requests.repetition_job(plan, request)
    assert order.custom_job["max_trial_count"] == order.custom_job["max_failed_trial_count"] == 2
    assert order.custom_job["study_spec"]["algorithm"] == "GRID_SEARCH"
    assert [prior["learning_rate"] for prior in order.request.priors] == [0.002, 0.05]
    assert order.request.trial_metric == "val_auc"
    search = tuning_requests.search_job(plan, request, plan.spec.tuning.parameters)
    assert (search.custom_job["max_trial_count"], search.custom_job["max_failed_trial_count"]) == (6, 1)
    assert search.request_uri != order.request_uri


def test_trials_are_read_back():
    plan = plan_with()
    request = decision.decide(plan, [study(7, trial(1, 0.9, 0.002))], None)
    reported = [
        {
            "id": "1",
            "state": "SUCCEEDED",
            "parameters": [{"parameter_id": "prior", "value": 0.0}],
            "measurements": [{"step_count": "1", "metrics": [{"metric_id": "val_auc", "value": 0.5}]}],
            "final_measurement": {"metrics": [{"metric_id": "val_auc", "value": 0.75}]},
            "seconds": 3.5,
        },
        {"id": "2", "state": "INFEASIBLE", "infeasible_reason": "the loss is not a number"},
    ]
    first, second = tuning_requests.read_trials(plan, "recall", request, reported)
    assert first.hyperparameters == {"hidden_units": "small", "learning_rate": 0.002}
    assert (first.value, first.curve[0].step, first.seconds) == (0.75, 1, 3.5)
    assert (second.value, second.message) == (None, "the loss is not a number")
    settled = decision.conclude(plan, request, (first, second))
    assert (settled.source, settled.best) == ("study", "recall-1")
    assert settled.hyperparameters == {"hidden_units": "small", "learning_rate": 0.002, "dropout": 0.1}
    assert isinstance(settled, Tuning)


@pytest.mark.parametrize(
    ("reported", "expected"),
    [
        ({"state": "STOPPING", "final_measurement": {"metrics": [{"value": 0.75}]}}, ("STOPPED", 0.75)),
        ({"state": "STOPPING"}, ("STOPPED", None)),
        ({"state": "INFEASIBLE", "final_measurement": {"metrics": [{"value": 0.75}]}}, ("INFEASIBLE", None)),
        ({"state": "SUCCEEDED", "final_measurement": {"metrics": [{"metric_id": "val_auc"}]}}, ("SUCCEEDED", 0.0)),
    ],
    ids=["stopped-early", "stopped-without-a-measurement", "infeasible", "zero-is-left-out-of-proto-json"],
)
def test_whatever_was_measured_to_the_end_has_a_score(reported, expected):
    plan = plan_with()
    request = decision.decide(plan, [], None)
    (read,) = tuning_requests.read_trials(plan, "search", request, [{"id": "1", **reported}])
    assert (read.state, read.value) == expected


def test_a_run_trains_with_exactly_what_the_best_trial_had():
    """Only large models have a dropout to search for, as the champion has one: a small one has the file's."""
    section = {
        **SECTION,
        "parameters": [
            *SECTION["parameters"],
            {"name": "dropout", "kind": "double", "min": 0.0, "max": 0.9,
             "when": {"parameter": "hidden_units", "values": ["large"]}},
        ],
    }  # fmt: skip
    plan = plan_with(section)
    request = decision.decide(plan, [], CHAMPION)
    assert request.hyperparameters["dropout"] == 0.9
    settled = decision.conclude(plan, request, (trial(1, 0.7, 0.02),))
    tried = tuning_requests.trial_request_of(plan, "search", ()).training.hyperparameters
    trained = training_job(plan, settled).request.training.hyperparameters
    assert trained == {**tried, "learning_rate": 0.02, "hidden_units": "small"}
    assert trained["dropout"] == 0.1
