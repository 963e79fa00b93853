"""Pools of machines in memory: made at once to PROVISIONING, and then as the test says."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from retraining.core.documents.plan import Pool
from retraining.core.jobs.machine_pools import ERROR, RUNNING, STOPPING, OpenPool
from tests.support.fakes.jobs import FakeJobs
from tests.support.fakes.settings import ENVIRONMENT


class FakeMachinePools:
    """The service of persistent resources. `after_create` may raise.

    Args:
        jobs: Those on a pool are cancelled with it.
    """

    def __init__(self, jobs: FakeJobs) -> None:
        self._jobs = jobs
        self.pools: dict[str, OpenPool] = {}
        self.made: list[str] = []
        self.after_create = lambda: None

    def find(self, pool_id: str) -> OpenPool | None:
        """As the hook."""
        return self.pools.get(pool_id)

    def create(self, pool_id: str, resource: Mapping[str, Any]) -> None:
        """As the hook."""
        if pool_id in self.pools:
            return
        labels = {**resource["labels"], **ENVIRONMENT.labels}
        machines = tuple(_machines(each) for each in resource["resource_pools"])
        own = "resource_runtime_spec" in resource
        self.made.append(pool_id)
        self.pools[pool_id] = OpenPool(
            pool_id=pool_id, state="PROVISIONING", labels=labels, machines=machines, own_accounts=own
        )
        self.after_create()

    def delete(self, pool_id: str) -> None:
        """As the hook."""
        if pool_id in self.pools:
            self._become(pool_id, state=STOPPING)
        for job in [job for job in self._jobs.jobs.values() if job.pool_id == pool_id and job.active]:
            self._jobs.cancel(job.name)

    def find_all(self) -> list[OpenPool]:
        """As the hook."""
        return list(self.pools.values())

    def run(self, pool_id: str) -> None:
        """Let the machines be there."""
        self._become(pool_id, state=RUNNING)

    def fail(self, pool_id: str, error: str) -> None:
        """Let there be no machines."""
        self._become(pool_id, state=ERROR, error=error)

    def vanish(self, pool_id: str) -> None:
        """Let a deletion come to its end."""
        del self.pools[pool_id]

    def _become(self, pool_id: str, **changes: Any) -> None:
        self.pools[pool_id] = dataclasses.replace(self.pools[pool_id], **changes)


def _machines(pool: Mapping[str, Any]) -> Pool:
    machine, disk = pool["machine_spec"], pool["disk_spec"]
    accelerator = {"type": machine.get("accelerator_type"), "count": machine.get("accelerator_count")}
    return Pool.model_validate(
        {
            "machine": machine["machine_type"],
            "count": pool.get("autoscaling_spec", {}).get("max_replica_count") or pool["replica_count"],
            "accelerator": accelerator if "accelerator_type" in machine else None,
            "disk_gb": disk["boot_disk_size_gb"],
            "disk_type": disk["boot_disk_type"],
        }
    )
