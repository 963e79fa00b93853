"""The section `tuning`: what is refused, and which goal a metric has."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter

from retraining.core.catalog.capabilities import load_capabilities, require_trainable
from retraining.core.jobs.planned_training import planned_training
from retraining.core.spec.features import Label
from retraining.core.spec.search_spaces import SEARCH_SPACES
from retraining.core.spec.tuning import reported_metrics
from retraining.core.tuning import decision, requests
from tests.support.small_model import make_plan, make_spec
from tests.support.small_study import HYPERPARAMETERS, SECTION, plan_with
from trainer.contract.metrics import IF_ASKED, OF_EPOCH
from trainer.objective.class_metrics import defined


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"recall": 8}, "leaves no trial"),
        ({"algorithm": "grid"}, "give the double parameters as discrete"),
        ({"parallel_trials": 9}, "more than max_trials"),
        (
            {"parameters": [{"name": "dropout", "kind": "integer", "min": 0.5, "max": 2}]},
            "integer's bounds are whole",
        ),
        (
            {"parameters": [{"name": "dropout", "kind": "discrete", "values": [2, 1]}]},
            "rising numbers",
        ),
        (
            {
                "parameters": [
                    {"name": "dropout", "kind": "double", "min": 0, "max": 1,
                     "when": {"parameter": "learning_rate", "values": [1]}},
                    {"name": "learning_rate", "kind": "double", "min": 0.1, "max": 1},
                ]
            },
            "expected another parameter of kind",
        ),
    ],
)  # fmt: skip
def test_an_incoherent_section_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        plan_with({**SECTION, **change})


@pytest.mark.parametrize(
    ("section", "goal"),
    [({}, "maximize"), ({"metric": "val_auc"}, "maximize"), ({"metric": "val_loss"}, "minimize")],
    ids=["default", "auc", "loss"],
)
def test_the_goal_is_the_metric_s(section, goal):
    plan = plan_with({**SECTION, **section})
    assert plan.spec.tuning.goal == goal
    request = decision.decide(plan, [], None)
    (metric,) = requests.search_job(plan, request, plan.spec.tuning.parameters).custom_job["study_spec"]["metrics"]
    assert metric["goal"] == goal.upper()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metric": "val_loss", "goal": "maximize"}, "val_loss is better where it is lower; expected minimize"),
        ({"goal": "minimize"}, "val_auc is better where it is higher; expected maximize"),
        (
            {"metric": "val_acc"},
            r"tuning.metric names 'val_acc'; expected one of: val_loss, val_auc, .*val_pr_auc.*, loss\.",
        ),
        ({"metric": "val_calibration_error"}, "expected one of: val_loss, val_auc"),  # cannot decide
        ({"metric": "val_medae"}, "expected one of: val_loss, val_auc"),  # a number's
    ],
    ids=["loss-up", "auc-down", "unknown", "only-shown", "of-another-label"],
)
def test_a_metric_that_no_trial_reports_or_a_goal_against_it_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        plan_with({**SECTION, **change})


def test_with_several_classes_trials_report_accuracy():
    label = {"name": "late", "kind": "multiclass", "classes": 3}
    training = {"model": "dense", "hyperparameters": HYPERPARAMETERS}
    spec = make_spec(tuning={**SECTION, "metric": "val_accuracy"}, label=label, training=training)
    assert spec.tuning.goal == "maximize"


def test_metrics_are_those_that_the_trainer_reports():
    """Beside the loss what each epoch measures, and what it measures if a trial reports it."""
    labels: tuple[dict[str, Any], ...] = (
        {"name": "y", "kind": "binary"},
        {"name": "y", "kind": "binary", "costs": {"false_positive": 1, "false_negative": 10}},
        {"name": "y", "kind": "multiclass", "classes": 6},
        {"name": "y", "kind": "multiclass", "classes": 3, "costs": {"0": {"2": 5}}},
        {"name": "y", "kind": "regression", "min": 0, "loss": "quantile", "quantiles": [0.1, 0.5, 0.9]},
    )
    for label in labels:
        measured = (*OF_EPOCH[label["kind"]], *IF_ASKED[label["kind"]])
        costs = np.eye(2) if "costs" in label else None
        found = {f"val_{name}" for name in defined(measured, label.get("classes", math.inf), costs)}
        assert {"loss", "val_loss", *found} == set(reported_metrics(TypeAdapter(Label).validate_python(label)))


def test_a_quantile_label_alone_reports_pinball():
    training = {"model": "dense", "hyperparameters": HYPERPARAMETERS}
    tuning = {**SECTION, "metric": "val_late_minutes_pinball"}
    label = {"name": "late_minutes", "kind": "regression"}
    quantiles = {"loss": "quantile", "quantiles": [0.1, 0.5, 0.9]}
    spec = make_spec(tuning=tuning, auxiliary_labels=[{**label, **quantiles}], training=training)
    assert spec.tuning.goal == "minimize"
    with pytest.raises(ValueError, match="names 'val_late_minutes_pinball'"):
        make_spec(tuning=tuning, auxiliary_labels=[label], training=training)


@pytest.mark.parametrize(
    ("metric", "goal"),
    [
        ("loss", "minimize"),
        ("val_delay_9_r2", "maximize"),
        ("val_delay_9_mae", "minimize"),
        ("val_delay_9_smape", "minimize"),
        ("val_gone_auc", "maximize"),
    ],
)
def test_any_metric_that_is_reported_can_be_tuned_by(metric, goal):
    others = [{"name": "delay_9", "kind": "regression"}, {"name": "gone", "kind": "binary"}]
    training = {"model": "dense", "hyperparameters": HYPERPARAMETERS}
    spec = make_spec(tuning={**SECTION, "metric": metric}, auxiliary_labels=others, training=training)
    assert spec.tuning.goal == goal
    other = "maximize" if goal == "minimize" else "minimize"
    with pytest.raises(ValueError, match=f"{metric} is better"):
        make_spec(tuning={**SECTION, "metric": metric, "goal": other}, auxiliary_labels=others, training=training)
    if metric != "loss":
        with pytest.raises(ValueError, match=f"'{metric}'; expected one of: val_loss, "):
            make_spec(tuning={**SECTION, "metric": metric}, training=training)


def test_a_metric_of_ones_own_image_needs_its_goal():
    training = {"model": "dense", "hyperparameters": HYPERPARAMETERS, "runtime": {"image": "gcr.io/p/own:1"}}
    with pytest.raises(ValueError, match=r"'profit' .*say tuning\.goal"):
        make_spec(tuning={**SECTION, "metric": "profit"}, training=training)
    spec = make_spec(tuning={**SECTION, "metric": "profit", "goal": "minimize"}, training=training)
    assert (spec.tuning.metric, spec.tuning.goal) == ("profit", "minimize")


@pytest.mark.parametrize("model", SEARCH_SPACES)
def test_what_reads_tables_is_searched_without_parameters(model):
    """All of it is what the trainer takes, and what a trial is given goes over the recipe."""
    spec = make_spec(training={"model": model}, tuning={})
    assert spec.tuning.parameters == SEARCH_SPACES[model]
    require_trainable(spec, load_capabilities())
    plan = make_plan(spec)
    request = decision.decide(plan, [], None)
    assert (request.search, request.reason) == (True, "first")
    job = requests.search_job(plan, request, plan.spec.tuning.parameters).custom_job
    asked = {each["parameter_id"] for each in job["study_spec"]["parameters"]}
    assert asked == {parameter.name for parameter in SEARCH_SPACES[model]}
    name = spec.tuning.parameters[0].name
    chosen = planned_training(spec, {name: 0.25}).hyperparameters
    assert chosen == {**planned_training(spec).hyperparameters, name: 0.25}


def test_a_space_of_ones_own_goes_before_the_architecture_s():
    own = [{"name": "learning_rate", "kind": "double", "min": 0.05, "max": 0.1}]
    spec = make_spec(training={"model": "boosted_trees"}, tuning={"parameters": own})
    assert [parameter.name for parameter in spec.tuning.parameters] == ["learning_rate"]
    with pytest.raises(ValueError, match=r"names 'learning_rat'; expected one of: learning_rate, max_leaves.*Did you"):
        make_spec(training={"model": "boosted_trees"}, tuning={"parameters": [{**own[0], "name": "learning_rat"}]})


def test_an_architecture_without_a_space_says_what_can_be_searched():
    """And either way out is one: to name parameters, or to choose another architecture."""
    training = {"model": "linear", "hyperparameters": {"learning_rate": 0.01}}
    words = r"tuning.parameters is missing, and architecture 'linear' has no space.*one at least of: learning_rate\."
    with pytest.raises(ValueError, match=words):
        make_spec(training=training, tuning={})
    with pytest.raises(ValueError, match=r"choose one of: boosted_trees, deep_cross, dense, random_forest, wide_deep"):
        make_spec(training={"model": "linear"}, tuning={})
    assert make_spec(training=training, tuning={"parameters": SECTION["parameters"][:1]}).tuning
    assert make_spec(training={"model": "random_forest"}, tuning={}).tuning
