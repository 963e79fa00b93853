"""A pool of one machine: jobs on it, two of them at once, and what becomes of them when it is deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from retraining.commands.trial.jobs import DISK_GB, MACHINE, job_request, machine_that_runs, wait_for_job
from retraining.commands.trial.probes import LABEL, MODEL, Probe, Trial
from retraining.commands.trial.record import Fact
from retraining.core.jobs.job import CANCELLED, FAILED, SUCCEEDED, Job
from retraining.core.jobs.machine_pools import RUNNING, OpenPool, pool_id
from retraining.core.untyped import ProtoJson

MADE_WITHIN = timedelta(minutes=25)
GONE_WITHIN = timedelta(minutes=20)
WORKED = timedelta(seconds=40)
"""Of the first job, while which the second one comes."""
LASTING = timedelta(minutes=15)
"""Of the job that the pool is deleted under: its timeout too."""
REFUSALS = ("FailedPrecondition", "InvalidArgument", "NotFound")
"""Classes of what is refused with 400 or 404."""
POOL = MODEL
"""What it is called: no pool of include/pools, for their names have no underscore."""


@dataclass(kw_only=True)
class PoolProbes:
    """Rows POOL-1 to POOL-5.

    Attributes:
        trial: The trial.
        made: Jobs by what they are for.
        deletion: The class of the refusal to delete the pool; None: it was begun.
    """

    trial: Trial
    made: dict[str, Job] = field(default_factory=dict)
    deletion: str | None = None

    def probes(self) -> Sequence[Probe]:
        """Return them; the first has the pool made, the third has it deleted."""
        return (
            Probe(
                id="POOL-1",
                asked="a job on a pool of the same machine and disk",
                supposed={"the pool": RUNNING, "the job is on it": True},
                ask=self.open,
            ),
            Probe(
                id="POOL-2",
                asked="another job comes while the pool's only machine works",
                supposed={"both": SUCCEEDED, "one after the other": True},
                ask=self.queue,
            ),
            Probe(
                id="POOL-5",
                asked="a job for a pool that is being deleted",
                supposed={"refused": True},
                ask=self.come_late,
            ),
            Probe(
                id="POOL-3",
                asked="the job that ran when its pool was deleted",
                supposed={"the deletion was refused": None, "it ended": True, "the pool is gone": True},
                ask=self.lose_machines,
            ),
            Probe(
                id="POOL-4",
                asked="a pool is created twice, by an id that another had",
                supposed={"once the other is gone": None, "again": "AlreadyExists"},
                ask=self.create_again,
            ),
        )

    def open(self) -> Mapping[str, Fact]:
        """Create the pool, and a job on it once it is there."""
        self.trial.cloud.machine_pools.create(pool_of(self.trial), self._resource())

        def there() -> OpenPool | None:
            found = self._find()
            if found is not None and found.error:
                raise RuntimeError(found.error)
            return found if found is not None and found.state == RUNNING else None

        found = self.trial.wait("pool", there, MADE_WITHIN)
        job = self._create("first", WORKED)
        return {"the pool": found.state, "the job is on it": job.pool_id == found.pool_id}

    def queue(self) -> Mapping[str, Fact]:
        """Create the second job at once, and wait for both."""
        self._create("second", timedelta(seconds=1))
        first, second = (wait_for_job(self.trial, self.made[name].name, LASTING) for name in ("first", "second"))
        states = {first.state, second.state}
        in_turn = None not in (first.ended, second.ended) and first.ended < second.ended  # type: ignore[operator]
        return {"both": ", ".join(sorted(states)), "one after the other": in_turn}

    def come_late(self) -> Mapping[str, Fact]:
        """Delete the pool while a job works on it, and ask for another one."""
        self._create("lasting", LASTING)

        def works() -> bool:
            return self.trial.cloud.jobs.get(self.made["lasting"].name).started is not None

        self.trial.wait("job on the pool", works, LASTING)
        self.deletion = self.trial.calls.pools.delete_refused(pool_of(self.trial))
        late = self._request("late", timedelta(seconds=1))
        return {"refused": self.trial.calls.jobs.create_refused(late) in REFUSALS}

    def lose_machines(self) -> Mapping[str, Fact]:
        """Wait until the job has ended, then until the pool is gone."""
        ended = wait_for_job(self.trial, self.made["lasting"].name, GONE_WITHIN)
        return {
            "the deletion was refused": self.deletion,
            "it ended": ended.state in (CANCELLED, FAILED),
            "the pool is gone": self.trial.comes("pool is gone", lambda: self._find() is None, GONE_WITHIN),
        }

    def create_again(self) -> Mapping[str, Fact]:
        """Create the pool by the same id, and once more."""
        pools = self.trial.calls.pools
        first = pools.create_refused(pool_of(self.trial), self._resource())
        again = pools.create_refused(pool_of(self.trial), self._resource())
        return {"once the other is gone": first, "again": again}

    def _find(self) -> OpenPool | None:
        return self.trial.cloud.machine_pools.find(pool_of(self.trial))

    def _create(self, name: str, seconds: timedelta) -> Job:
        self.made[name] = self.trial.cloud.jobs.create(self._request(name, seconds))
        return self.made[name]

    def _request(self, name: str, seconds: timedelta) -> ProtoJson:
        pool = machine_that_runs(self.trial, "trial_sleep.py.j2", [f"{seconds.total_seconds():.0f}"])
        job = job_request(self.trial, f"pool-{name}", [pool], LASTING)
        job["job_spec"]["persistent_resource_id"] = pool_of(self.trial)
        return job

    def _resource(self) -> ProtoJson:
        own: ProtoJson = {"service_account_spec": {"enable_custom_service_account": True}}
        return {
            "display_name": POOL,
            "labels": {LABEL: self.trial.number},
            "resource_pools": [
                {
                    "machine_spec": {"machine_type": MACHINE},
                    "replica_count": 1,
                    "disk_spec": {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": DISK_GB},
                }
            ],
            **({"resource_runtime_spec": own} if self.trial.cloud.settings.service_account else {}),
        }


def pool_of(trial: Trial) -> str:
    """Return the id of a trial's pool."""
    return pool_id(trial.calls.session.environment.label, POOL)
