"""What a replica learns of itself and the others: TF_CONFIG, CLUSTER_SPEC, AIP_* and CLOUD_ML_* variables.

Comes in: a custom job and the addresses of its replicas. Goes out: environment variables.
https://cloud.google.com/vertex-ai/docs/training/distributed-training#cluster-variables
https://cloud.google.com/vertex-ai/docs/training/code-requirements#environment-variables
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
from typing import Any

from google.cloud.aiplatform_v1.types import CustomJob
from google.protobuf import json_format

from localcloud.vertex.jobs.runs import TrialRole
from localcloud.vertex.wire import names
from localcloud.vertex.wire.methods import raw

# The role of a pool comes from its place in the list.
_ROLES = ("chief", "worker", "ps", "evaluator")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReplicaId:
    """One replica: the index of its pool and its index in it."""

    pool: int
    index: int

    def __str__(self) -> str:
        return f"workerpool{self.pool}-{self.index}"


def list_replicas(job: CustomJob) -> list[ReplicaId]:
    """Return all replicas of a job, the chief first; empty pools are skipped."""
    return [
        ReplicaId(pool=pool, index=index)
        for pool, spec in enumerate(job.job_spec.worker_pool_specs)
        for index in range(spec.replica_count)
    ]


def choose_addresses(replicas: list[ReplicaId]) -> dict[ReplicaId, str]:
    """Return a free loopback port for each replica."""
    sockets = {replica: socket.socket() for replica in replicas}
    try:
        for probe in sockets.values():
            probe.bind(("127.0.0.1", 0))
        return {replica: f"127.0.0.1:{probe.getsockname()[1]}" for replica, probe in sockets.items()}
    finally:
        for probe in sockets.values():
            probe.close()


def cluster_variables(
    job: CustomJob, replica: ReplicaId, addresses: dict[ReplicaId, str], trial: TrialRole | None = None
) -> dict[str, str]:
    """Return variables that Vertex AI sets for one replica of a job.

    Args:
        trial: What the job is to a tuning job; None when it stands alone.
    """
    pools: dict[int, list[str]] = {}
    for other, address in addresses.items():
        pools.setdefault(other.pool, []).append(address)
    spec = json_format.MessageToDict(raw(job.job_spec))
    location = names.location_of(job.name)
    base = job.job_spec.base_output_directory.output_uri_prefix
    about_trial = {"trial": trial.trial_id} if trial else {}
    variables = {
        "TF_CONFIG": json.dumps(_tf_config(pools, replica, spec, about_trial)),
        "CLUSTER_SPEC": json.dumps(_cluster_spec(pools, replica, spec, about_trial)),
        "CLOUD_ML_JOB_ID": trial.tuning_job_id if trial else names.last_part(job.name),
        "CLOUD_ML_PROJECT_ID": location.project if location else "",
        "CLOUD_ML_REGION": location.region if location else "",
        **output_variables(f"{base.rstrip('/')}/{trial.trial_id}" if base and trial else base),
    }
    if trial:
        variables["CLOUD_ML_TRIAL_ID"] = trial.trial_id
    if job.job_spec.tensorboard:
        variables["AIP_TENSORBOARD_RESOURCE_NAME"] = job.job_spec.tensorboard
    return {**variables, **_thread_limits(len(addresses))}


def output_variables(base: str) -> dict[str, str]:
    """Return AIP_MODEL_DIR and its siblings below a base output directory; none without one."""
    if not base:
        return {}
    base = base.rstrip("/")
    return {
        "AIP_MODEL_DIR": f"{base}/model/",
        "AIP_CHECKPOINT_DIR": f"{base}/checkpoints/",
        "AIP_TENSORBOARD_LOG_DIR": f"{base}/logs/",
    }


def _tf_config(
    pools: dict[int, list[str]], replica: ReplicaId, spec: dict[str, Any], about_trial: dict[str, str]
) -> dict[str, Any]:
    # TensorFlow wants no evaluator in the cluster: it is a task beside it.
    cluster = {_ROLES[pool]: hosts for pool, hosts in pools.items() if _ROLES[pool] != "evaluator"}
    task = {"type": _ROLES[replica.pool], "index": replica.index, **about_trial}
    return {"cluster": cluster, "task": task, "environment": "cloud", "job": spec}


def _cluster_spec(
    pools: dict[int, list[str]], replica: ReplicaId, spec: dict[str, Any], about_trial: dict[str, str]
) -> dict[str, Any]:
    cluster = {f"workerpool{pool}": hosts for pool, hosts in pools.items()}
    task = {"type": f"workerpool{replica.pool}", "index": replica.index, **about_trial}
    return {"cluster": cluster, "task": task, "environment": "cloud", "job": spec}


def _thread_limits(replicas: int) -> dict[str, str]:
    """Several machines share this one: without limits each would start a thread per core for its arithmetic.

    Threads between operations are not limited: most of them wait, and with one a parameter server's worker waits for
    itself.
    """
    if replicas == 1:
        return {}
    threads = str(max(1, (os.cpu_count() or 1) // replicas))
    return {"OMP_NUM_THREADS": threads, "TF_NUM_INTRAOP_THREADS": threads}
