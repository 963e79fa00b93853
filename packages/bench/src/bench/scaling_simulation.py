"""What the export's assignment of units to replicas costs: `unit i belongs to replica i mod N`, played out.

In: units (rows per shard file), replicas, what befalls them. Out: when the last unit is written, against the ideal of
work spread without a rest. The model is the exporter's (`trainer/export`): a replica writes its units one after the
other, a unit that is cut off is written anew, what is written is never written again, and the chief finishes what
others leave behind once nothing new appeared for `patience_s`. Everything follows from a seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Sorting = Literal["spans", "largest first"]
_FIRST_PAUSE_S, _PAUSE_GROWTH, _LONGEST_PAUSE_S = 1.0, 1.5, 30.0  # of the chief between two looks, as the exporter's
DAY_PATTERN = (1.0, 1.0, 0.95, 1.0, 1.05, 0.7, 0.85)  # rows of a weekday against Monday's, in the flights data's manner


@dataclass(frozen=True, kw_only=True)
class Workload:
    """What is to be written.

    Attributes:
        name: For tables.
        units: Rows of each unit in the order of the request: by span, part and shard.
    """

    name: str
    units: tuple[int, ...]

    @property
    def rows(self) -> int:
        """All rows."""
        return sum(self.units)


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One replica.

    Attributes:
        rows_per_s: What it writes while it works, all cores together.
        unit_s: What a unit costs besides its rows: a read session, two uploads.
        start_s: From the job's start, and from a restart, to the first row.
    """

    rows_per_s: float
    unit_s: float = 0.3
    start_s: float = 60.0


@dataclass(frozen=True, kw_only=True)
class Misfortune:
    """What befalls the replicas.

    Attributes:
        lost: Replicas that end for good somewhere in the middle of their work (never the chief: its end is the job's).
        preemptions_per_hour: Of each replica, as a Poisson process.
        restart_s: From a preemption until the machine is there again.
        patience_s: How long the chief waits for progress of others before it takes their units.
    """

    lost: int = 0
    preemptions_per_hour: float = 0.0
    restart_s: float = 120.0
    patience_s: float = 600.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How it went.

    Attributes:
        makespan_s: From the start until the chief has seen the last unit.
        ideal_s: Start, then all work spread evenly.
        written_twice: Units that two replicas wrote (they are equal, one is dropped).
        by_chief: Units that the chief took from others.
    """

    makespan_s: float
    ideal_s: float
    written_twice: int
    by_chief: int

    @property
    def ratio(self) -> float:
        """Makespan against the ideal."""
        return self.makespan_s / self.ideal_s


def make_workload(
    name: str,
    *,
    rows: int,
    spans: int,
    validation_percent: int,
    rows_per_shard: int,
    spread: float = 0.0,
    seed: int = 0,
) -> Workload:
    """Spread rows over spans, parts and shards as a snapshot does.

    Args:
        rows: Of all spans together.
        spans: Days.
        validation_percent: Rows of each span that are validation.
        rows_per_shard: A part with more rows has several equal shards.
        spread: Sigma of the logarithm of a span's size beside the week's pattern: 0 for none, 1.5 for a few giants.
        seed: Decides the sizes.
    """
    chance = random.Random(f"{name} {seed}")
    weights = [DAY_PATTERN[day % 7] * math.exp(chance.gauss(0.0, spread) if spread else 0.0) for day in range(spans)]
    units: list[int] = []
    for weight in weights:
        span_rows = round(rows * weight / sum(weights))
        validation = span_rows * validation_percent // 100
        for part_rows in (span_rows - validation, validation):
            shards = max(1, math.ceil(part_rows / rows_per_shard))
            units += [part_rows // shards] * shards
    return Workload(name=name, units=tuple(units))


def assign(units: Sequence[int], replicas: int, sorting: Sorting) -> list[list[int]]:
    """Give each replica the indexes of its units: every N-th in the given order."""
    indexes = list(range(len(units)))
    if sorting == "largest first":
        indexes.sort(key=lambda index: (-units[index], index))
    return [indexes[replica::replicas] for replica in range(replicas)]


def simulate(
    workload: Workload,
    replicas: int,
    machine: Machine,
    *,
    sorting: Sorting = "largest first",
    misfortune: Misfortune | None = None,
    seed: int = 0,
) -> Outcome:
    """Play an export out.

    Args:
        replicas: How many write it; 0 is the chief.
        sorting: The order in which units are dealt out.
        misfortune: None for none.
        seed: Decides who is lost and when machines are preempted.
    """
    fate = misfortune or Misfortune()
    costs = [machine.unit_s + rows / machine.rows_per_s for rows in workload.units]
    shares = assign(workload.units, replicas, sorting)
    chance = random.Random(f"lost {seed}")
    lost = set(chance.sample(range(1, replicas), min(fate.lost, replicas - 1)))
    written = [math.inf] * len(costs)
    free_s = 0.0
    for replica, share in enumerate(shares):
        timeline = _Timeline(machine, fate, random.Random(f"{replica} {seed}"))
        end_s = machine.start_s + chance.uniform(0.0, 1.0) * sum(costs[unit] for unit in share)
        for unit in share:
            done_s = timeline.work(costs[unit])
            if replica in lost and done_s > end_s:
                break
            written[unit] = done_s
        if replica == 0:
            free_s = timeline.now_s
    chief = _Chief(costs=costs, written=written, patience_s=fate.patience_s)
    return Outcome(
        makespan_s=chief.finish(free_s),
        ideal_s=machine.start_s + sum(costs) / replicas,
        written_twice=chief.twice,
        by_chief=chief.taken,
    )


@dataclass(kw_only=True)
class _Chief:
    """Waits for the others once its own units are written, and finishes what they leave, as `trainer.export.job`."""

    costs: list[float]
    written: list[float]
    patience_s: float
    taken: int = 0
    twice: int = 0

    def finish(self, now_s: float) -> float:
        """Go on from the moment when its own units are written; give the one when all are."""
        since_s, pause_s = now_s, _FIRST_PAUSE_S
        missing = self._missing(now_s)
        while missing:
            if now_s - since_s >= self.patience_s:
                now_s = self._take(missing, now_s)
            else:
                now_s += pause_s
                pause_s = min(pause_s * _PAUSE_GROWTH, _LONGEST_PAUSE_S)
            before, missing = len(missing), self._missing(now_s)
            if len(missing) < before:
                since_s = now_s
        return now_s

    def _missing(self, now_s: float) -> list[int]:
        return [unit for unit, done_s in enumerate(self.written) if done_s > now_s]

    def _take(self, missing: list[int], now_s: float) -> float:
        for unit in missing:
            now_s += self.costs[unit]
            self.twice += self.written[unit] < math.inf
            self.written[unit] = min(self.written[unit], now_s)
        self.taken += len(missing)
        return now_s


@dataclass
class _Timeline:
    """One replica's clock, with its preemptions."""

    machine: Machine
    fate: Misfortune
    chance: random.Random
    now_s: float = field(init=False)
    next_preemption_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.now_s = self.machine.start_s
        self.next_preemption_s = self._draw(0.0)

    def work(self, cost_s: float) -> float:
        """Write one unit, as often as it takes; give the moment when it is written."""
        while self.next_preemption_s < self.now_s + cost_s:
            back_s = self.next_preemption_s + self.fate.restart_s + self.machine.start_s
            self.now_s = max(self.now_s, back_s)
            self.next_preemption_s = self._draw(self.now_s)
        self.now_s += cost_s
        return self.now_s

    def _draw(self, from_s: float) -> float:
        if self.fate.preemptions_per_hour <= 0:
            return math.inf
        return from_s + self.chance.expovariate(self.fate.preemptions_per_hour / 3600)
