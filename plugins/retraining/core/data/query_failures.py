"""Why a statement on BigQuery failed, and what follows: somebody mends the SQL or the rights, or it is tried again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from retraining.core.errors import GRANT, DataError, JobError, RetrainingError, SettingsError

MAX_JOBS_PER_ID = 5
"""Jobs of one statement that may fail for BigQuery's own reasons."""

# https://cloud.google.com/bigquery/docs/error-messages: the others are the query's or its tables' own fault.
TRANSIENT_REASONS = frozenset(
    {
        "backendError",
        "internalError",
        "jobBackendError",
        "jobInternalError",
        "jobRateLimitExceeded",
        "quotaExceeded",
        "rateLimitExceeded",
        "stopped",
        "tableUnavailable",
        "timeout",
    }
)


_NOT_THERE = re.compile(r"was not found in location ([\w-]+)")
"""It may well be there, elsewhere: BigQuery looks in the statement's location alone."""


def is_lasting(result: Mapping[str, Any]) -> bool:
    """Tell whether another job of the statement would fail the same way."""
    return result.get("reason") not in TRANSIENT_REASONS


def query_failure(where: str, result: Mapping[str, Any]) -> RetrainingError:
    """Return what BigQuery's error means.

    Args:
        where: Which statement.
        result: `reason` and `message`, as BigQuery has them.
    """
    message, reason = str(result.get("message")), str(result.get("reason"))
    if reason in TRANSIENT_REASONS:
        way_out = "The task's next try runs another job"
        if reason == "quotaExceeded":
            way_out += ": wait until the quota is there again, or have it raised"
        return JobError(where, f"BigQuery did not finish the statement ({reason}): {message}", "its result", way_out)
    if reason == "bytesBilledLimitExceeded":
        way_out = "Read less: a partitioned source, fewer columns, a shorter data.window_days; or raise that setting"
        expected = "at most RETRAINING_MAX_BYTES_BILLED bytes"
        return DataError(where, f"BigQuery refuses the statement: {message}", expected, way_out)
    if reason == "accessDenied":
        return SettingsError(where, f"BigQuery refuses the statement: {message}", "an account that may do it", GRANT)
    way_out = "Correct the SQL or the table it names"
    if reason == "notFound":  # of our own statements: the dataset of run tables
        way_out = "Correct the SQL, RETRAINING_DATASET or RETRAINING_REGION, and clear plan and what follows it; or "
        way_out += "create what is missing and clear the task"
    if elsewhere := _NOT_THERE.search(message):
        way_out += (
            f". If it is there, it is in another location than {elsewhere[1]}, and a statement runs in one: copy its "
        )
        way_out += "dataset, or change RETRAINING_REGION with the bucket and the dataset of run tables"
    return DataError(where, f"BigQuery refuses the statement: {message}", "one that it runs", way_out)


def load_failure(where: str, result: Mapping[str, Any]) -> RetrainingError:
    """Return what BigQuery's error about a load of files means; `where` and `result` as for `query_failure`."""
    message, reason = str(result.get("message")), str(result.get("reason"))
    if reason in TRANSIENT_REASONS or reason == "accessDenied":
        return query_failure(where, result)
    return DataError(
        where,
        f"BigQuery refuses the files: {message}",
        "rows of data.files.columns",
        "Correct the files or data.files and start the run anew; or, where a file was half written, clear the task",
    )
