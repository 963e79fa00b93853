"""The recipe: monotone in the rows, within its bounds, and under what is written."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from retraining.core.jobs.recipe import (
    LARGEST_BATCH,
    MAX_EPOCHS,
    MIN_EPOCHS,
    MIN_STEPS,
    SMALLEST_BATCH,
    make_recipe,
    make_tree_recipe,
)

ROWS = (1, 20, 60, 344, 401, 1298, 1797, 6211, 10_000, 43_743, 60_000, 1_000_000, 30_000_000)


def steps_per_epoch(rows, recipe):
    return math.ceil(rows / recipe.batch_size)


@pytest.mark.parametrize("rows", ROWS)
def test_no_training_stops_before_it_has_learnt(rows):
    """5 epochs of whatever rows were 5 to 430 steps: the next seed was another model."""
    recipe = make_recipe(rows)
    steps = steps_per_epoch(rows, recipe)
    assert (recipe.patience + 1) * steps >= min(MIN_STEPS, MAX_EPOCHS * steps)
    assert recipe.epochs * steps >= min(10 * MIN_STEPS, MAX_EPOCHS * steps)


@pytest.mark.parametrize("rows", ROWS)
def test_every_number_is_within_its_bounds(rows):
    recipe = make_recipe(rows)
    assert SMALLEST_BATCH <= recipe.batch_size <= LARGEST_BATCH
    assert MIN_EPOCHS <= recipe.epochs <= MAX_EPOCHS
    assert 1 <= recipe.rate_patience < recipe.patience <= recipe.epochs


def test_more_rows_are_larger_batches_and_fewer_epochs():
    recipes = [make_recipe(10**power) for power in range(2, 9)]
    for smaller, larger in pairwise(recipes):
        assert smaller.batch_size <= larger.batch_size
        assert smaller.epochs >= larger.epochs
        assert smaller.patience >= larger.patience


def test_more_rows_need_fewer_networks_side_by_side():
    members = [make_recipe(10**power).hyperparameters["members"] for power in range(2, 9)]
    assert members == sorted(members, reverse=True)
    assert (members[0], members[-1]) == (8, 1)


def test_what_is_written_is_kept_and_the_rest_follows_from_it():
    rows = 400
    assert make_recipe(rows, batch_size=400).batch_size == 400
    assert make_recipe(rows, batch_size=400).patience > make_recipe(rows, batch_size=4).patience
    short = make_recipe(rows, epochs=3)
    assert (short.epochs, short.patience) == (3, 3)


def test_replicas_in_lockstep_take_more_epochs_for_as_many_steps():
    rows = 60_000
    assert make_recipe(rows, batches_per_step=8).epochs > make_recipe(rows).epochs


def test_trees_have_as_many_as_help_and_see_all_rows_at_once():
    recipe = make_tree_recipe(5000)
    training = recipe.as_training()
    assert recipe.batch_size == 5000
    assert 0 < recipe.patience < recipe.epochs
    assert training["callbacks"] == {"reduce_lr": None}
    assert make_tree_recipe(5000, epochs=30).epochs == make_tree_recipe(5000, epochs=30).patience == 30
    assert make_tree_recipe(0).batch_size == 1


def test_each_tree_sees_a_part():
    hyperparameters = make_tree_recipe(5000).hyperparameters
    assert hyperparameters["subsample"] < 1 > hyperparameters["column_share"]
