"""Whether a job runs on the machines of an open pool, or on its own.

A pool is a persistent resource of Vertex AI: https://cloud.google.com/vertex-ai/docs/training/persistent-resource-train.
It says by its labels when it takes no more jobs. Nothing of a run depends on it: what it trains is the same, and where
the pool is not there, is closing, or has failed one of the task's jobs, the next job has machines of its own.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from retraining.core.catalog.cost import Prices, pool_hourly
from retraining.core.catalog.machine_pools import has_room, machines_of
from retraining.core.documents.plan import Pool
from retraining.core.jobs.failures import Failure
from retraining.core.spec.machine_pool import MachinePool, PoolMachines
from retraining.core.untyped import ProtoJson

POOL_LABEL = "retraining-pool"
CLOSES_LABEL = "retraining-closes"
"""Of a pool: the second of the Unix clock from which it takes no jobs."""
DRAINS_LABEL = "retraining-drains"
"""Of a pool: the second until which what runs on it is waited for."""
_ID_CHARACTERS = 63
RUNNING, STOPPING, ERROR = "RUNNING", "STOPPING", "ERROR"
LEFT_AFTER = timedelta(hours=1)
"""After its end, a pool that is still there has been left behind."""


@dataclass(frozen=True, kw_only=True)
class OpenPool:
    """A pool as the service tells of it.

    Attributes:
        pool_id: Its id, which jobs name.
        state: `PROVISIONING`, `RUNNING`, `STOPPING`, `ERROR` …
        error: Why it never ran; empty: no error.
        labels: What it carries.
        machines: What it is made of: of each kind as many as it may have.
        own_accounts: Whether its jobs run as accounts of their own; else as Vertex AI's.
    """

    pool_id: str
    state: str
    labels: Mapping[str, str] = field(default_factory=dict)
    error: str = ""
    machines: tuple[Pool, ...] = ()
    own_accounts: bool = False

    @property
    def closes(self) -> datetime | None:
        """When it takes no more jobs; None: its labels do not say."""
        return _time_of(self.labels.get(CLOSES_LABEL, ""))

    @property
    def ends(self) -> datetime | None:
        """When what still runs on it is cancelled; None: its labels do not say."""
        return _time_of(self.labels.get(DRAINS_LABEL, ""))


def pool_id(environment: str, pool: str) -> str:
    """Return the id of an environment's pool: at most 63 small letters, digits and dashes, another one for each."""
    whole = f"retraining-{pool}-{environment}"
    plain = whole.replace("_", "-")
    if plain == whole and len(whole) <= _ID_CHARACTERS and not whole.endswith("-"):
        return whole
    short = hashlib.sha256(whole.encode()).hexdigest()[:10]
    return f"{plain[: _ID_CHARACTERS - 11].rstrip('-')}-{short}"


def pool_labels(pool: MachinePool, opened: datetime) -> dict[str, str]:
    """Return what a pool carries that opens at a time."""
    closes = opened + timedelta(hours=pool.hours)
    ends = closes + timedelta(hours=pool.drain_hours)
    return {
        POOL_LABEL: pool.name,
        CLOSES_LABEL: str(int(closes.timestamp())),
        DRAINS_LABEL: str(int(ends.timestamp())),
    }


def pool_request(pool: MachinePool, labels: Mapping[str, str], *, own_accounts: bool) -> ProtoJson:
    """Return `aiplatform_v1.PersistentResource` in proto-JSON with snake_case names.

    Args:
        pool: What is wanted.
        labels: What it carries.
        own_accounts: Whether its jobs name a service account; the service lets a pool have either kind alone.
    """
    spec: ProtoJson = {"service_account_spec": {"enable_custom_service_account": True}} if own_accounts else {}
    return {
        "display_name": pool.name,
        "labels": dict(labels),
        "resource_pools": [_resource_pool(each) for each in pool.machines],
        **({"resource_runtime_spec": spec} if spec else {}),
    }


def _resource_pool(machines: PoolMachines) -> ProtoJson:
    machine: ProtoJson = {"machine_type": machines.machine}
    if machines.accelerator:
        machine |= {"accelerator_type": machines.accelerator.type, "accelerator_count": machines.accelerator.count}
    scaling = {"min_replica_count": machines.min, "max_replica_count": machines.max}
    return {
        "machine_spec": machine,
        "replica_count": machines.min,
        "disk_spec": {"boot_disk_type": machines.disk_type, "boot_disk_size_gb": machines.disk_gb},
        **({"autoscaling_spec": scaling} if machines.max > machines.min else {}),
    }


def place(
    custom_job: Mapping[str, Any], pool: OpenPool | None, failures: Sequence[Failure], now: datetime
) -> tuple[ProtoJson, str]:
    """Return the job as it is created, and where it runs, in words.

    Args:
        custom_job: Of machines of its own.
        pool: That the model names; None: it is not there.
        failures: Of the task's jobs before: after any the next one has machines of its own.
        now: The time.
    """
    job: ProtoJson = copy.deepcopy(dict(custom_job))
    if pool is None:
        return job, "on machines of its own: the pool is not open"
    if why := _reason_to_stand_alone(job, pool, failures, now):
        return job, f"on machines of its own: {why}"
    job["job_spec"]["persistent_resource_id"] = pool.pool_id
    for key in ("strategy", "max_wait_duration"):  # its machines are there: neither spot machines nor to be waited for
        job["job_spec"].get("scheduling", {}).pop(key, None)
    for each in job["job_spec"]["worker_pool_specs"]:
        each.get("machine_spec", {}).pop("reservation_affinity", None)
    return job, f"on the machines of {pool.pool_id}"


def _reason_to_stand_alone(job: ProtoJson, pool: OpenPool, failures: Sequence[Failure], now: datetime) -> str | None:
    if "job_spec" not in job:
        return "trials of a study and batch predictions have their own"
    if pool.state != RUNNING:
        return f"the pool is {pool.state}"
    if pool.closes is None or pool.closes <= now:
        return "the pool is closing"
    if failures:
        return f"a job of this task ended: {failures[-1]}"
    if pool.own_accounts != ("service_account" in job["job_spec"]):
        return "the pool runs jobs of " + ("service accounts" if pool.own_accounts else "Vertex AI's own account")
    wanted = [_pool_of(each) for each in job["job_spec"]["worker_pool_specs"] if each]
    return None if has_room(wanted, pool.machines) else "the pool has no such machines, or not as many"


def _pool_of(worker_pool: ProtoJson) -> Pool:
    """Return a worker pool, or a resource pool, of proto-JSON as a value."""
    machine, disk = worker_pool["machine_spec"], worker_pool.get("disk_spec", {})
    accelerator = {"type": machine.get("accelerator_type"), "count": machine.get("accelerator_count")}
    return Pool.model_validate(
        {
            "machine": machine["machine_type"],
            "count": worker_pool["replica_count"],
            "accelerator": accelerator if "accelerator_type" in machine else None,
            "tpu_topology": machine.get("tpu_topology"),
            "disk_gb": disk["boot_disk_size_gb"],
            "disk_type": disk["boot_disk_type"],
        }
    )


def price_lines(pool: MachinePool, prices: Prices | None, region: str) -> list[str]:
    """Return what an opening of a pool costs at list prices, with its least and its most machines, for a log."""
    least, most = (_hourly(pool, count, prices, region) for count in ("min", "max"))
    if least is None or most is None:
        return ["what it costs is not known: include/prices has no price of its machines in this region"]
    idle, whole = least * pool.hours, most * (pool.hours + pool.drain_hours)
    per_hour = f"{least:.2f}" if least == most else f"{least:.2f} to {most:.2f}"
    return [f"at list prices {per_hour} USD an hour: {idle:.2f} USD if no job comes, at most {whole:.2f} USD"]


def _hourly(pool: MachinePool, count: Literal["min", "max"], prices: Prices | None, region: str) -> float | None:
    """Return what an hour of all its machines costs; None: a price is not known."""
    if prices is None:
        return None
    parts = [pool_hourly(prices, each, region) for each in machines_of(pool, count)]
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _time_of(label: str) -> datetime | None:
    return datetime.fromtimestamp(int(label), UTC) if label.isdecimal() and len(label) <= 11 else None
