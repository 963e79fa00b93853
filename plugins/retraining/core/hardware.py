"""Which machines there are, which accelerators go with them, and in which region: a dated data file.

In: `include/regions/hardware.json` and a spec. Out: the first thing that Vertex AI would refuse, with the way out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Literal

from retraining.core.cluster import JobTask, Pool, machines
from retraining.core.documents.document import Document, Text, Value
from retraining.core.errors import ContractError, SettingsError, SpecError
from retraining.core.model_spec import ModelSpec
from retraining.core.spec_file import suggest

TASKS: tuple[JobTask, ...] = ("export", "train", "evaluate")


class AcceleratorPlaces(Value):
    """Pattern of the machine types that take an accelerator, and the regions that have it."""

    machines: str
    regions: tuple[str, ...]


class Hardware(Document):
    """Machine types of custom training (patterns), accelerators, and TPU machine types with their regions."""

    kind: Literal["hardware"] = "hardware"
    effective: date
    source: Text
    note: str
    machines: tuple[str, ...]
    accelerators: dict[str, AcceleratorPlaces]
    tpu_machines: dict[str, tuple[str, ...]]


def load_hardware(include: Path) -> Hardware:
    """The table.

    Raises:
        SettingsError: It is missing or malformed.
    """
    path = include / "regions" / "hardware.json"
    try:
        return Hardware.parse(path.read_bytes(), path.name)
    except OSError as error:
        raise SettingsError(str(path), f"{error.strerror}", "the table of machines", "Run make bundle again") from error
    except ContractError as error:
        raise SettingsError(error.where, error.found, "a table like the repository's") from error


def require_machines(spec: ModelSpec, hardware: Hardware, region: str | None = None) -> None:
    """Refuse a spec whose jobs Vertex AI would refuse.

    Args:
        spec: Whose machines.
        hardware: The table.
        region: Where the jobs run; None: any region will do.

    Raises:
        SpecError: A machine type, accelerator, pair of them, or region that does not exist; names it.
    """
    for task in TASKS:
        where = f"{spec.name}.yaml, {'data.export' if task == 'export' else 'training.cluster'}"
        for pool in machines(spec, task).pools:
            for found, expected, way_out in _problems(pool, hardware, region) if pool.count else ():
                raise SpecError(where, found, expected, way_out)


def _problems(pool: Pool, hardware: Hardware, region: str | None) -> Iterator[tuple[str, str, str]]:
    if not any(re.fullmatch(pattern, pool.machine) for pattern in hardware.machines):
        yield f"machine {pool.machine!r}", "a machine type of Vertex AI training", "For example n1-standard-8"
    for pattern, regions in hardware.tpu_machines.items():
        if re.fullmatch(pattern, pool.machine) and region is not None and region not in regions:
            yield f"machine {pool.machine} in {region}", f"one of the regions {', '.join(regions)}", _ELSEWHERE
    if pool.accelerator is None:
        return
    type_ = pool.accelerator.type
    places = hardware.accelerators.get(type_)
    if places is None:
        known = sorted(hardware.accelerators)
        yield f"accelerator {type_!r}", f"one of {', '.join(known)}", suggest(type_, known)
    elif not re.fullmatch(places.machines, pool.machine):
        yield f"{type_} in machine {pool.machine}", f"a machine like {places.machines}", "Change one of them"
    elif region is not None and region not in places.regions:
        yield f"{type_} in {region}", f"one of the regions {', '.join(places.regions)}", _ELSEWHERE


_ELSEWHERE = "Take another accelerator, or run in one of these regions (RETRAINING_REGION)"
