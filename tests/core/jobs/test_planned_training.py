"""What a train request asks of the training: what is written, and the recipe by the run's rows for the rest."""

from __future__ import annotations

import pytest

from retraining.core.jobs import requests
from retraining.core.jobs.planned_training import planned_training, training_rows
from retraining.core.jobs.recipe import make_forest_recipe, make_recipe, make_tree_recipe
from retraining.core.spec.training import Training
from tests.support.small_model import make_plan, make_spec, make_statistics

NOTHING = {"model": "wide_deep"}


def asked(training, rows=80, hyperparameters=None, **spec):
    plan = make_plan(make_spec(training=training, **spec))
    statistics = make_statistics(plan, rows={"train": rows, "validation": 10, "test": 30})
    return planned_training(plan.spec, hyperparameters, statistics)


@pytest.mark.parametrize("rows", [80, 8000])
def test_where_nothing_is_written_the_rows_of_the_run_decide(rows):
    recipe = make_recipe(rows)
    training = asked(NOTHING, rows)
    assert (training.epochs, training.batch_size) == (recipe.epochs, recipe.batch_size)
    assert training.early_stopping_patience == recipe.patience
    assert training.callbacks.reduce_lr.patience == recipe.rate_patience
    assert training.hyperparameters == recipe.hyperparameters


def test_what_is_written_is_kept():
    written = {"epochs": 3, "batch_size": 64, "early_stopping_patience": 2, "hyperparameters": {"learning_rate": 0.1}}
    training = asked({**NOTHING, **written})
    assert training.model_dump(include={"epochs", "batch_size", "early_stopping_patience"}).items() <= written.items()
    assert training.hyperparameters["learning_rate"] == 0.1
    assert training.hyperparameters["hidden_units"] == make_recipe(80).hyperparameters["hidden_units"]


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ({"early_stopping_patience": 5}, None),
        ({"callbacks": {"reduce_lr": {"patience": 0}}}, None),
        ({"callbacks": {"reduce_lr": {"patience": 4, "factor": 0.2}}}, (4, 0.2)),
    ],
    ids=["its own patience", "never", "its own"],
)
def test_when_the_rate_falls_can_be_written_too(written, found):
    rate = asked({**NOTHING, **written}).callbacks.reduce_lr
    assert (rate and (rate.patience, rate.factor)) == found


def test_a_phone_gets_one_network():
    assert asked(NOTHING).hyperparameters["members"] > 1
    assert "members" not in asked({**NOTHING, "export_lite": ["int8"]}).hyperparameters


def test_an_ensemble_is_as_large_as_it_is_written():
    """Instead of the recipe's, also where the recipe knows nothing of the layers; a search's goes over it."""
    assert asked({**NOTHING, "ensemble": 3}).hyperparameters["members"] == 3
    assert asked({**NOTHING, "ensemble": "auto"}) == asked(NOTHING)
    for training in (NOTHING, {**NOTHING, "export_lite": ["int8"]}, {"model": "boosted_trees"}):
        assert "members" not in asked({**training, "ensemble": 1}).hyperparameters  # the trainer's default
    assert asked({**NOTHING, "ensemble": 3}, hyperparameters={"members": 2}).hyperparameters["members"] == 2
    before, after = (make_spec(training=NOTHING | changes) for changes in ({}, {"ensemble": "auto"}))
    assert before.model_dump_json() == after.model_dump_json()  # the run's key stays


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"hyperparameters": {"members": 2}}, "say the same thing"),
        ({"export_lite": ["float16"]}, "a phone has one network"),
        ({"runtime": {"image": "us-docker.pkg.dev/a/b/c:1", "models": "own"}}, "runtime.models is own"),
        ({"ensemble": 11}, "less than or equal to 10"),
        ({"ensemble": 0}, "greater than or equal to 1"),
    ],
    ids=["twice", "phone", "own", "many", "none"],
)
def test_an_ensemble_that_cannot_be_is_refused_by_name(written, words):
    with pytest.raises(ValueError, match=words):
        Training.model_validate({**NOTHING, "ensemble": 3, **written})


def test_a_search_chooses_over_the_recipe():
    training = asked(NOTHING, hyperparameters={"dropout": 0.5})
    assert training.hyperparameters["dropout"] == 0.5
    assert "learning_rate" in training.hyperparameters


def test_trials_and_the_training_after_them_have_the_same_recipe():
    plan = make_plan(make_spec(training=NOTHING))
    statistics = make_statistics(plan)
    trained = requests.training_job(plan, statistics=statistics).request.training
    tried = requests.train_request(plan, "gs://b/x", trial_metric="val_auc", statistics=statistics).training
    assert tried == trained


OWN = {"image": "host/own:1", "models": "own"}
SERVED = {"container": {"image": "host/own:1", "predict_route": "/predict", "health_route": "/health"}}


@pytest.mark.parametrize(
    ("training", "others"),
    [
        ({"model": "dense", "runtime": OWN}, {"deployment": SERVED}),
        ({"model": "own_layers"}, {}),
    ],
    ids=["another framework", "an architecture of a package"],
)
def test_layers_of_others_are_left_to_them(training, others):
    found = asked(training, **others)
    assert found.hyperparameters == {}
    assert found.epochs > 5


def test_without_statistics_it_is_as_few_rows_as_the_checks_let_pass():
    spec = make_spec(training=NOTHING)
    assert training_rows(spec) == spec.data.checks.min_rows


def test_steps_are_counted_over_machines_in_lockstep():
    machine = {"machine": "n1-standard-4"}
    alone = {"tier": "CUSTOM", "chief": machine}
    spread = {**alone, "workers": {**machine, "count": 7}}
    one, eight = (asked({**NOTHING, "cluster": cluster}, 60_000) for cluster in (alone, spread))
    assert eight.epochs > one.epochs


def test_trees_get_a_recipe_of_their_own():
    training = planned_training(make_spec(training={"model": "boosted_trees", "hyperparameters": {"max_leaves": 7}}))
    recipe = make_tree_recipe(training.batch_size)
    assert training.hyperparameters == {**recipe.hyperparameters, "max_leaves": 7}
    assert (training.epochs, training.early_stopping_patience) == (recipe.epochs, recipe.patience)
    assert training.callbacks.reduce_lr is None


def test_a_random_forest_has_all_its_trees_and_larger_leaves_of_many_rows():
    training = asked({"model": "random_forest", "epochs": 40})
    assert (training.epochs, training.early_stopping_patience) == (40, 0)
    few, many = (make_forest_recipe(rows) for rows in (100_000, 1_000_000))
    assert asked({"model": "random_forest"}).hyperparameters == few.hyperparameters
    assert few.hyperparameters["min_examples"] < many.hyperparameters["min_examples"]


def test_a_linear_model_gets_a_rate_and_no_layers():
    training = asked({"model": "linear"})
    assert set(training.hyperparameters) == {"learning_rate"}
    assert training.epochs == make_recipe(80).epochs
    assert asked({"model": "cnn"}).hyperparameters == {}
