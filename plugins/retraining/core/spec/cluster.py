"""The machines of a training job as a model's YAML names them: a tier, or machines by role; and what goes together.

Roles are those of TensorFlow's cluster: the chief trains and speaks for the job, workers train beside it, parameter
servers hold the variables of asynchronous training, the evaluator scores checkpoints.
https://cloud.google.com/vertex-ai/docs/training/distributed-training
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.settings import IMAGE_PATTERN
from retraining.core.spec.features import is_none
from retraining.core.spec.section import Section

Strategy = Literal["auto", "one_device", "mirrored", "multi_worker", "parameter_server", "tpu"]
Reservation = Annotated[
    str,
    StringConstraints(
        max_length=300,
        pattern=r"^projects/[a-z][a-z0-9.:-]*/zones/[a-z]+-[a-z]+\d+-[a-z]/reservations/[a-z][a-z0-9-]{0,62}$",
    ),
]
MachineType = Annotated[str, StringConstraints(max_length=100, pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)+$")]


class Accelerator(Section):
    """Accelerators of one machine, by Vertex AI's name: NVIDIA_TESLA_T4, TPU_V3. A TPU's count is its cores."""

    type: Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]+$")]
    """Vertex AI's name: `NVIDIA_TESLA_T4`, `NVIDIA_L4`, `TPU_V3`."""
    count: Literal[1, 2, 4, 8, 16, 32, 64, 128, 256, 512] = 1
    """In each machine; of a TPU its cores."""

    @property
    def is_tpu(self) -> bool:
        """Whether it is a TPU."""
        return self.type.startswith("TPU_")


class Replica(Section):
    """One machine."""

    machine: MachineType
    """Of Vertex AI."""
    accelerator: Accelerator | None = None
    """GPUs or TPU of the machine; the chief's and the workers' must be equal, parameter servers have none."""
    tpu_topology: Annotated[str, StringConstraints(pattern=r"^\d+x\d+(x\d+)?$")] | None = None
    """Of the machines `ct5lp-…` and `ct6e-…`, which only the chief may be: `2x2`, `4x4`."""

    @property
    def is_tpu(self) -> bool:
        """Whether the machine holds a TPU."""
        return self.machine == "cloud-tpu" or self.machine.startswith(("ct5lp-", "ct6e-"))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        typed = self.accelerator is not None and self.accelerator.is_tpu
        if self.machine == "cloud-tpu" and not typed:
            raise ValueError(
                "machine cloud-tpu needs a TPU as its accelerator, for example {type: TPU_V3, count: 8}; "
                "for GPUs name another machine"
            )
        if typed and self.machine != "cloud-tpu":
            raise ValueError(f"a {self.accelerator and self.accelerator.type} goes with machine cloud-tpu")
        if self.is_tpu and self.machine != "cloud-tpu" and self.accelerator is not None:
            raise ValueError(f"machine {self.machine} has its TPU built in: remove accelerator, set tpu_topology")
        if (self.tpu_topology is not None) != (self.is_tpu and self.machine != "cloud-tpu"):
            raise ValueError("tpu_topology (2x2, …) belongs to the machines ct5lp-… and ct6e-…, which need it")
        return self


class Replicas(Replica):
    """Several equal machines."""

    count: Annotated[int, Field(ge=0, le=100)]
    """Machines."""


class Cluster(Section):
    """Machines of the training job: a tier by name, or CUSTOM with machines by role."""

    tier: Literal["BASIC", "STANDARD_1", "PREMIUM_1", "BASIC_GPU", "BASIC_TPU", "CUSTOM"] = "BASIC"
    """A size by name (the table below), or `CUSTOM`: machines by role."""
    chief: Replica | None = None
    """With `CUSTOM`: the machine that leads the job; its state is the job's."""
    workers: Replicas | None = None
    """With `CUSTOM`: further machines that train."""
    parameter_servers: Replicas | None = None
    """With `CUSTOM`: machines that hold the variables of asynchronous training."""
    evaluator: Replica | None = None
    """With `CUSTOM`: a machine that scores checkpoints beside the training."""
    spot: bool = False
    """Whether on spot machines; after two jobs lost to preemption or stockout the next ones are on demand."""
    flex_start_hours: Annotated[float | None, Field(gt=0, le=168, exclude_if=is_none)] = None
    """Hours for which a job of GPUs may wait [until they are there](training.md#scarce-machines) (flex start);
    after two jobs that got none the next ones ask for them at once. `null`: a job asks at once."""
    reservation: Annotated[Reservation | None, Field(exclude_if=is_none)] = None
    """[Reservation](training.md#scarce-machines) in Compute Engine, of which the chief and the machines like it
    are: `projects/<project>/zones/<zone>/reservations/<name>`; `null`: of none."""
    disk_gb: Annotated[int, Field(ge=100, le=64000)] = 100
    """GB of each machine's boot disk."""
    disk_type: Literal["pd-ssd", "pd-standard"] = "pd-ssd"
    """Of each machine's boot disk."""
    timeout_hours: Annotated[float, Field(gt=0, le=168)] = 6
    """Hours after which the service ends the job."""

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        named = self.chief or self.workers or self.parameter_servers or self.evaluator
        if self.tier == "CUSTOM" and self.chief is None:
            raise ValueError("tier CUSTOM needs a chief, for example chief: {machine: n1-standard-8}")
        if self.tier != "CUSTOM" and named:
            raise ValueError(f"tier {self.tier} fixes the machines: remove those of the roles, or use tier CUSTOM")
        workers = self.workers.count if self.workers else 0
        servers = self.parameter_servers.count if self.parameter_servers else 0
        if self.chief and self.workers and workers and self.chief.accelerator != self.workers.accelerator:
            raise ValueError("chief and workers share the work: give both the same accelerator, or none")
        if servers and not workers:
            raise ValueError(
                "parameter_servers hold variables for workers, and there are none: add workers, or remove them"
            )
        if self.parameter_servers and self.parameter_servers.accelerator:
            raise ValueError("parameter_servers only hold variables: remove their accelerator")
        if self.chief and self.chief.is_tpu and (workers or servers or self.evaluator):
            raise ValueError(
                "a TPU's job has one machine: remove workers, parameter_servers and evaluator; a larger slice is more "
                "cores (accelerator.count, tpu_topology)"
            )
        if any(role and role.is_tpu for role in (self.workers, self.parameter_servers, self.evaluator)):
            raise ValueError("a TPU is the chief's: name it there")
        return self

    @model_validator(mode="after")
    def _asks_for_machines_in_one_way(self) -> Self:
        ways = {
            "spot": self.spot,
            "flex_start_hours": self.flex_start_hours is not None,
            "reservation": self.reservation is not None,
        }
        if len(asked := [name for name, is_set in ways.items() if is_set]) > 1:
            raise ValueError(f"{' and '.join(asked)} are different ways to get machines: keep one of them")
        if self.flex_start_hours is not None and not _has_gpu(resolve_tier(self).chief):
            raise ValueError(
                "flex_start_hours is of GPUs, and the chief has none: give it an accelerator, or remove it"
            )
        return self


def _has_gpu(role: Replica | None) -> bool:
    return role is not None and role.accelerator is not None and not role.is_tpu


class Runtime(Section):
    """What the training job runs in: this project's image, an own one, or a pre-built container by TensorFlow version.

    With `framework` the trainer goes into Vertex AI's pre-built container as a source distribution, whose address is
    the setting RETRAINING_TRAINER_PACKAGE; `image` is a custom container that obeys the contracts. Its `models` are
    SavedModels, which this project's trainer can ask, or its own: then it scores them itself, and
    `deployment.container` serves them.
    """

    framework: Annotated[str, StringConstraints(pattern=r"^2\.\d{1,2}$")] | None = None
    """TensorFlow version (`2.15`) of Vertex AI's pre-built container, with the trainer of `RETRAINING_TRAINER_PACKAGE`.
    That is its source distribution; GPUs need this or `image`."""
    image: Annotated[str, StringConstraints(max_length=500, pattern=f"^{IMAGE_PATTERN}$")] | None = None
    """A custom container that obeys the [documents](documents.md); TPUs need it. An architecture that this project's
    trainer does not know is then left to it, unchecked."""
    models: Literal["saved_model", "own"] = "saved_model"
    """`own`, with `image`: models of another framework; the image [scores them](trainer-contract.md), a container of
    its own serves them."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.framework and self.image:
            raise ValueError("framework means a pre-built container and image an own one: name one of them")
        if self.models == "own" and not self.image:
            raise ValueError(
                "models own are of another framework, whose image trains and scores them: name it in image"
            )
        return self

    @property
    def image_name(self) -> str | None:
        """The own image's name without registry, tag and digest; None: there is none."""
        named = re.search(r"([^/:@]+)([:@][^/]*)?$", self.image or "")
        return named.group(1) if named else None

    @property
    def scoring_image(self) -> str | None:
        """The image that answers for its models; None: this project's trainer does."""
        return self.image if self.models == "own" else None


def runtime_problem(runtime: Runtime, cluster: Cluster, reads: str) -> str | None:
    """Say why what a job runs in does not go with its machines or its input, with the way out; None when it does.

    Args:
        runtime: What it runs in.
        cluster: With its machines, see `resolve_tier`.
        reads: `training.input`.
    """
    roles = [cluster.chief, cluster.workers, cluster.parameter_servers, cluster.evaluator]
    machines = [role for role in roles if role and not (isinstance(role, Replicas) and role.count == 0)]
    if any(role.is_tpu for role in machines) and not runtime.image:
        return (
            "a TPU needs an own image with a TensorFlow for TPUs: name it in runtime.image. This project's image is "
            "for CPUs, and the pre-built containers of runtime.framework are for CPUs and GPUs"
        )
    if any(role.accelerator for role in machines) and not (runtime.framework or runtime.image):
        return (
            "accelerators would be paid for and not used, for this project's image is for CPUs: build the one for GPUs "
            "(docs/training.md) and name it in runtime.image, or remove the accelerators"
        )
    if reads == "bigquery" and cluster.parameter_servers and cluster.parameter_servers.count:
        return "input bigquery does not go with parameter_servers: remove them, or use input tfrecord"
    return None


def strategy_problem(strategy: Strategy, chief: Replica, workers: int, servers: int) -> str | None:
    """Say why a distribution strategy does not go with a cluster, with the way out; None when it does."""
    several = f"the cluster has {workers} workers and {servers} parameter servers"
    if chief.is_tpu and strategy not in ("auto", "tpu"):
        return f"strategy {strategy} on a TPU: use strategy tpu or auto, or a machine without TPU"
    if strategy == "tpu" and not chief.is_tpu:
        return f"strategy tpu on machine {chief.machine}: name a TPU, or use strategy auto"
    if strategy in ("one_device", "mirrored") and (workers or servers):
        return f"strategy {strategy} uses one machine and {several}: remove them, or use strategy auto"
    if strategy == "multi_worker" and servers:
        return f"strategy multi_worker trains in lockstep and {several}: remove parameter_servers"
    if strategy == "multi_worker" and not workers:
        return "strategy multi_worker needs workers beside the chief: add them, or use strategy auto"
    if strategy == "parameter_server" and not (workers and servers):
        return f"strategy parameter_server needs workers and parameter_servers; {several}"
    return None


# The scale tiers of the training service's manual: many workers with a few parameter servers, or very many of both.
# Machines as Vertex AI has them today (n1-highcpu-8 is not among them).
TIERS: dict[str, Cluster] = {
    "BASIC": Cluster(tier="CUSTOM", chief=Replica(machine="n1-standard-4")),
    "STANDARD_1": Cluster(
        tier="CUSTOM",
        chief=Replica(machine="n1-standard-8"),
        workers=Replicas(machine="n1-standard-8", count=4),
        parameter_servers=Replicas(machine="n1-standard-4", count=3),
    ),
    "PREMIUM_1": Cluster(
        tier="CUSTOM",
        chief=Replica(machine="n1-highcpu-16"),
        workers=Replicas(machine="n1-highcpu-16", count=19),
        parameter_servers=Replicas(machine="n1-highmem-8", count=11),
    ),
    "BASIC_GPU": Cluster(
        tier="CUSTOM", chief=Replica(machine="n1-standard-8", accelerator=Accelerator(type="NVIDIA_TESLA_T4"))
    ),
    "BASIC_TPU": Cluster(
        tier="CUSTOM", chief=Replica(machine="cloud-tpu", accelerator=Accelerator(type="TPU_V3", count=8))
    ),
}


def resolve_tier(cluster: Cluster) -> Cluster:
    """Return the cluster with its machines: a tier's own ones under the settings that were given beside it."""
    if cluster.tier == "CUSTOM":
        return cluster
    tier = TIERS[cluster.tier]
    roles = {name: getattr(tier, name) for name in ("chief", "workers", "parameter_servers", "evaluator")}
    return cluster.model_copy(update={**roles, "tier": "CUSTOM"})
