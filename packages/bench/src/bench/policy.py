"""`make bench-policy`: what the retraining policy comes to in a year of 30 worlds, beside the release before.

Out: `policy.json`, and the table of `docs/monitoring.md`. The decisions are the product's own (`policy_year.py`); the
worlds are made up (`policy_worlds.py`).
"""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bench.policy_worlds import WORLDS, World
from bench.policy_year import Year

RESULT_PATH = Path(__file__).with_name("policy.json")
SCHEDULES: Mapping[str, int | None] = {"none": None, "weekly": 7}
RULES: Mapping[str, bool] = {"before": True, "now": False}


def measure(world: World) -> dict[str, Any]:
    """Return what the years of a world came to, by schedule and rules."""
    found: dict[str, Any] = {}
    for name, days in SCHEDULES.items():
        found[name] = {}
        for rules, is_earlier in RULES.items():
            year = Year(world=world, schedule_days=days, is_earlier=is_earlier)
            year.play()
            found[name][rules] = year.summary()
    return found


def table_rows(known: Mapping[str, Any]) -> list[str]:
    """Return the rows of the page's table: without a schedule and with one, each before and now."""
    rows = []
    for world, found in known["worlds"].items():
        cells = []
        for schedule in SCHEDULES:
            before, now = found[schedule]["before"], found[schedule]["now"]
            cells.append(f"{before['regret']:.3f} → {now['regret']:.3f}")
            cells += [f"{before[name]} → {now[name]}" for name in ("orders", "stuck")]
        rows.append(f"| {world} | {' | '.join(cells)} |")
    return rows


def main() -> int:
    """Measure all worlds."""
    worlds = {}
    for world in WORLDS:
        worlds[world.name] = measure(world)
        print(world.name, json.dumps(worlds[world.name]["none"]["now"]), flush=True)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__}
    known = {"measured": str(datetime.datetime.now(datetime.UTC).date()), "machine": machine, "worlds": worlds}
    RESULT_PATH.write_text(json.dumps(known, indent=1, sort_keys=False) + "\n", encoding="utf-8")
    print("\n".join(table_rows(known)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
