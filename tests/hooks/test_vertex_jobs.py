"""What ended a job, through the local cloud's own replicas; the rest of a job is in `ports`."""

from __future__ import annotations

import pytest

from retraining.core.jobs.failures import Failure
from retraining.core.jobs.outcomes import failure_of
from tests.support.scenes.port_stage import FOREVER, make_job, until


@pytest.mark.parametrize(
    ("code", "failure"), [("raise SystemExit(2)", Failure.USER), (FOREVER, Failure.CANCELLED)], ids=["exit 2", "cancel"]
)
def test_a_job_says_what_ended_it(cloud, unique, code: str, failure: Failure) -> None:
    """Status 2 is the user's fault; a cancelled job's replica is stopped."""
    name = cloud.jobs.create(make_job(code, owner=unique)).name
    if failure is Failure.CANCELLED:
        cloud.jobs.cancel(name)
    until(cloud, lambda: not cloud.jobs.get(name).active)
    assert failure_of(cloud.jobs.get(name)) is failure
