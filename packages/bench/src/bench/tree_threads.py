"""`make bench-tree-threads`: boosted trees grown by one thread and by as many as there are cores.

In: nothing but this machine. Out: a table, and `build/bench/tree_threads.json`. The trees are those of the recipe,
grown by the trainer's own code on random numbers with two classes. Both take turns within each round, and are compared
within it: where the ratio falls below 1, threads are worth it (`trainer.training.yggdrasil`).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.checkout import REPOSITORY_PATH
from bench.input import machine
from retraining.core.jobs.recipe import recipe_of
from trainer.contract.documents import BinaryLabel
from trainer.models.hyperparameters import read_values
from trainer.models.trees import BoostedTreesHyperparameters
from trainer.training.yggdrasil import BoostedTreesGrower, Columns

_OUT_PATH = REPOSITORY_PATH / "build" / "bench" / "tree_threads.json"
_SHAPES = [  # rows, columns, trees
    (300, 10, 200),
    (1_000, 64, 100),
    (5_000, 10, 100),
    (5_000, 100, 20),
    (20_000, 10, 40),
    (20_000, 50, 15),
    (50_000, 10, 20),
    (50_000, 50, 8),
    (100_000, 10, 10),
    (100_000, 50, 5),
]
_LABEL = BinaryLabel(name="label")


def main(arguments: Sequence[str] | None = None) -> int:
    """Grow all trees, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="bench.tree_threads", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="of each measurement (default: 5)")
    options = parser.parse_args(arguments)
    counts = (1, len(os.sched_getaffinity(0)))
    rows = [measure(*shape, counts, options.rounds) for shape in _SHAPES]
    print(render(rows, counts[1]))
    measured = {"measured": datetime.datetime.now(datetime.UTC).date().isoformat(), "machine": machine()}
    _OUT_PATH.parent.mkdir(parents=True, exist_ok=True)
    _OUT_PATH.write_text(json.dumps({**measured, "rounds": options.rounds, "threads": counts, "rows": rows}, indent=2))
    print(f"bench-tree-threads: wrote {_OUT_PATH.relative_to(REPOSITORY_PATH)}")
    return 0


def measure(rows: int, columns: int, trees: int, counts: Sequence[int], rounds: int) -> dict[str, Any]:
    """Return the milliseconds a tree by threads and round, and the median of the rounds' ratios to one thread."""
    random = np.random.default_rng(1)
    matrix = random.normal(size=(rows, columns)).astype(np.float32)
    targets = (matrix[:, 0] + matrix[:, 1] * matrix[:, 2] + random.normal(size=rows) > 0).astype(np.float64)
    examples = Columns(matrix=matrix, ids=(), targets=targets)
    taken = [[time_trees(examples, trees, threads) for threads in counts] for _ in range(rounds)]
    return {
        "rows": rows,
        "columns": columns,
        "milliseconds": [statistics.median(each) for each in zip(*taken, strict=True)],
        "ratio": statistics.median(each[-1] / each[0] for each in taken),
    }


def time_trees(examples: Columns, trees: int, threads: int) -> float:
    """Grow trees by the recipe; gives milliseconds a tree."""

    class Threaded(BoostedTreesGrower):
        def threads(self, rows: int) -> int:
            del rows
            return threads

    chosen = read_values(BoostedTreesHyperparameters, recipe_of("boosted_trees", examples.rows).hyperparameters)
    with tempfile.TemporaryDirectory(prefix="bench-tree-threads-") as folder:
        grower = Threaded(examples, _LABEL, chosen, 1, Path(folder))
        start = time.perf_counter()
        grower.grow(0, trees)
        return (time.perf_counter() - start) / trees * 1000


def render(rows: Sequence[dict[str, Any]], threads: int) -> str:
    """Return the table of docs/models.md."""
    lines = [
        f"| training rows | columns | ms a tree, one thread | {threads} threads | ratio |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        one, several = row["milliseconds"]
        lines.append(f"| {row['rows']:,} | {row['columns']} | {one:.1f} | {several:.1f} | {row['ratio']:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
