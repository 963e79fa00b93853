"""What BigQuery's errors mean."""

from __future__ import annotations

import pytest

from retraining.core.data.query_failures import is_lasting, query_failure
from retraining.core.errors import DataError, JobError, SettingsError


@pytest.mark.parametrize(
    ("reason", "kind", "message"),
    [
        ("backendError", JobError, "The task's next try runs another job"),
        ("quotaExceeded", JobError, "wait until the quota is there again"),
        ("bytesBilledLimitExceeded", DataError, "at most RETRAINING_MAX_BYTES_BILLED bytes"),
        ("accessDenied", SettingsError, "the role with the permission"),
        ("notFound", DataError, "clear plan and what follows it"),
        ("invalidQuery", DataError, "Correct the SQL or the table it names."),
    ],
)
def test_who_must_mend_what(reason, kind, message):
    failure = query_failure("fingerprint", {"reason": reason, "message": "no"})
    assert type(failure) is kind
    assert message in str(failure)
    assert is_lasting({"reason": reason}) is (kind is not JobError)


def test_a_table_of_another_location_is_told_as_that():
    """BigQuery looks in the statement's location alone, and says no more than that it found nothing."""
    message = "Not found: Dataset shop:orders was not found in location us-central1"
    error = query_failure("q.sql", {"reason": "notFound", "message": message})
    assert "Correct the SQL" in str(error)
    assert "it is in another location than us-central1" in str(error)
    assert "another location" not in str(
        query_failure("q.sql", {"reason": "notFound", "message": "Not found: Table t"})
    )
