"""Where a job runs: on the machines of an open pool, or on its own, and why."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retraining.core.catalog.cost import load_prices
from retraining.core.documents.plan import Pool
from retraining.core.jobs import machine_pools, outcomes
from retraining.core.jobs.failures import Failure
from retraining.core.jobs.machine_pools import OpenPool
from retraining.core.jobs.requests import JobRequest
from retraining.core.settings import include_path
from tests.support.small_job import job
from tests.support.small_pool import make_pool

OPENED = datetime(2026, 1, 1, 1, tzinfo=UTC)
NOW = OPENED + timedelta(hours=1)
OPEN = OpenPool(
    pool_id="retraining-nightly-prod",
    state="RUNNING",
    labels=machine_pools.pool_labels(make_pool(), OPENED),
    machines=(Pool(machine="n1-standard-4", count=2),),
)


def custom_job(*, count: int = 1, spot: bool = False, **machine: Any) -> dict[str, Any]:
    """A job with a chief, and workers."""
    pool = {
        "machine_spec": {"machine_type": "n1-standard-4", **machine},
        "disk_spec": {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 100},
        "container_spec": {},
    }
    pools = [{**pool, "replica_count": 1}, *([{**pool, "replica_count": count - 1}] if count > 1 else [])]
    scheduling = {"timeout": "60s", **({"strategy": "SPOT"} if spot else {})}
    return {"display_name": "late", "job_spec": {"worker_pool_specs": pools, "scheduling": scheduling}}


def test_a_job_runs_on_an_open_pool_and_on_no_spot_machines() -> None:
    """Its machines are there already."""
    asked = custom_job(count=2, spot=True)
    placed, words = machine_pools.place(asked, OPEN, (), NOW)
    assert placed["job_spec"]["persistent_resource_id"] == "retraining-nightly-prod"
    assert placed["job_spec"]["scheduling"] == {"timeout": "60s"}
    assert words == "on the machines of retraining-nightly-prod"
    assert asked == custom_job(count=2, spot=True)


def test_on_a_pool_nothing_is_waited_for_or_reserved() -> None:
    """Its machines are there, and others'."""
    asked = custom_job(reservation_affinity={"reservation_affinity_type": "ANY_RESERVATION"})
    asked["job_spec"]["scheduling"] |= {"strategy": "FLEX_START", "max_wait_duration": "60s"}
    placed, _ = machine_pools.place(asked, OPEN, (), NOW)
    assert placed["job_spec"]["scheduling"] == {"timeout": "60s"}
    assert placed["job_spec"]["worker_pool_specs"] == custom_job()["job_spec"]["worker_pool_specs"]


@pytest.mark.parametrize(
    ("asked", "pool", "failures", "hours", "why"),
    [
        (custom_job(), None, (), 1, "not open"),
        (custom_job(), replace(OPEN, state="PROVISIONING"), (), 1, "PROVISIONING"),
        (custom_job(), replace(OPEN, state="ERROR", error="stockout"), (), 1, "ERROR"),
        (custom_job(), OPEN, (), 3, "closing"),
        (custom_job(), replace(OPEN, labels={}), (), 1, "closing"),
        (custom_job(), replace(OPEN, labels={"retraining-closes": "soon"}), (), 1, "closing"),
        (custom_job(), OPEN, (Failure.PREEMPTED,), 1, "preempted"),
        (custom_job(), replace(OPEN, own_accounts=True), (), 1, "service accounts"),
        (custom_job(count=3), OPEN, (), 1, "not as many"),
        (custom_job(machine_type="n1-standard-8"), OPEN, (), 1, "no such machines"),
        (custom_job(accelerator_type="NVIDIA_L4", accelerator_count=1), OPEN, (), 1, "no such machines"),
        ({"trial_job_spec": {}, "study_spec": {}}, OPEN, (), 1, "trials of a study"),
    ],
)
def test_otherwise_it_has_machines_of_its_own(asked, pool, failures, hours, why) -> None:
    """As it was asked for, spot machines too; and the log says why."""
    placed, words = machine_pools.place(asked, pool, failures, OPENED + timedelta(hours=hours))
    assert placed == asked
    assert why in words


def test_a_job_with_an_account_needs_a_pool_with_accounts() -> None:
    asked = custom_job()
    asked["job_spec"]["service_account"] = "late@p.iam.gserviceaccount.com"
    assert "persistent_resource_id" not in machine_pools.place(asked, OPEN, (), NOW)[0]["job_spec"]
    with_accounts = replace(OPEN, own_accounts=True)
    assert "persistent_resource_id" in machine_pools.place(asked, with_accounts, (), NOW)[0]["job_spec"]


def test_a_job_that_ends_with_its_pool_was_not_cancelled_by_anybody() -> None:
    """It counts as one whose machines were taken away: others follow whatever the task's `retries`."""
    assert outcomes.failure_of(job("1", "CANCELLED", pool_id="nightly")) is Failure.PREEMPTED
    assert outcomes.failure_of(job("1", "CANCELLED")) is Failure.CANCELLED
    late = job("1", "CANCELLED", pool_id="nightly", error_message="The job ran longer than its timeout of 60 s")
    assert outcomes.failure_of(late) is Failure.EXPIRED, "else five are paid, each until its timeout"
    assert outcomes.may_retry(JobRequest(custom_job={}), [Failure.PREEMPTED], 0)


def test_ids_are_ones_of_the_service_and_each_is_another() -> None:
    """Also of environments whose names are long, or differ in what no id has."""
    environments = ["prod", "my-project", "my_project", "x" * 63, "x" * 62 + "y", "ends-"]
    made = [machine_pools.pool_id(environment, "nightly") for environment in environments]
    assert len(set(made)) == len(made)
    assert made[0] == "retraining-nightly-prod"
    assert all(re.fullmatch("[a-z]([a-z0-9-]{0,61}[a-z0-9])?", each) for each in made)


def test_the_price_is_said_from_an_idle_to_a_full_pool() -> None:
    (line,) = machine_pools.price_lines(make_pool(), load_prices(include_path()), "us-central1")
    rates = [float(word) for word in line.split() if word.replace(".", "").isdigit()]
    least, most, idle, whole = rates
    assert most == pytest.approx(2 * least, abs=0.02)
    assert idle == pytest.approx(3 * least, abs=0.02)
    assert whole == pytest.approx(4 * most, abs=0.03)
    assert "not known" in machine_pools.price_lines(make_pool(), load_prices(include_path()), "moon-east1")[0]
    assert "not known" in machine_pools.price_lines(make_pool(), None, "us-central1")[0]
