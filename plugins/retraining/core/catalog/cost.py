"""Money at list prices: an upper bound before the run, the actual sum after it. Prices are dated data files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Literal

from retraining.core.documents.document import Document, Text, Value
from retraining.core.documents.plan import Estimate, JobTask, Machines, Pool
from retraining.core.errors import ContractError, PlanError, SettingsError
from retraining.core.spec.model import ModelSpec


class MachinePrice(Value):
    """Price per hour of vCPUs and memory, from which a machine type's price follows."""

    vcpu_hour: float
    memory_gb_hour: float
    memory_gb_per_vcpu: dict[str, float]


class Prices(Document):
    """List prices of one day, in US dollars, for some regions.

    `machines` maps a machine family (`n1`) to its prices, `accelerators` Vertex AI's name to a price per hour,
    `disk_gb_month` a disk's type to its price. The prices of tables and storage are for plans on paper
    (docs/scaling.md); free allowances are not taken off.
    """

    kind: Literal["prices"] = "prices"
    effective: date
    source: Text
    note: str
    regions: tuple[str, ...]
    machines: dict[str, MachinePrice]
    accelerators: dict[str, float]
    disk_gb_month: dict[str, float]
    query_tib: float
    table_gb_month: float
    table_read_tb: float
    storage_gb_month: float
    storage_writes_1000: float
    storage_reads_1000: float
    spot_factor: float


def load_prices(include: Path) -> Prices | None:
    """Return the newest file of `include/prices` (they are named by date); None when there is none.

    Raises:
        SettingsError: It is malformed.
    """
    files = sorted((include / "prices").glob("*.json"))
    if not files:
        return None
    try:
        return Prices.parse(files[-1].read_bytes(), files[-1].name)
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
    if region not in prices.regions:
        return None
    per_hour: dict[str, float] = {}
    at_most = 0.0
    for task, of_task in machines.items():
        rate = _hourly(prices, of_task, spot=False)
        if rate is None:
            return None
        per_hour[task] = round(rate, 4)
        at_most += rate * of_task.timeout_s / 3600 * _times(spec, task)
    return Estimate(per_hour=per_hour, at_most=round(at_most, 2), prices_date=prices.effective)


def batch_estimate(machines: Machines, prices: Prices, region: str) -> Estimate | None:
    """Return an upper bound of a batch prediction that works until it is given up; None: a price is unknown."""
    rate = _hourly(prices, machines, spot=False) if region in prices.regions else None
    if rate is None:
        return None
    at_most = round(rate * machines.timeout_s / 3600, 2)
    return Estimate(per_hour={"predict": round(rate, 4)}, at_most=at_most, prices_date=prices.effective)


def _times(spec: ModelSpec, task: JobTask) -> int:
    """Return how often a task's machines run at most."""
    if task != "tune" or spec.tuning is None:
        return 1
    return 0 if spec.tuning.search == "never" else spec.tuning.max_trials


def require_budget(spec: ModelSpec, estimated: Estimate | None) -> None:
    """Refuse a run that may cost more than its spec allows.

    Raises:
        PlanError: Its jobs cost more when each runs until its timeout, or nobody knows what they cost.
    """
    if spec.budget_usd is None:
        return
    where, way_out = f"{spec.name}, budget_usd", "trigger the run with the Param over_budget"
    if estimated is None:
        raise PlanError(
            where,
            "no list price for its machines in this region",
            "a file in include/prices that has them",
            f"Add one, or {way_out}",
        )
    if estimated.at_most > spec.budget_usd:
        rates = ", ".join(f"{task} {rate:.2f} USD an hour" for task, rate in estimated.per_hour.items())
        raise PlanError(
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
    if region not in prices.regions:
        return None
    rate, spot_rate = _hourly(prices, machines, spot=False), _hourly(prices, machines, spot=True)
    if rate is None or spot_rate is None:
        return None
    return round((rate * (seconds - spot_seconds) + spot_rate * spot_seconds) / 3600, 4)


def query_cost(bytes_processed: int, prices: Prices, region: str) -> float | None:
    """Return the on-demand price of a query in US dollars; BigQuery bills at least 10 MB."""
    if region not in prices.regions:
        return None
    return round(max(bytes_processed, 10_000_000) / 2**40 * prices.query_tib, 6)


def _hourly(prices: Prices, machines: Machines, *, spot: bool) -> float | None:
    rates = [_pool_hourly(prices, pool, spot) for pool in machines.pools if pool.count]
    return None if any(rate is None for rate in rates) else sum(rate for rate in rates if rate is not None)


def _pool_hourly(prices: Prices, pool: Pool, spot: bool) -> float | None:
    rate, disk = _machine_hourly(prices, pool.machine), prices.disk_gb_month.get(pool.disk_type)
    if rate is None or disk is None:
        return None
    if pool.accelerator:
        if pool.accelerator.type not in prices.accelerators:
            return None
        rate += pool.accelerator.count * prices.accelerators[pool.accelerator.type]
    if spot:
        rate *= prices.spot_factor
    return pool.count * (rate + pool.disk_gb * disk / 730)


def _machine_hourly(prices: Prices, machine: str) -> float | None:
    if machine == "cloud-tpu":
        return 0.0  # its host is in the TPU's price
    family, size, vcpus = _split_machine(machine)
    price = prices.machines.get(family)
    if price is None or size not in price.memory_gb_per_vcpu or vcpus is None:
        return None
    return vcpus * (price.vcpu_hour + price.memory_gb_hour * price.memory_gb_per_vcpu[size])


def _split_machine(machine: str) -> tuple[str, str, int | None]:
    """Split `n1-standard-8` into family, size class, vCPUs (None when the name has another form)."""
    parts = machine.split("-")
    if len(parts) != 3 or not parts[2].isdigit():
        return machine, "", None
    return parts[0], parts[1], int(parts[2])
