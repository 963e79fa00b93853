"""A job of Vertex AI as the service tells of it, and whose it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from retraining.core.catalog.amounts import MachineGroup
from retraining.core.naming import vertex
from retraining.core.naming.vertex import BATCH_JOBS, TUNING_JOBS, ResourceName

ACTIVE_STATES = frozenset(
    {
        "JOB_STATE_QUEUED",
        "JOB_STATE_PENDING",
        "JOB_STATE_RUNNING",
        "JOB_STATE_PAUSED",
        "JOB_STATE_UPDATING",
        "JOB_STATE_CANCELLING",
        "JOB_STATE_UNSPECIFIED",
    }
)
SUCCEEDED, FAILED, CANCELLED, EXPIRED = (
    "JOB_STATE_SUCCEEDED",
    "JOB_STATE_FAILED",
    "JOB_STATE_CANCELLED",
    "JOB_STATE_EXPIRED",
)
CANCELLING = "JOB_STATE_CANCELLING"
PARTIALLY_SUCCEEDED = "JOB_STATE_PARTIALLY_SUCCEEDED"
"""Of a batch prediction some of whose rows have no answer: it has ended, and another one would answer the same."""
ENDED_STATES = (SUCCEEDED, FAILED, CANCELLED, EXPIRED)


class JobType(StrEnum):
    """The resources that run a job; a tuning job runs one custom job per trial."""

    CUSTOM = "custom_job"
    TUNING = "hyperparameter_tuning_job"
    BATCH = "batch_prediction_job"

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> JobType:
        """Return the type of a job in proto-JSON."""
        if "input_config" in job:
            return cls.BATCH
        return cls.TUNING if "study_spec" in job else cls.CUSTOM

    @property
    def message(self) -> str:
        """Name of its message."""
        return "".join(part.capitalize() for part in self.split("_"))

    @classmethod
    def of_name(cls, name: str) -> JobType:
        """Return the type of a job by its resource name."""
        collections = {TUNING_JOBS: cls.TUNING, BATCH_JOBS: cls.BATCH}
        return collections.get(ResourceName.parse(name).collection, cls.CUSTOM)


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job as the service sees it.

    `spot`: on spot machines. `error_code` is a google.rpc.Code, 0 for none. `folder_uri` is its base output directory.
    `output_table` and `output_folder` are a batch prediction's, as `project.dataset.table` and `gs://…`. `pool_id`
    is of the pool whose machines it runs on. `machines` are all that it may have at once. `lines_from` is when its own
    lines begin, in the log of a job that did another task's work before; None: they are all its own.
    """

    name: str
    state: str
    labels: dict[str, str]
    created: datetime | None
    started: datetime | None = None
    ended: datetime | None = None
    spot: bool = False
    error_code: int = 0
    error_message: str = ""
    folder_uri: str = ""
    output_table: str = ""
    output_folder: str = ""
    pool_id: str = ""
    machines: tuple[MachineGroup, ...] = ()
    lines_from: datetime | None = None

    @property
    def job_id(self) -> str:
        """Last part of the name."""
        return ResourceName.parse(self.name).resource_id

    @property
    def seconds(self) -> float | None:
        """How long its machines worked; None before it ended."""
        return (self.ended - self.started).total_seconds() if self.started and self.ended else None

    @property
    def succeeded(self) -> bool:
        """Whether it left what it could: a further job would leave the same."""
        return self.state in (SUCCEEDED, PARTIALLY_SUCCEEDED)

    @property
    def active(self) -> bool:
        """Whether it may still do something, and cost."""
        return self.state in ACTIVE_STATES


def machines_of(job: Mapping[str, Any]) -> tuple[MachineGroup, ...]:
    """Return all machines that a job in proto-JSON may have at once: of a search those of all parallel trials."""
    if "input_config" in job:
        resources = job.get("dedicated_resources", {})
        count = int(resources.get("max_replica_count") or resources.get("starting_replica_count") or 1)
        return _group(resources.get("machine_spec", {}), count)
    trials = int(job.get("parallel_trial_count") or 1) if "study_spec" in job else 1
    spec = job.get("trial_job_spec" if "study_spec" in job else "job_spec", {})
    pools = [(pool.get("machine_spec", {}), int(pool.get("replica_count") or 0)) for pool in spec.get(_POOLS, ())]
    return tuple(group for machine, count in pools for group in _group(machine, count * trials))


_POOLS = "worker_pool_specs"


def _group(machine: Mapping[str, Any], count: int) -> tuple[MachineGroup, ...]:
    if not machine.get("machine_type") or not count:
        return ()
    group = MachineGroup(
        machine=machine["machine_type"],
        count=count,
        accelerator=machine.get("accelerator_type", ""),
        accelerators=int(machine.get("accelerator_count") or 0),
        tpu_topology=machine.get("tpu_topology", ""),
    )
    return (group,)


@dataclass(frozen=True, kw_only=True)
class JobIdentity:
    """A task instance's claim on its jobs.

    Attributes:
        key: Of this generation and job: `vertex.job_key`.
        owner: Of the task instance, whatever its generation: `vertex.job_owner`.
        dag_run: Of the DAG run.
        generation: Its number; grows when the task is cleared.
        retries: How many more jobs may follow those that failed for the program's reasons: the task's `retries`.
        try_number: Airflow's own count, over all generations.
    """

    key: str
    owner: str
    dag_run: str
    generation: int
    retries: int
    try_number: int

    @property
    def labels(self) -> dict[str, str]:
        """What the job carries."""
        return {
            vertex.KEY_LABEL: self.key,
            vertex.OWNER_LABEL: self.owner,
            vertex.DAG_RUN_LABEL: self.dag_run,
            vertex.GENERATION_LABEL: str(self.generation),
        }
