"""The table of docs/operations.md says of each wait what the code does."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from retraining.core.jobs import chains, claims, failures, machine_pools
from retraining.core.notification import once
from retraining.core.promotion import rollouts, smoke_tests
from retraining.core.retention import jobs_and_tables
from trainer.errors import OUTAGE_S

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "operations.md").read_text(encoding="utf-8")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


@pytest.mark.parametrize(
    ("wait", "limit", "said"),
    [
        ("machines of a deployment", rollouts.MACHINES_COME_WITHIN, "2 hours"),
        ("a service that does not answer during a rollout", rollouts.OUTAGE_LASTS, "2 hours"),
        ("a version that alone does not answer during one", rollouts.ANSWERS_WITHIN, "20 minutes"),
        ("requests to the new version in a smoke test", smoke_tests.ASK_FOR, "10 minutes"),
        ("a deployment whose process died before it had an answer", rollouts.CLAIM, "2 minutes"),
        ("a rollout that nobody goes on with", rollouts.SILENT, "2 hours"),
        ("a create of a job without an answer", claims.SETTLED_AFTER, "5 minutes"),
        ("a machine of [chained jobs](#chained-jobs)", timedelta(seconds=chains.WAIT_S), "15 minutes"),
        ("machines or quota for a job", failures.LONGEST_PAUSE, "15 minutes"),
        ("a job for Cloud Storage", timedelta(seconds=OUTAGE_S), "10 minutes"),
        ("a job that nobody looks at", jobs_and_tables.SILENT, "24 hours"),
        ("a message that a task is about to send", once.CLAIM_LASTS, "10 minutes"),
    ],
)
def test_a_row_has_the_limit_of_the_code(wait: str, limit: timedelta, said: str) -> None:
    number, unit = said.split()
    assert limit == int(number) * (HOUR if unit == "hours" else MINUTE)
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {wait}")]
    assert said in row.split("|")[2]


def test_counts_are_the_codes_too() -> None:
    assert f"{failures.MAX_SERVICE_FAILURES} jobs without" in PAGE
    assert rollouts.SILENT_POKES == 3
    assert "or three sleeps" in PAGE
    assert machine_pools.LEFT_AFTER == HOUR
    assert "`maintain` deletes it an hour after its end" in PAGE
