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


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("\x1b[1;31mBinder\x1b[0m \x9b31mError\x1b]0;title\x07:\r\n\tline 2\x00", "Binder Error:\n\tline 2"),
        ("postgres://ada:p@ss:word@db.example.com/x", "postgres://***@db.example.com/x"),
        (
            "https://:token@example.com and http://airflow:8080/a@b",
            "https://***@example.com and http://airflow:8080/a@b",
        ),
        ("gs://bucket/x?X-Goog-Signature=0a1b2c&y=1", "gs://bucket/x?X-Goog-Signature=***&y=1"),
        ('Authorization: Bearer ya29.a0Af_x-y and {"password": "p\'w", "user": "ada"}', None),
        ("-----BEGIN PRIVATE KEY-----\nMIIE\nabc\n-----END PRIVATE KEY----- after", "*** after"),
        ("\u202egpj.exe", "gpj.exe"),
        ("an ordinary message: 3 tokens, password too short; token bucket", None),
    ],
)
def test_a_message_has_no_escapes_and_no_secrets(given: str, shown: str | None):
    """It goes onto pages, into shells and mails."""
    text = errors.JobError("job", given).found
    if shown is not None:
        assert text == shown
    elif "Bearer" in given:
        assert "ya29.a" not in text
        assert "p'w" not in text
        assert "ada" in text
    else:
        assert text == given
