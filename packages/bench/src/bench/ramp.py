"""`make bench-ramp`: how often ramps of equal versions go back, and how soon one that is worse does, by traffic.

Out: `ramp.json`, and the rows of the table of `docs/deployment.md`. The evidence is the product's own, by the minute;
answers are drawn: errors by a rate, times from a lognormal distribution, counted in the service's buckets.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import math
import os
import platform
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from retraining.core.promotion.latencies import Latencies
from retraining.core.promotion.ramp_gates import AS_GOOD, MOST_BAKES, WORSE
from retraining.core.promotion.two_samples import Block, Scales
from retraining.core.spec.deployment import Canary

RESULT_PATH = Path(__file__).with_name("ramp.json")
CANARY = Canary()
TRAFFIC = (1, 10, 100, 1000)
"""Requests a second, of both versions together."""

SIGMA, MEDIAN_MS, GROWTH = 0.5, 20.0, 1.4


@dataclass(frozen=True, kw_only=True)
class Case:
    """Both versions' error rates, and how many times as long the new one takes."""

    old: float
    new: float
    slower: float = 1.0


CASES: Mapping[str, Case] = {
    "equal, 0.2 % errors": Case(old=0.002, new=0.002),
    "equal, 2 % errors": Case(old=0.02, new=0.02),
    "0.2 % → 1.2 %": Case(old=0.002, new=0.012),
    "2 % → 3 %": Case(old=0.02, new=0.03),
    "0.09 % → 0.9 %": Case(old=0.0009, new=0.009),
    "1.5 times as slow": Case(old=0.002, new=0.002, slower=1.5),
}


class Times:
    """How probable a slow answer is, by the bound that the product chooses.

    Args:
        canary: With the margin.
    """

    def __init__(self, canary: Canary) -> None:
        bounds = tuple(GROWTH**power for power in range(67))
        edges = itertools.pairwise((*(self._below(bound) for bound in (0.0, *bounds)), 1.0))
        history = Latencies(bounds=bounds, counts=tuple(round(1e6 * (high - low)) for low, high in edges))
        slow_ms = history.slow_ms(canary.max_latency_ratio)
        if slow_ms is None:
            raise ValueError(f"no bound is slow at a ratio of {canary.max_latency_ratio}")
        self.slow_ms = slow_ms
        self.over = 1 - self._below(slow_ms)
        """Of the version before, over the new version's bound."""
        low = slow_ms / GROWTH
        self.within = 1 - self._below(low) - self.over
        self.part = (slow_ms - slow_ms / canary.max_latency_ratio) / (slow_ms - low)
        """Of those in the bucket below it that count as slow."""

    def new(self, slower: float) -> float:
        """Return how probable a slow answer of the new version is."""
        return 1 - self._below(self.slow_ms / slower)

    @staticmethod
    def _below(time_ms: float) -> float:
        return 0.5 * math.erfc(-math.log(time_ms / MEDIAN_MS) / SIGMA / math.sqrt(2)) if time_ms > 0 else 0.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a ramp ended: `back` by a gate, `as good` or `none` after all steps; minutes, and answers of the new one."""

    how: str
    minutes: int
    answers: int


def play(case: Case, requests_a_minute: int, draw: np.random.Generator, canary: Canary = CANARY) -> Ended:
    """Play one ramp, with a look each minute; with too few requests it goes on."""
    shares = [percent / 100 for percent in canary.percent if percent < 100]
    errors, slow, times = Scales(canary.max_error_increase, len(shares)), Scales(0.0, len(shares)), Times(canary)
    minutes = answers = 0
    proven = False
    for step, share in enumerate(shares):
        for minute in range(1, MOST_BAKES * canary.bake_minutes + 1):
            new = int(draw.binomial(requests_a_minute, share))
            old = requests_a_minute - new
            minutes, answers = minutes + 1, answers + new
            bad = int(draw.binomial(new, case.new)), int(draw.binomial(old, case.old))
            errors.add(step, Block(new=new, new_bad=bad[0], old=old, old_bad=bad[1]))
            over, within, _ = draw.multinomial(old, (times.over, times.within, 1 - times.over - times.within))
            late = int(draw.binomial(new, times.new(case.slower)))
            slow.add(step, Block(new=new, new_bad=late, old=old, old_bad=float(over + times.part * within)))
            found = errors.evidence, slow.evidence
            if any(each.worse >= WORSE for each in found):
                return Ended(how="back", minutes=minutes, answers=answers)
            proven = all(each.as_good >= AS_GOOD for each in found)
            if minute >= canary.bake_minutes and (proven or share != shares[-1]):
                break
    return Ended(how="as good" if proven else "none", minutes=minutes, answers=answers)


def measure(case: Case, a_second: int, ramps: int, seed: int = 20261126) -> dict[str, Any]:
    """Return what so many ramps came to."""
    draw = np.random.default_rng((seed, a_second))
    ended = [play(case, 60 * a_second, draw) for _ in range(ramps)]
    back = [each for each in ended if each.how == "back"]
    return {
        "back": len(back) / ramps,
        "as_good": sum(each.how == "as good" for each in ended) / ramps,
        "minutes_until_back": statistics.median(each.minutes for each in back) if back else None,
        "answers_until_back": statistics.median(each.answers for each in back) if back else None,
        "minutes": statistics.median(each.minutes for each in ended),
    }


def earlier_rule(rate: float, a_second: int, ramps: int, seed: int = 20261126) -> float:
    """Return the share of equal ramps that the release before rolled back: the rate over 1 % and the other's."""
    draw, back = np.random.default_rng(seed), 0
    for _ in range(ramps):
        failed = False
        for percent in (1, 10, 50):
            new = 60 * 15 * a_second * percent // 100
            old = 60 * 15 * a_second - new
            failed |= draw.binomial(new, rate) / new > max(0.01, draw.binomial(old, rate) / old)
        back += failed
    return back / ramps


def table_rows(known: Mapping[str, Any]) -> list[str]:
    """Return the rows of the page's table: of each case and traffic what came of the ramps."""
    rows = []
    for name, by_traffic in known["cases"].items():
        cells = []
        for found in by_traffic.values():
            after = found["minutes_until_back"]
            cells.append(
                f"{found['back']:.1%}" + (f", {after:g} min" if after is not None and found["back"] > 0.5 else "")
            )
            cells[-1] += f"; {found['as_good']:.0%}" if name.startswith("equal") else ""
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return rows


def main() -> int:
    """Measure all cases."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ramps", type=int, default=100)
    ramps = parser.parse_args().ramps
    cases: dict[str, Any] = {}
    for name, case in CASES.items():
        cases[name] = {}
        for a_second in TRAFFIC:
            cases[name][str(a_second)] = measure(case, a_second, ramps)
            print(name, a_second, json.dumps(cases[name][str(a_second)]), flush=True)
    before = {f"{rate:.0%}": earlier_rule(rate, 100, 2000) for rate in (0.02, 0.01)}
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    known = {
        "measured": str(datetime.datetime.now(datetime.UTC).date()),
        "machine": machine,
        "ramps": ramps,
        "equal_ramps_rolled_back_by_the_release_before": before,
        "cases": cases,
    }
    RESULT_PATH.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print("\n".join(table_rows(known)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
