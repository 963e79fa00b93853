"""Money at list prices: an upper bound before the run, the actual sum after it. Prices are dated data files."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Literal

from retraining.core.documents.document import Document, Text, Value
from retraining.core.documents.plan import Estimate, JobTask, Machines, Pool
from retraining.core.errors import BudgetError, ContractError, SettingsError
from retraining.core.settings import data_path
from retraining.core.spec.cluster import Accelerator
from retraining.core.spec.model import ModelSpec


class Source(Value):
    """Where some of the figures are from: an address, the day the copy was taken (null: it has none), what is there."""

    address: Text
    taken: date | None
    what: Text


class Shape(Value):
    """The machines of a family and class: memory per vCPU, vCPUs per GPU where names count GPUs, and exceptions."""

    memory_gb_per_vcpu: float
    vcpus_per_gpu: int | None = None
    memory_gb: dict[str, float] = {}


class Rate(Value):
    """Price per hour of a family's vCPUs and memory, from which a machine type's price follows."""

    vcpu_hour: float
    memory_gb_hour: float


class RegionPrices(Value):
    """List prices of a region, in US dollars; what is missing or null is not known.

    `machines` maps a machine family (`n1`) to its rates; `with_gpus` a family and class whose GPUs are built in
    (`a2-highgpu`) to the price of all of a machine per GPU; `accelerators` Vertex AI's name to a price per GPU, TPU
    core (v2, v3) or chip; `disk_gb_month` a disk's type to its price. They are Compute Engine's, to which
    `Prices.surcharge` comes. `listed` are the names for which Vertex AI's own price was seen to be that sum; for all
    others it is derived.

    The prices of tables and storage are for plans on paper (scaling.md), that of queries for the report too.
    """

    listed: tuple[str, ...] = ()
    machines: dict[str, Rate] = {}
    with_gpus: dict[str, float] = {}
    accelerators: dict[str, float] = {}
    disk_gb_month: dict[str, float] = {}
    query_tib: float | None = None
    table_gb_month: float | None = None
    table_read_tb: float | None = None
    storage_gb_month: float | None = None
    storage_writes_1000: float | None = None
    storage_reads_1000: float | None = None


class Prices(Document):
    """List prices by region, those of machines of the day `effective`; free allowances are not taken off.

    `surcharge` is what Vertex AI takes on top of Compute Engine's price, as a share. `spot_factor` is what is left of
    a price on spot machines, `spot_factors` by family where another is known. `shapes` are the machines' sizes by
    family and class. `tpu_chips` names the accelerator of machines that are priced by chip.
    """

    kind: Literal["prices"] = "prices"
    effective: date
    sources: tuple[Source, ...]
    note: str
    surcharge: float
    spot_factor: float
    spot_factors: dict[str, float] = {}
    shapes: dict[str, dict[str, Shape]]
    tpu_chips: dict[str, str]
    regions: dict[str, RegionPrices]


def load_prices(include: Path) -> Prices | None:
    """Return the newest list of prices, of the package or of a team's own `include/prices`; None: there is none.

    They are named by date; on the same day the team's counts.

    Raises:
        SettingsError: It is malformed.
    """
    folders = (data_path("prices"), include / "prices")
    files = {path.name: path for folder in folders for path in folder.glob("*.json")}
    if not files:
        return None
    newest = files[max(files)]
    try:
        return Prices.parse(newest.read_bytes(), newest.name)
    except ContractError as error:
        raise SettingsError(error.where, error.found, "a price list like its neighbours") from error


def estimate(spec: ModelSpec, machines: Mapping[JobTask, Machines], prices: Prices, region: str) -> Estimate | None:
    """Return an upper bound of a run that needs one attempt for each job.

    All run until their timeouts. None: a price is unknown.

    Machines cost their on-demand price, those of spot jobs too: after two lost ones the next is on demand. What lost
    and failed attempts took comes on top. Of a study each trial, unless the run never searches.

    Args:
        spec: What is run.
        machines: Machines of its jobs.
        prices: List prices.
        region: Where they run.
    """
    per_hour: dict[str, float] = {}
    at_most = 0.0
    for task, of_task in machines.items():
        rate = _hourly(prices, of_task, region, spot=False)
        if rate is None:
            return None
        per_hour[task] = round(rate, 4)
        at_most += rate * of_task.timeout_s / 3600 * _times(spec, task)
    return Estimate(per_hour=per_hour, at_most=round(at_most, 2), prices_date=prices.effective)


def batch_estimate(machines: Machines, prices: Prices, region: str) -> Estimate | None:
    """Return an upper bound of a batch prediction that works until it is given up; None: a price is unknown."""
    rate = _hourly(prices, machines, region, spot=False)
    if rate is None:
        return None
    at_most = round(rate * machines.timeout_s / 3600, 2)
    return Estimate(per_hour={"predict": round(rate, 4)}, at_most=at_most, prices_date=prices.effective)


def unknown_prices(machines: Mapping[JobTask, Machines], prices: Prices | None, region: str) -> tuple[str, ...]:
    """Return what a run's jobs need and the price list of a region does not have, each once, in their order."""
    pools = [pool for of_task in machines.values() for pool in of_task.pools if pool.count]
    names = [name for pool in pools for name in _names(pool) if not prices or _part(prices, region, pool, name) is None]
    return tuple(dict.fromkeys(names))


def machine_hourly(prices: Prices, machine: str, region: str, accelerator: Accelerator | None = None) -> float | None:
    """Return the price of an hour of a machine without its disk, as of an endpoint's; None where it is not known."""
    pool = Pool(machine=machine, count=1, accelerator=accelerator)
    rates = [_part(prices, region, pool, name) for name in _names(pool) if name != pool.disk_type]
    known = [rate for rate in rates if rate is not None]
    return round(sum(known) * (1 + prices.surcharge), 4) if len(known) == len(rates) else None


def _times(spec: ModelSpec, task: JobTask) -> int:
    """Return how often a task's machines run at most."""
    if task != "tune" or spec.tuning is None:
        return 1
    return 0 if spec.tuning.search == "never" else spec.tuning.max_trials


def require_budget(spec: ModelSpec, estimated: Estimate | None, unknown: Sequence[str] = ()) -> None:
    """Refuse a run that may cost more than its spec allows; without a budget every run passes.

    Args:
        spec: With the budget.
        estimated: What the run may cost; None: nobody knows.
        unknown: What has no price, for the message.

    Raises:
        BudgetError: Its jobs cost more when each runs until its timeout, or nobody knows what they cost.
    """
    if spec.budget_usd is None:
        return
    where, way_out = f"{spec.name}, budget_usd", "trigger the run with the Param over_budget"
    if estimated is None:
        raise BudgetError(
            where,
            f"price unknown: no list price for {', '.join(unknown) or 'its machines'} in this region",
            "a budget whose machines all have a price in include/prices",
            f"Add a newer file with it, remove budget_usd, or {way_out}",
        )
    if estimated.at_most > spec.budget_usd:
        rates = ", ".join(f"{task} {rate:.2f} USD an hour" for task, rate in estimated.per_hour.items())
        raise BudgetError(
            where,
            f"up to {estimated.at_most:.2f} USD for one attempt of each job until its timeout ({rates})",
            f"at most {spec.budget_usd:.2f} USD",
            f"Shorten training.cluster.timeout_hours, take smaller machines, or {way_out}",
        )


def job_cost(machines: Machines, seconds: float, spot_seconds: float, prices: Prices, region: str) -> float | None:
    """Return what a task's jobs cost at list prices, in US dollars; None where a price is not known.

    Args:
        machines: The task's machines.
        seconds: How long all its jobs ran.
        spot_seconds: How long of it on spot machines.
        prices: List prices.
        region: Where they ran.
    """
    rates = [_hourly(prices, machines, region, spot=spot) for spot in (False, True)]
    if rates[0] is None or rates[1] is None:
        return None
    return round((rates[0] * (seconds - spot_seconds) + rates[1] * spot_seconds) / 3600, 4)


def query_cost(bytes_processed: int, prices: Prices, region: str) -> float | None:
    """Return the on-demand price of a query in US dollars; BigQuery bills at least 10 MB. None: it is not known."""
    query_tib = _of(prices, region).query_tib
    return None if query_tib is None else round(max(bytes_processed, 10_000_000) / 2**40 * query_tib, 6)


def _hourly(prices: Prices, machines: Machines, region: str, *, spot: bool) -> float | None:
    rates = [pool_hourly(prices, pool, region, spot=spot) for pool in machines.pools if pool.count]
    return None if any(rate is None for rate in rates) else sum(rate for rate in rates if rate is not None)


def pool_hourly(prices: Prices, pool: Pool, region: str, *, spot: bool = False) -> float | None:
    """Return the price of an hour of equal machines: spot machines are cheaper, their disks are not. None: unknown."""
    parts = {name: _part(prices, region, pool, name) for name in _names(pool)}
    if any(part is None for part in parts.values()):
        return None
    known = {name: part for name, part in parts.items() if part is not None}
    disk = known.pop(pool.disk_type)
    factor = prices.spot_factors.get(_split_machine(pool.machine)[0], prices.spot_factor) if spot else 1.0
    rate = sum(known.values()) * factor
    return pool.count * (rate + disk) * (1 + prices.surcharge)


def _names(pool: Pool) -> tuple[str, ...]:
    """Return the names under which a pool's prices are looked up: machine, accelerator, disk."""
    accelerator = (pool.accelerator.type,) if pool.accelerator else ()
    return (pool.machine, *accelerator, pool.disk_type)


def _part(prices: Prices, region: str, pool: Pool, name: str) -> float | None:
    """Return the price of an hour of one part of a machine, before Vertex AI's surcharge."""
    if name == pool.machine:
        return _machine_rate(prices, region, pool.machine, pool.tpu_topology)
    of_region = _of(prices, region)
    if pool.accelerator and name == pool.accelerator.type:
        family, size, _ = _split_machine(pool.machine)
        if f"{family}-{size}" in of_region.with_gpus:
            return 0.0  # in the machine's price
        # More than 8 cores are slices of a pod, which have a price of their own.
        pod = name in ("TPU_V2", "TPU_V3") and pool.accelerator.count > 8
        each = of_region.accelerators.get(f"{name}_POD" if pod else name)
        return None if each is None else pool.accelerator.count * each
    disk = of_region.disk_gb_month.get(name)
    return None if disk is None else pool.disk_gb * disk / 730


def _machine_rate(prices: Prices, region: str, machine: str, topology: str | None = None) -> float | None:
    if machine == "cloud-tpu":
        return 0.0  # its host is in the TPU's price
    of_region = _of(prices, region)
    family, size, number = _split_machine(machine)
    kind = f"{family}-{size}"
    if number is None:
        return None
    if kind in prices.tpu_chips:
        chip = of_region.accelerators.get(prices.tpu_chips[kind])
        chips = math.prod(int(side) for side in topology.split("x")) if topology else number
        return None if chip is None else chips * chip
    if kind in of_region.with_gpus:
        return number * of_region.with_gpus[kind]
    shape, rate = prices.shapes.get(family, {}).get(size), of_region.machines.get(family)
    if shape is None or rate is None:
        return None
    vcpus = number * (shape.vcpus_per_gpu or 1)
    memory_gb = shape.memory_gb.get(machine, vcpus * shape.memory_gb_per_vcpu)
    return vcpus * rate.vcpu_hour + memory_gb * rate.memory_gb_hour


def _of(prices: Prices, region: str) -> RegionPrices:
    return prices.regions.get(region) or RegionPrices()


def _split_machine(machine: str) -> tuple[str, str, int | None]:
    """Split `n1-standard-8` into family, size class and its number, of vCPUs, GPUs (`8g`) or TPU chips (`4t`).

    The number is None when the name has another form.
    """
    found = re.fullmatch(r"([a-z0-9]+)-([a-z]+)-(\d+)[gt]?", machine)
    return (found[1], found[2], int(found[3])) if found else (machine, "", None)
