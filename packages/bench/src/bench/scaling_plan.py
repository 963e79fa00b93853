"""Sizes that fit no laptop, on paper: shards, replicas, hours and dollars from measured rates and dated prices.

In: `scaling_rates.json` (measured, see `scaling_rates`), the newest of the package's `prices`, and the assumptions
below, each with where it comes from. Out: one `ExportPlan` or `InputPlan` per size and number of machines. The formula
stands in packages/bench/docs/scaling.md; a test keeps that page's tables equal to what this gives.
"""

from __future__ import annotations

import functools
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.checkout import PACKAGE_DATA
from bench.scaling_simulation import Machine, Workload, make_workload, simulate

HERE = Path(__file__).resolve().parent
CORE_FACTOR = 0.5  # assumed: a vCPU of an N1 machine is half of an older core, the measured ones are of a newer kind
START_S = 180.0  # assumed: from the job's creation until its first row, on machines that must be found first
UNIT_S = 0.1  # assumed: of a shard's read session and two uploads, what the exporter's pipeline does not hide
READ_MB_S = 250.0  # published: "the high end" of one session, github.com/googleapis/java-bigquerystorage/issues/809
SHARD_MB = 64  # data.shard_mb, of rows as JSON text
ROWS_PER_SHARD = 100_000  # data.rows_per_shard
KEEP_TABLE_DAYS = 7  # data.keep_table_days
STORED_MONTHS = 1.0
DISK_GB = 100  # of each replica


@dataclass(frozen=True, kw_only=True)
class Size:
    """What is exported and trained on.

    Attributes:
        name: For tables.
        rows: Examples.
        table_bytes: A row's bytes in the run table.
        text_bytes: A row's bytes as JSON text, which `data.shard_mb` counts.
        file_bytes: A row's bytes in the shards.
        rows_per_core_s: What the whole export job writes per second of one measured core.
        input_per_core_s: Examples that one measured core parses for training.
        busy_cores: Of a machine's vCPUs, as a share, those that the exporter's one process keeps busy; capped below.
        most_cores: What it keeps busy on the largest machine.
        spans: Days.
        validation_percent: Of each day.
        spread: See `make_workload`.
    """

    name: str
    rows: int
    table_bytes: float
    text_bytes: float
    file_bytes: float
    rows_per_core_s: float
    input_per_core_s: float
    busy_cores: float
    most_cores: float
    spans: int
    validation_percent: int = 10
    spread: float = 0.5

    @property
    def rows_per_shard(self) -> int:
        """The smaller of the two limits."""
        return min(ROWS_PER_SHARD, max(1, int(SHARD_MB * 1e6 / self.text_bytes)))

    @functools.cached_property
    def workload(self) -> Workload:
        """Return its units."""
        return make_workload(
            self.name,
            rows=self.rows,
            spans=self.spans,
            validation_percent=self.validation_percent,
            rows_per_shard=self.rows_per_shard,
            spread=self.spread,
        )


@dataclass(frozen=True, kw_only=True)
class ExportPlan:
    """One export: so many machines, so long, for so much.

    Attributes:
        replicas: Machines.
        hours: From the job's start to the manifest.
        limit: What it is bound by: `cores` or `read`.
        machine_usd: Of the machines, on demand.
        spot_usd: The same as spot machines, without what preemptions cost.
    """

    replicas: int
    hours: float
    limit: str
    machine_usd: float
    spot_usd: float


@dataclass(frozen=True, kw_only=True)
class OtherCosts:
    """What an export costs whatever the machines: in US dollars."""

    query: float
    read: float
    writes: float
    table: float
    storage_month: float


@dataclass(frozen=True, kw_only=True)
class InputPlan:
    """Reading an epoch of training examples.

    Attributes:
        workers: Machines.
        examples_per_s: That all of them can be fed.
        epoch_hours: Of one pass over all training examples, if nothing else is slower.
        epoch_usd: Of the machines in that time, without accelerators.
    """

    workers: int
    examples_per_s: float
    epoch_hours: float
    epoch_usd: float


def load_rates(path: Path = HERE / "scaling_rates.json") -> dict[str, Any]:
    """Read what was measured."""
    rates: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return rates


def load_prices(
    folder: Path = PACKAGE_DATA / "prices",
) -> dict[str, Any]:
    """Read what the newest price list has for us-central1, with the machines' shapes and the surcharge."""
    prices: dict[str, Any] = json.loads(max(folder.glob("*.json")).read_text(encoding="utf-8"))
    of_region: dict[str, Any] = prices.pop("regions")["us-central1"]
    return {**prices, **of_region}


def hourly(prices: dict[str, Any], machine: str) -> float:
    """Return the list price of a machine's hour with its disk, in US dollars."""
    family, kind, vcpus = machine.split("-")
    price = prices["machines"][family]
    memory_gb = int(vcpus) * prices["shapes"][family][kind]["memory_gb_per_vcpu"]
    disk = DISK_GB * prices["disk_gb_month"]["pd-ssd"] / 730
    machine_usd = int(vcpus) * price["vcpu_hour"] + memory_gb * price["memory_gb_hour"] + disk
    return float(machine_usd * (1 + prices["surcharge"]))


def flights_size(rates: dict[str, Any]) -> Size:
    """1 billion rows of the flights' shape: three years of days."""
    flights = rates["flights"]
    return Size(
        name="1 billion flights",
        rows=1_000_000_000,
        table_bytes=flights["read"]["bytes"] / flights["rows"],
        text_bytes=flights["text_bytes"],
        file_bytes=flights["file_bytes"] / flights["rows"],
        rows_per_core_s=flights["rows"] / flights["export"]["cpu_s"],
        input_per_core_s=flights["input"]["rows"] / flights["input"]["cpu_s"],
        busy_cores=1.0,
        most_cores=flights["export_to_memory"]["cpu_s"] / flights["export_to_memory"]["wall_s"],
        spans=1095,
    )


def photos_size(rates: dict[str, Any], encoding: str) -> Size:
    """10 million photos, 2 TB: a year of days, stored at 224 x 224 as raw pixels or as JPEG."""
    photos = rates["photos"]
    return Size(
        name=f"10 million photos, {encoding}",
        rows=10_000_000,
        table_bytes=200_000,
        text_bytes=200_000 * 4 / 3,
        file_bytes=photos[encoding]["file_bytes"] / photos["rows"],
        rows_per_core_s=photos["rows"] / photos[encoding]["export"]["cpu_s"],
        input_per_core_s=photos[encoding]["input"]["rows"] / photos[encoding]["input"]["cpu_s"],
        busy_cores=photos["raw"]["export_to_memory"]["cpu_s"] / photos["raw"]["export_to_memory"]["wall_s"] / 2,
        most_cores=math.inf,
        spans=365,
    )


def busy_cores(size: Size, machine: str) -> float:
    """Return how many of a machine's vCPUs the exporter's one process keeps busy."""
    return min(int(machine.split("-")[2]) * size.busy_cores, size.most_cores)


def replica(size: Size, machine: str) -> tuple[Machine, str]:
    """Return what one replica does on a machine, and what bounds it."""
    by_cores = busy_cores(size, machine) * CORE_FACTOR * size.rows_per_core_s
    by_read = READ_MB_S * 1e6 / size.table_bytes
    rows_per_s = min(by_cores, by_read)
    return Machine(rows_per_s=rows_per_s, unit_s=UNIT_S, start_s=START_S), "cores" if by_cores <= by_read else "read"


def plan_export(size: Size, replicas: int, machine: str, prices: dict[str, Any]) -> ExportPlan:
    """Plan one export."""
    one, limit = replica(size, machine)
    hours = simulate(size.workload, replicas, one).makespan_s / 3600
    usd = hours * replicas * hourly(prices, machine)
    return ExportPlan(
        replicas=replicas, hours=hours, limit=limit, machine_usd=usd, spot_usd=usd * prices["spot_factor"]
    )


def other_costs(size: Size, prices: dict[str, Any]) -> OtherCosts:
    """Return what is the same for any number of replicas."""
    table_bytes, units = size.rows * size.table_bytes, len(size.workload.units)
    writes = 2 * units + size.spans  # a shard, its sidecar, a span.json per day
    return OtherCosts(
        query=table_bytes / 2**40 * prices["query_tib"],
        read=table_bytes / 1e12 * prices["table_read_tb"],
        writes=writes / 1000 * prices["storage_writes_1000"],
        table=table_bytes / 1e9 * prices["table_gb_month"] * KEEP_TABLE_DAYS / 30,
        storage_month=size.rows * size.file_bytes / 1e9 * prices["storage_gb_month"] * STORED_MONTHS,
    )


def plan_input(size: Size, workers: int, machine: str, prices: dict[str, Any]) -> InputPlan:
    """Plan the input of a training; all vCPUs parse, which leaves none for computing."""
    rate = workers * int(machine.split("-")[2]) * CORE_FACTOR * size.input_per_core_s
    examples = size.rows * (100 - size.validation_percent) / 100
    hours = examples / rate / 3600
    return InputPlan(
        workers=workers,
        examples_per_s=rate,
        epoch_hours=hours,
        epoch_usd=hours * workers * hourly(prices, machine),
    )
