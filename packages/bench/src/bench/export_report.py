"""What `make bench-export` found: medians, ratios, and whether what was to be reached is reached."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

Key = tuple[str, str, str]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One turn of a contender.

    Attributes:
        rows: Written.
        seconds: From the first batch read to the file's end.
        bytes: Of the file.
        working_set_mb: Growth of the process meanwhile, at its largest.
        first_batch_s: Until the first records were there; of ours.
        pandas: Whether it was imported.
    """

    rows: int
    seconds: float
    bytes: int
    working_set_mb: float
    first_batch_s: float | None
    pandas: bool


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Everything, as it goes into the JSON file."""

    measured: str
    machine: Mapping[str, Any]
    rounds: int
    scale: float
    rows: Sequence[Mapping[str, Any]]
    jobs: Mapping[str, Any]

    def document(self) -> dict[str, Any]:
        """Return it as JSON, with the targets."""
        return {**asdict(self), "targets": [asdict(target) for target in targets(self)]}


@dataclass(frozen=True, kw_only=True)
class Target:
    """One thing to reach; `reached` is at least, or at most, `limit`."""

    name: str
    limit: float
    measured: float
    at_most: bool = False

    @property
    def reached(self) -> bool:
        """Whether it is."""
        return self.measured <= self.limit if self.at_most else self.measured >= self.limit


class Contending(Protocol):
    """A contender, as far as it matters here."""

    @property
    def key(self) -> Key:
        """Writer, data, compression."""


def summarise(readings: Sequence[tuple[Contending, Reading]]) -> list[dict[str, Any]]:
    """Return a row per contender: medians of rates, the largest of memory and first batch, ratio to the tutorial."""
    taken: dict[Key, list[Reading]] = {}
    for contender, reading in readings:
        taken.setdefault(contender.key, []).append(reading)
    rates = {key: statistics.median(one.rows / one.seconds for one in some) for key, some in taken.items()}
    return [_row(key, some, rates) for key, some in taken.items()]


def _row(key: Key, taken: Sequence[Reading], rates: Mapping[Key, float]) -> dict[str, Any]:
    writer, data, compression = key
    tutorial = rates.get(("tutorial", data, compression))
    per_row = taken[0].bytes / taken[0].rows
    firsts = [one.first_batch_s for one in taken if one.first_batch_s is not None]
    return {
        "contender": writer,
        "data": data,
        "compression": compression,
        "rows": taken[0].rows,
        "rows_per_s": round(rates[key]),
        "ratio_to_tutorial": None if tutorial is None else round(rates[key] / tutorial, 1),
        "mb_per_s": round(rates[key] * per_row / 1e6, 1),
        "bytes_per_row": round(per_row, 1),
        "slowest_to_fastest": [round(one.rows / one.seconds) for one in sorted(taken, key=lambda one: -one.seconds)],
        "working_set_mb": max(one.working_set_mb for one in taken),
        "first_batch_s": round(max(firsts), 3) if firsts else None,
        "pandas": any(one.pandas for one in taken),
    }


def targets(measured: Measured) -> list[Target]:
    """Compare with what is to be reached; what was not measured is left out."""
    rows = {(row["contender"], row["data"], row["compression"]): row for row in measured.rows}
    compared = list(_ratios(rows))
    ours = [row for key, row in rows.items() if key[0] == "ours"]
    if mixed := rows.get(("ours", "mixed", "none")):
        compared.append(Target(name="mixed: MB/s", limit=1000, measured=mixed["mb_per_s"]))
    if ours:
        memory = max(row["working_set_mb"] for row in ours)
        compared.append(Target(name="growth in memory: MB", limit=128, measured=memory, at_most=True))
        first = max(row["first_batch_s"] for row in ours)
        compared.append(Target(name="first records, cold: s", limit=0.15, measured=first, at_most=True))
        compared.append(
            Target(name="pandas imported", limit=0, measured=sum(row["pandas"] for row in ours), at_most=True)
        )
    return compared + list(_job_targets(measured.jobs))


def _ratios(rows: Mapping[Key, Mapping[str, Any]]) -> Iterator[Target]:
    for data, compression, other, limit in (
        ("flights", "none", "tutorial", 45),
        ("flights", "GZIP", "tutorial", 40),
        ("flights", "none", "tfx_bsl", 4),
        ("flights", "GZIP", "tfx_bsl", 8),
        ("flights", "none", "beam", 90),
        ("wide", "none", "tutorial", 60),
        ("hashy", "none", "tutorial", 25),
    ):
        mine, theirs = rows.get(("ours", data, compression)), rows.get((other, data, compression))
        if mine and theirs:
            ratio = mine["rows_per_s"] / theirs["rows_per_s"]
            yield Target(name=f"{data}, {compression}: times {other}", limit=limit, measured=round(ratio, 1))


def _job_targets(jobs: Mapping[str, Any]) -> Iterator[Target]:
    if jobs:
        span, daily = jobs["span"], jobs["night"]
        yield Target(name="whole export of a day: rows/s", limit=500_000, measured=span["rows_per_s"])
        if span["memory_mb"] is not None:
            yield Target(
                name="whole export of a day: MB of memory", limit=128, measured=span["memory_mb"], at_most=True
            )
        share = round(1 / 60 + 0.02, 4)
        yield Target(name="night: share of the rows read", limit=share, measured=daily["rows_share"], at_most=True)
        yield Target(name="night: share of the bytes written", limit=share, measured=daily["bytes_share"], at_most=True)


def render(measured: Measured) -> str:
    """Return the tables as text."""
    heads = ("contender", "data", "compression", "rows", "rows/s", "MB/s", "x tutorial", "memory MB")
    form = "{:<9} {:<8} {:<11} {:>9} {:>10} {:>8} {:>10} {:>9}"
    lines = [form.format(*heads)]
    for row in measured.rows:
        ratio = "" if row["ratio_to_tutorial"] is None else f"{row['ratio_to_tutorial']:.1f}"
        what = (row["contender"], row["data"], row["compression"], f"{row['rows']:,}", f"{row['rows_per_s']:,}")
        lines.append(form.format(*what, f"{row['mb_per_s']:,.0f}", ratio, f"{row['working_set_mb']:.0f}"))
    compared = targets(measured)
    lines.append("")
    for target in compared:
        sign = "at most" if target.at_most else "at least"
        verdict = "" if target.reached else "  MISSED"
        lines.append(f"{target.name:<40} {sign:<8} {target.limit:>11,.6g} {target.measured:>13,.6g}{verdict}")
    if own := (measured.jobs or {}).get("span", {}).get("rows_per_cpu_s"):
        lines.append(f"whole export of a day: {own:,} rows a second of the job's own CPU time, start included")
    missed = sum(not target.reached for target in compared)
    lines.append(f"bench-export: {len(compared) - missed} of {len(compared)} targets reached")
    return "\n".join(lines)
