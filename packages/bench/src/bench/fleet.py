"""`make bench-fleet`: a night of many models in one small Airflow on the local cloud.

In: how many models, how many worker slots, how their jobs get machines, how long a machine takes to start. Out:
build/bench/fleet.json and its table; exit code 0 only if exactly the broken models failed, each at its own task, no job
was paid twice and none was left running. What runs is a child process (`bench.fleet_night`), whose servers end with it,
however it ends.
"""

from __future__ import annotations

import argparse
import sys

from bench.fleet_models import KINDS, SEPARATE
from retraining_laptop.supervision import supervise

NAME = "bench-fleet"


def main() -> int:
    """Play the night in a child; return its exit code."""
    parse()
    return supervise("bench.fleet_night", sys.argv[1:], NAME)


def parse() -> argparse.Namespace:
    """Return the options, of this process and of its child."""
    parser = argparse.ArgumentParser(prog=NAME, description="Measure a night of many models in one small Airflow.")
    parser.add_argument("--models", type=_count, default=20, help="models that must succeed, 1 to 1000")
    parser.add_argument("--slots", type=_count, default=4, help="tasks at once, 1 to 1000")
    parser.add_argument("--jobs", choices=KINDS, default=SEPARATE, help="of each good model")
    parser.add_argument("--start", type=_seconds, default=0, help="seconds that a job's machine takes to start")
    parser.add_argument(
        "--quota", type=_jobs, default=0, help="jobs that the region's quota lets work at once; 0: none"
    )
    return parser.parse_args()


def _count(text: str) -> int:
    if text.isdigit() and 1 <= int(text) <= 1000:
        return int(text)
    raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number from 1 to 1000")


def _jobs(text: str) -> int:
    return 0 if text == "0" else _count(text)


def _seconds(text: str) -> int:
    if text.isdigit() and int(text) <= 3600:
        return int(text)
    raise argparse.ArgumentTypeError(f"found {text!r}, expected whole seconds from 0 to 3600")


if __name__ == "__main__":
    sys.exit(main())
