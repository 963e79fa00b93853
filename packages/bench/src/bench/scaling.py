"""The tables of docs/scaling.md: what was measured, what follows from it, and the assignment of units played out.

    python -m bench.scaling                 prints every table
    python -m bench.scaling simulate        plays one export out; --help lists what can be chosen
    python -m bench.scaling write PAGE      puts the tables into the page, between its markers

In: `scaling_rates.json` and the package's `prices`; nothing is measured here. Out: Markdown. The same input and seed
give the same text.
"""

from __future__ import annotations

import argparse
import dataclasses
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.scaling_plan import (
    READ_MB_S,
    ROWS_PER_SHARD,
    Size,
    busy_cores,
    flights_size,
    hourly,
    load_prices,
    load_rates,
    other_costs,
    photos_size,
    plan_export,
    plan_input,
    replica,
)
from bench.scaling_simulation import Machine, Misfortune, Outcome, Workload, make_workload, simulate

REPLICAS = (1, 2, 4, 8, 16, 32, 64)
PHOTO_MACHINE = "n1-standard-16"
EXPORT_MACHINES = {"1 billion flights": "n1-standard-4", "10 million photos, jpeg": PHOTO_MACHINE}
INPUT_MACHINE = "n1-standard-16"
ACCELERATOR = "NVIDIA_TESLA_T4"
WORKERS = (1, 4)
SIMULATED = Machine(rows_per_s=150_000, unit_s=0.1, start_s=180)
_MARKER = re.compile(r"(<!-- table: (?P<name>[a-z-]+) -->\n)(?P<table>.*?)(?P<end><!-- end -->)", re.DOTALL)


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def rates_table() -> str:
    """Return what was measured, per second of one core."""
    rates = load_rates()
    flights, photos = rates["flights"], rates["photos"]
    read, memory, whole = flights["read"], flights["export_to_memory"]["cpu_s"], flights["export"]["cpu_s"]
    rows = flights["rows"]
    encoded = memory - read["cpu_s"]
    uploaded = max(whole - memory, 0.0)
    lines = [
        _rate("read rows through the Storage Read API", rows, read["bytes"], read["cpu_s"], "rows"),
        _rate("sort, encode, compress and digest them (files to memory)", rows, flights["file_bytes"], encoded, "rows"),
        _rate("upload the shards", rows, flights["file_bytes"], uploaded, "rows"),
        _rate("the whole export job", rows, flights["file_bytes"], whole, "rows"),
        _probe("parse shards for training", flights["input"], "examples"),
        _probe("read photos", photos["read"], "photos"),
        _probe("decode and resize a photo", photos["resize"], "photos"),
    ]
    for encoding in ("raw", "jpeg"):
        one = photos[encoding]
        size = one["file_bytes"]
        lines.append(_rate(f"the whole export job, {encoding}", photos["rows"], size, one["export"]["cpu_s"], "photos"))
        lines.append(_probe(f"parse {encoding} for training", one["input"], "photos"))
    return markdown(("work", "per core and second", "MB per core and second"), lines)


def _probe(work: str, measured: Mapping[str, float], noun: str) -> list[str]:
    return _rate(work, int(measured["rows"]), int(measured["bytes"]), measured["cpu_s"], noun)


def _rate(work: str, rows: int, size: int, cpu_s: float, noun: str) -> list[str]:
    if cpu_s < 0.01:
        return [work, "too fast to tell apart", ""]
    return [work, f"{_round(rows / cpu_s)} {noun}", _round(size / 1e6 / cpu_s)]


def sizes_table() -> str:
    """Return bytes and shards of each size."""
    lines = [
        [
            size.name,
            f"{size.rows * size.table_bytes / 1e12:.2f} TB",
            f"{size.rows * size.file_bytes / 1e9:,.0f} GB",
            f"{size.rows_per_shard:,}",
            f"{len(size.workload.units):,}",
            f"{size.rows * size.file_bytes / len(size.workload.units) / 1e6:.0f} MB",
        ]
        for size in _sizes()
    ]
    return markdown(("size", "run table", "shards, together", "rows a shard", "shards", "a shard"), lines)


def replica_table() -> str:
    """Return what a replica does: cores, rows a second of a measured core and in the cloud, the read limit."""
    lines = []
    for size in _sizes():
        machine = EXPORT_MACHINES.get(size.name, PHOTO_MACHINE)
        one, bound = replica(size, machine)
        busy = busy_cores(size, machine)
        limit = READ_MB_S * 1e6 / size.table_bytes
        cells = [size.name, machine, f"{busy:.2g}", _round(size.rows_per_core_s), _round(limit), _round(one.rows_per_s)]
        lines.append([*cells, bound])
    return markdown(("size", "machine", "p", "r", "B / a", "w", "bound by"), lines)


def export_table(name: str) -> str:
    """Return time and cost of one size by number of replicas."""
    size = next(size for size in _sizes() if size.name == name)
    machine, prices = EXPORT_MACHINES[name], load_prices()
    lines = []
    for replicas in REPLICAS:
        plan = plan_export(size, replicas, machine, prices)
        rate = replicas * replica(size, machine)[0].rows_per_s
        cells = [str(replicas), _round(rate), _hours(plan.hours), f"{plan.machine_usd:.2f}", f"{plan.spot_usd:.2f}"]
        lines.append([*cells, plan.limit])
    head = ("replicas", "rows/s", "time", f"{machine}, USD", "spot, USD", "bound by")
    return markdown(head, lines)


def costs_table() -> str:
    """Return what is the same whatever the machines."""
    lines = []
    for size in _sizes():
        costs = other_costs(size, load_prices())
        usd_of = (costs.query, costs.read, costs.writes, costs.table, costs.storage_month)
        lines.append([size.name, *(f"{usd:,.2f}" for usd in usd_of)])
    head = ("USD", "snapshot query", "Storage Read API", "writes", "run table, 7 days", "shards, a month")
    return markdown(head, lines)


def input_table() -> str:
    """Return how fast a training can be fed."""
    lines = []
    for size in _sizes():
        for workers in WORKERS:
            plan = plan_input(size, workers, INPUT_MACHINE, load_prices())
            cells = [size.name, str(workers), _round(plan.examples_per_s), _hours(plan.epoch_hours)]
            lines.append([*cells, f"{plan.epoch_usd:.2f}"])
    head = ("size", f"workers, {INPUT_MACHINE}", "examples/s at most", "an epoch at least", "USD an epoch")
    return markdown(head, lines)


def training_table() -> str:
    """Return an epoch of photos on accelerators of a given speed, one on each worker."""
    prices, size = load_prices(), photos_size(load_rates(), "jpeg")
    lines = []
    for per_s in (100, 300, 1000):
        for workers in (1, 4, 16):
            fed = plan_input(size, workers, INPUT_MACHINE, prices)
            hours = fed.epoch_hours * max(1.0, fed.examples_per_s / (workers * per_s))
            accelerator_usd = prices["accelerators"][ACCELERATOR] * (1 + prices["surcharge"])
            usd = hours * workers * (hourly(prices, INPUT_MACHINE) + accelerator_usd)
            bound = "accelerators" if fed.examples_per_s > workers * per_s else "input"
            lines.append([f"{per_s:,}", str(workers), _hours(hours), f"{usd:.2f}", bound])
    head = ("photos/s an accelerator", f"workers, {INPUT_MACHINE} + T4", "an epoch", "USD an epoch", "bound by")
    return markdown(head, lines)


def assignment_table() -> str:
    """Makespan against the ideal: the order in which units are dealt out, how large they are, how skewed days are."""
    small = make_workload(
        "a shard a day", rows=50_000_000, spans=1095, validation_percent=10, rows_per_shard=ROWS_PER_SHARD
    )
    large = [_workload("ten shards a day", 0.0), _workload("skewed days", 1.5)]
    coarse = _workload("skewed days, shards 50 times as large", 1.5, rows_per_shard=50 * ROWS_PER_SHARD)
    lines = []
    started = dataclasses.replace(SIMULATED, start_s=0.0)
    for replicas in REPLICAS[1:]:
        ratios = [simulate(small, replicas, started, sorting="spans").ratio]
        ratios += [simulate(workload, replicas, started).ratio for workload in (small, *large, coarse)]
        lines.append([str(replicas), *(f"{ratio:.2f}" for ratio in ratios)])
    names = (f"{small.name}, dealt by span", f"{small.name}, largest first", *(each.name for each in (*large, coarse)))
    return markdown(("replicas", *names), lines)


def misfortune_table() -> str:
    """Return makespan in minutes when replicas are lost or preempted."""
    workload = _workload("skewed days", 1.5)
    fates = {
        "nothing": Misfortune(),
        "one lost": Misfortune(lost=1),
        "a quarter lost": Misfortune(),
        "one lost, patience 120 s": Misfortune(lost=1, patience_s=120),
        "preempted once in 2 h": Misfortune(preemptions_per_hour=0.5),
    }
    lines = []
    for replicas in REPLICAS[1:]:
        fates["a quarter lost"] = Misfortune(lost=max(1, replicas // 4))
        outcomes = [simulate(workload, replicas, SIMULATED, misfortune=fate) for fate in fates.values()]
        lines.append([str(replicas), *(_outcome(outcome) for outcome in outcomes)])
    return markdown(("replicas", *fates), lines)


def _outcome(outcome: Outcome) -> str:
    by_chief = f", {outcome.by_chief:,} by the chief" if outcome.by_chief else ""
    twice = f", {outcome.written_twice:,} twice" if outcome.written_twice else ""
    return f"{outcome.makespan_s / 60:.0f} min ({outcome.ratio:.2f}{by_chief}{twice})"


def _workload(name: str, spread: float, *, rows_per_shard: int = ROWS_PER_SHARD) -> Workload:
    return make_workload(
        name, rows=10**9, spans=1095, validation_percent=10, rows_per_shard=rows_per_shard, spread=spread
    )


def _sizes() -> list[Size]:
    rates = load_rates()
    return [flights_size(rates), photos_size(rates, "raw"), photos_size(rates, "jpeg")]


def _round(value: float) -> str:
    """Return three digits that mean something."""
    if value < 100:
        return f"{value:.3g}"
    digits = 3 - len(str(int(value)))
    return f"{round(value, digits):,.0f}"


def _hours(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"


TABLES: dict[str, Callable[[], str]] = {
    "rates": rates_table,
    "sizes": sizes_table,
    "replica": replica_table,
    "export-flights": lambda: export_table("1 billion flights"),
    "export-photos": lambda: export_table("10 million photos, jpeg"),
    "costs": costs_table,
    "input": input_table,
    "training": training_table,
    "assignment": assignment_table,
    "misfortune": misfortune_table,
}


def with_tables(page: str) -> str:
    """Return a page with each table between `<!-- table: name -->` and `<!-- end -->` made anew."""
    return _MARKER.sub(lambda match: match[1] + TABLES[match["name"]]() + match["end"], page)


def _simulate(options: argparse.Namespace) -> int:
    workload = make_workload(
        "chosen",
        rows=options.rows,
        spans=options.spans,
        validation_percent=10,
        rows_per_shard=options.rows_per_shard,
        spread=options.spread,
        seed=options.seed,
    )
    machine = Machine(rows_per_s=options.rows_per_s, unit_s=SIMULATED.unit_s, start_s=SIMULATED.start_s)
    fate = Misfortune(lost=options.lost, preemptions_per_hour=options.preemptions, patience_s=options.patience)
    print(f"{workload.rows:,} rows in {len(workload.units):,} units, the largest {max(workload.units):,}")
    for replicas in options.replicas:
        outcome = simulate(workload, replicas, machine, misfortune=fate, seed=options.seed)
        ideal = f"ideal {outcome.ideal_s / 60:.1f} min"
        print(f"{replicas:>4} replicas: {outcome.makespan_s / 60:.1f} min, {ideal}: {_outcome(outcome)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.scaling", description="The tables of docs/scaling.md.")
    commands = parser.add_subparsers(dest="command")
    write = commands.add_parser("write", help="put the tables into a page")
    write.add_argument("page", type=Path)
    play = commands.add_parser(
        "simulate", help="play one export out", formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    numbers: dict[str, tuple[Any, str]] = {
        "rows": (10**9, "of all days"),
        "spans": (1095, "days"),
        "rows-per-shard": (ROWS_PER_SHARD, "a part with more has several"),
        "rows-per-s": (SIMULATED.rows_per_s, "that one replica writes"),
        "spread": (1.5, "sigma of the logarithm of a day's size"),
        "lost": (0, "replicas that end for good"),
        "preemptions": (0.0, "of each replica, an hour"),
        "patience": (600.0, "seconds that the chief waits for progress"),
        "seed": (0, "decides sizes and fates"),
    }
    for name, (default, help_text) in numbers.items():
        play.add_argument(f"--{name}", type=type(default), default=default, help=help_text)
    play.add_argument("--replicas", type=int, nargs="+", default=list(REPLICAS), help="numbers to try")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command."""
    options = _parser().parse_args(arguments)
    if options.command == "simulate":
        return _simulate(options)
    if options.command == "write":
        options.page.write_text(with_tables(options.page.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    for name, table in TABLES.items():
        print(f"## {name}\n\n{table()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
