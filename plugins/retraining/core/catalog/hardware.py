"""Which machines there are, which accelerators go with them, and in which region: a dated data file.

In: `package_data/regions/hardware.json` and a spec. Out: the first thing that Vertex AI would refuse, with the way out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Literal

from retraining.core.catalog.machines import all_machines
from retraining.core.documents.document import Document, Text, Value
from retraining.core.documents.plan import JobTask, Machines, Pool
from retraining.core.errors import ContractError, SettingsError, SpecError, suggest
from retraining.core.settings import data_path
from retraining.core.spec.model import ModelSpec


class AcceleratorPlaces(Value):
    """Where an accelerator is: in which machine types (patterns) how many at a time, in which regions.

    `built_in`: these machines have it anyway, and Vertex AI wants it named.
    """

    built_in: bool
    counts: dict[str, tuple[int, ...]]
    regions: tuple[str, ...]


class Hardware(Document):
    """Regions, machine types of training and of endpoints (patterns), accelerators, TPU machine types by region.

    `vcpus` are those of machine types whose names do not end with their number. `tpu_chips` names the chips of machine
    types (patterns, whose group is their number), as quotas count them.
    """

    kind: Literal["hardware"] = "hardware"
    effective: date
    source: Text
    note: str
    regions: tuple[str, ...]
    machines: tuple[str, ...]
    serving_machines: tuple[str, ...]
    accelerators: dict[str, AcceleratorPlaces]
    tpu_machines: dict[str, tuple[str, ...]]
    tpu_chips: dict[str, str] = {}
    vcpus: dict[str, int] = {}


def load_hardware(include: Path) -> Hardware:
    """Return the table.

    Raises:
        SettingsError: It is missing or malformed.
    """
    path = data_path("regions/hardware.json", include)
    try:
        return Hardware.parse(path.read_bytes(), path.name)
    except OSError as error:
        raise SettingsError(
            str(path), f"{error.strerror}", "the table of machines", "Install the package again"
        ) from error
    except ContractError as error:
        raise SettingsError(error.where, error.found, "a table like the repository's") from error


def require_machines(
    spec: ModelSpec,
    hardware: Hardware,
    region: str | None = None,
    machines: Mapping[JobTask, Machines] | None = None,
) -> None:
    """Refuse a spec whose jobs Vertex AI would refuse.

    Args:
        spec: Whose machines.
        hardware: The table.
        region: Where the jobs run; None: any region will do.
        machines: Machines of the jobs; None: those that follow from the spec.

    Raises:
        SpecError: A machine type, accelerator, pair or number of them, region or pre-built container that does not
            exist; names it.
    """
    if region is not None and region not in hardware.regions:
        way_out = (
            suggest(region, hardware.regions) or "Where the table is behind, add it to include/regions/hardware.json"
        )
        raise SpecError("RETRAINING_REGION", f"no region {region!r}", f"one of: {', '.join(hardware.regions)}", way_out)
    if spec.deployment.endpoint:
        _require_endpoint(spec, hardware, region)
    if spec.scoring is not None:
        require_serving_machine(spec.scoring.machine, hardware, f"{spec.name}.yaml, scoring.machine")
    for task, of_task in (all_machines(spec) if machines is None else machines).items():
        where = f"{spec.name}.yaml, {'data.export' if task == 'export' else 'training.cluster'}"
        if of_task.reservation and region and f"/zones/{region}-" not in of_task.reservation:
            expected = f"one in a zone of {region}"
            raise SpecError(f"{where}.reservation", of_task.reservation, expected, "Name one where the jobs run")
        for pool in of_task.pools:
            for found, expected, way_out in _problems(pool, hardware, region) if pool.count else ():
                raise SpecError(where, found, expected, way_out)


def _require_endpoint(spec: ModelSpec, hardware: Hardware, region: str | None) -> None:
    deployment, where = spec.deployment, f"{spec.name}.yaml, deployment"
    if deployment.shared_machines:
        return
    require_serving_machine(deployment.machine, hardware, f"{where}.machine")
    pool = Pool(machine=deployment.machine, count=1, accelerator=deployment.accelerator)
    for found, expected, way_out in _accelerator_problems(pool, hardware, region):
        raise SpecError(f"{where}.accelerator", found, expected, way_out)


def require_serving_machine(machine: str, hardware: Hardware, where: str) -> None:
    """Refuse a machine type on which no model answers, of an endpoint or in a batch prediction.

    Raises:
        SpecError: There is no such type.
    """
    if not any(re.fullmatch(pattern, machine) for pattern in hardware.serving_machines):
        expected = "a machine type of Vertex AI endpoints and batch predictions"
        raise SpecError(where, repr(machine), expected, "For example n1-standard-2")


def _problems(pool: Pool, hardware: Hardware, region: str | None) -> Iterator[tuple[str, str, str]]:
    if not any(re.fullmatch(pattern, pool.machine) for pattern in hardware.machines):
        yield f"machine {pool.machine!r}", "a machine type of Vertex AI training", "For example n1-standard-8"
    for pattern, regions in hardware.tpu_machines.items():
        if re.fullmatch(pattern, pool.machine) and region is not None and region not in regions:
            yield f"machine {pool.machine} in {region}", f"one of the regions {', '.join(regions)}", _ELSEWHERE
    yield from _accelerator_problems(pool, hardware, region)


def _accelerator_problems(pool: Pool, hardware: Hardware, region: str | None) -> Iterator[tuple[str, str, str]]:
    if pool.accelerator is None:
        for type_, places in hardware.accelerators.items():
            for count in _counts(places, pool.machine) if places.built_in else ():
                expected = f"accelerator: {{type: {type_}, count: {count}}}"
                yield f"machine {pool.machine} without the accelerator that is built in", expected, "Add it"
        return
    type_, count = pool.accelerator.type, pool.accelerator.count
    if type_ not in hardware.accelerators:
        known = sorted(hardware.accelerators)
        yield f"accelerator {type_!r}", f"one of {', '.join(known)}", suggest(type_, known)
        return
    places = hardware.accelerators[type_]
    counts = _counts(places, pool.machine)
    if not counts:
        yield f"{type_} in machine {pool.machine}", f"a machine like {' or '.join(places.counts)}", "Change one of them"
    elif count not in counts:
        expected = f"one of the counts {', '.join(map(str, counts))}"
        yield f"{count} {type_} in machine {pool.machine}", expected, "Change accelerator.count or the machine"
    elif region is not None and region not in places.regions:
        yield f"{type_} in {region}", f"one of the regions {', '.join(places.regions)}", _ELSEWHERE


def _counts(places: AcceleratorPlaces, machine: str) -> tuple[int, ...]:
    """Return how many of an accelerator a machine type takes; empty: none."""
    return next((counts for pattern, counts in places.counts.items() if re.fullmatch(pattern, machine)), ())


_ELSEWHERE = "Take another accelerator, or run in one of these regions (RETRAINING_REGION)"
