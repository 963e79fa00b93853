"""The light check of cron expressions."""

from __future__ import annotations

import pytest

from retraining.core.cron import check_cron


@pytest.mark.parametrize(
    "expression", ["0 3 * * *", "*/5 0-6 1,15 jan-mar mon", "30 2 * * 7", "@daily", "5-50/15 * * * *", "0 0 1 12 SUN"]
)
def test_what_airflow_takes_is_taken(expression):
    assert check_cron(expression) == expression


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("0 3 * *", "has 4 fields"),
        ("60 3 * * *", "'60' is no minute: expected 0 to 59"),
        ("0 24 * * *", "'24' is no hour"),
        ("0 0 0 * *", "'0' is no day of month"),
        ("0 0 * mai *", "'mai' is no month"),
        ("0 9-3 * * *", "runs backwards in the hour field"),
        ("*/0 * * * *", "steps by 0"),
        ("*-3 * * * *", r"\* cannot begin a range"),
        ("0 3 * * ?", "is no day of week"),
        ("@nightly", "has 1 fields"),
    ],
)
def test_a_typing_error_is_named_with_its_field(expression, words):
    with pytest.raises(ValueError, match=words):
        check_cron(expression)
