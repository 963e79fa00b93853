"""A pool of machines that jobs of many models share: `include/pools/<name>.yaml`, found, read, or refused.

In: that file. Out: a `MachinePool`, or a message with all findings.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from retraining.core.errors import SpecError, suggest
from retraining.core.spec.cluster import Accelerator, MachineType
from retraining.core.spec.section import Cron, Section
from retraining.core.spec.section_file import read_section

PoolName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=30)]
FOLDER = "pools"


class PoolMachines(Section):
    """Equal machines of a pool. A job runs on them where each of its own machines is one of these, disk and all."""

    machine: MachineType
    """Of Vertex AI."""
    accelerator: Accelerator | None = None
    """GPUs of each machine."""
    disk_gb: Annotated[int, Field(ge=100, le=64000)] = 100
    """GB of each machine's boot disk."""
    disk_type: Literal["pd-ssd", "pd-standard"] = "pd-ssd"
    """Of each machine's boot disk."""
    min: Annotated[int, Field(ge=1, le=1000)] = 1
    """Machines that are there, and paid for, as long as the pool is open."""
    max: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many there may be while jobs wait."""

    @model_validator(mode="after")
    def _grows(self) -> Self:
        if self.max < self.min:
            raise ValueError(f"max {self.max} is less than min {self.min}: give at least as many")
        if self.accelerator is not None and self.accelerator.is_tpu:
            raise ValueError(f"{self.accelerator.type} is a TPU, which no pool has: let its job have its own machine")
        return self


class MachinePool(Section):
    """The file of a pool."""

    name: PoolName
    """As the file: small letters, digits and dashes."""
    description: Annotated[str, StringConstraints(min_length=1, max_length=2000)]
    """What Airflow shows."""
    owner: Annotated[str, StringConstraints(min_length=1, max_length=100)] = "retraining"
    """Airflow's owner of the tasks."""
    opens: Cron | None
    """When its machines are made, UTC; `null`: only by hand."""
    hours: Annotated[float, Field(gt=0, le=24)]
    """For how long it takes jobs."""
    drain_hours: Annotated[float, Field(ge=0, le=24)] = 1
    """How long after that jobs that still run on it are waited for, before they are cancelled with it."""
    machines: Annotated[tuple[PoolMachines, ...], Field(min_length=1, max_length=10)]
    """What it is made of."""

    @model_validator(mode="after")
    def _machines_differ(self) -> Self:
        kinds = [each.model_copy(update={"min": 1, "max": 1}) for each in self.machines]
        if twice := next((kind for kind in kinds if kinds.count(kind) > 1), None):
            raise ValueError(f"machines has {twice.machine} twice: give one of them the sum, remove the other")
        return self


def find_pools(include: Path) -> list[Path]:
    """Return the files of all pools, sorted by name; none where there is no folder."""
    folder = include / FOLDER
    return sorted(path for path in folder.glob("*.y*ml") if path.is_file()) if folder.is_dir() else []


def load_pool(path: Path) -> MachinePool:
    """Read, parse and validate one file.

    Raises:
        SpecError: Anything is wrong with it; the message has all findings, with lines.
    """
    pool, text = read_section(path, MachinePool)
    if pool.name != path.stem:
        line = text.line(("name",))
        raise SpecError(
            f"{path.name}, line {line}",
            f"name is {pool.name!r}",
            f"{path.stem!r}, as the file is called",
            "Rename one of them",
        )
    return pool


def find_pool(name: str, where: str, include: Path) -> MachinePool:
    """Return the pool of a name.

    Args:
        name: That somebody gave.
        where: It stands, for the message.
        include: The folder `include`.

    Raises:
        SpecError: There is none, or its file is broken.
    """
    files = {path.stem: path for path in find_pools(include)}
    if name not in files:
        raise SpecError(
            where,
            f"no pool {name!r}",
            f"a file of include/{FOLDER}" + (f": {', '.join(files)}" if files else ", which has none"),
            suggest(name, list(files)) or f"Write include/{FOLDER}/{name}.yaml, or remove the key",
        )
    return load_pool(files[name])
