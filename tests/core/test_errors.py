"""Messages in four parts."""

from __future__ import annotations

import pickle

import pytest

from retraining.core import errors


def test_a_message_says_where_what_expected_and_the_way_out():
    error = errors.SpecError("late.yaml, line 3", "unknown key 'x'", "one of: a, b", "Did you mean 'a'?")
    assert str(error) == "late.yaml, line 3: unknown key 'x'. Expected one of: a, b. Did you mean 'a'?"


def test_parts_may_be_missing():
    assert str(errors.JobError("job 1", "it ended")) == "job 1: it ended."


@pytest.mark.parametrize(
    "kind",
    [
        errors.SettingsError,
        errors.SpecError,
        errors.PlanError,
        errors.DataError,
        errors.ContractError,
        errors.JobError,
        errors.RunError,
        errors.ConflictError,
    ],
)
def test_every_error_is_one_of_the_tree_and_survives_a_process_border(kind):
    error = kind("here", "this", "that", "Do so")
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert isinstance(copy, errors.RetrainingError)
    assert str(copy) == str(error)
    assert copy.way_out == "Do so"
