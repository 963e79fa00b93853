"""`make monitor-vectors`: the monitor's verdict and that of TensorFlow Data Validation on the same random columns.

In: a Python interpreter with TensorFlow Data Validation. Out: `monitor_vectors.json`: for each of 180 columns, drawn
from a fixed seed, the distance that it measures of the values, and the one that its comparators measure of the
histograms that `statistics.pbtxt` has of the same values. `packages/bench/tests/test_monitor_vectors.py` draws
the columns again and holds the monitor to them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import monitor_baselines
from bench.checkout import PACKAGES_PATH
from retraining.core.data import tfdv
from retraining.core.documents.checks import FeatureStatistics
from retraining.core.monitoring import distributions

RESULT_PATH = Path(__file__).with_name("monitor_vectors.json")
REFERENCE_ROWS, CURRENT_ROWS = 4000, 1000
PER_KIND = 20
LIMITS = (0.1, 0.3)
DIFFERING = frozenset({"zero_inflated", "constant", "heavy_tailed", "many_categories"})
"""Of which the page says why verdicts on the values differ."""
Values = Sequence[float | None] | Sequence[str | None]
Random = np.random.Generator


@dataclass(frozen=True, kw_only=True)
class Vector:
    """A column as training had it, and as requests have it."""

    name: str
    kind: str
    reference: list[Any]
    current: list[Any]

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return not any(isinstance(value, str) for value in self.reference)


def normal(random: Random, rows: int, change: float) -> Values:
    """Return numbers that move by up to two deviations."""
    return _rounded(random.normal(2 * change, 1 + change, rows))


def zero_inflated(random: Random, rows: int, change: float) -> Values:
    """Return zeros, and from 4 % to all of the others."""
    return _rounded(np.where(random.random(rows) < 0.04 + 0.96 * change, random.exponential(3, rows), 0))


def constant(random: Random, rows: int, change: float) -> Values:
    """Return one number, a share of it another one."""
    return _rounded(np.where(random.random(rows) < change, 500.0, 5.0))


def heavy_tailed(random: Random, rows: int, change: float) -> Values:
    """Return numbers of a Pareto distribution that grow up to tenfold."""
    return _rounded(random.pareto(1.2, rows) * 10**change)


def counts(random: Random, rows: int, change: float) -> Values:
    """Return small whole numbers."""
    return _rounded(random.poisson(2 + 4 * change, rows))


def missing_numbers(random: Random, rows: int, change: float) -> Values:
    """Return numbers of which up to 60 % are missing, and the others stay."""
    return _without(random, _rounded(random.normal(0, 1, rows)), 0.6 * change)


def categories(random: Random, rows: int, change: float) -> Values:
    """Return twelve values whose shares move towards even ones, with a new one."""
    shares = 0.6 ** np.arange(12)
    shares = (1 - change) * shares / shares.sum() + change / 12
    found = random.choice([f"value {place}" for place in range(12)], rows, p=shares / shares.sum())
    return ["new" if new else str(value) for new, value in zip(random.random(rows) < change / 2, found, strict=True)]


def many_categories(random: Random, rows: int, change: float) -> Values:
    """Return twenty thousand equally frequent values, of which a share is replaced by others."""
    found = random.integers(0, 20_000, rows) + np.where(random.random(rows) < change, 20_000, 0)
    return [f"id {place}" for place in found.tolist()]


def missing_categories(random: Random, rows: int, change: float) -> Values:
    """Return three values of which up to 60 % are missing."""
    return _without(random, random.choice(["a", "b", "c"], rows, p=[0.6, 0.3, 0.1]).tolist(), 0.6 * change)


KINDS: Mapping[str, Callable[[Random, int, float], Values]] = {
    each.__name__: each
    for each in (
        normal,
        zero_inflated,
        constant,
        heavy_tailed,
        counts,
        missing_numbers,
        categories,
        many_categories,
        missing_categories,
    )
}


def draw_vectors() -> list[Vector]:
    """Return `PER_KIND` columns of each kind; every fourth is unchanged, the others by a random size."""
    found = []
    for place, (kind, make) in enumerate(KINDS.items()):
        for number in range(PER_KIND):
            random = np.random.default_rng([place, number])
            change = float(random.random()) if number % 4 else 0.0
            reference, current = (
                make(random, rows, size) for rows, size in ((REFERENCE_ROWS, 0.0), (CURRENT_ROWS, change))
            )
            found.append(Vector(name=f"{kind} {number}", kind=kind, reference=list(reference), current=list(current)))
    return found


def statistics_of(values: Sequence[Any], *, numbers: bool) -> FeatureStatistics:
    """Return what a run's statistics have of a column."""
    return monitor_baselines.numeric_statistics(values) if numbers else monitor_baselines.categorical_statistics(values)


def distance_of(vector: Vector, *, without_missing: bool = False) -> distributions.Distance:
    """Return what the monitor measures between training data and requests.

    Args:
        vector: Both.
        without_missing: As TensorFlow Data Validation does, of the values that are there alone.
    """
    reference, current = (
        [value for value in side if value is not None] if without_missing else side
        for side in (vector.reference, vector.current)
    )
    baseline = (
        monitor_baselines.numeric_statistics(reference)
        if vector.is_number
        else monitor_baselines.categorical_statistics(reference)
    )
    return monitor_baselines.distance_of(baseline, len(reference), current)


def _rounded(values: npt.ArrayLike) -> list[float]:
    return [float(value) for value in np.round(np.asarray(values, dtype=float), 6)]


def _without(random: Random, values: Sequence[Any], share: float) -> list[Any]:
    gone = random.random(len(values)) < share
    return [None if missing else value for value, missing in zip(values, gone, strict=True)]


def ask(python: str, vectors: Sequence[Vector]) -> dict[str, Any]:
    """Return what TensorFlow Data Validation measures, in its own environment."""
    asked: dict[str, Any] = {
        "vectors": [{"name": each.name, "reference": each.reference, "current": each.current} for each in vectors]
    }
    for side in ("reference", "current"):
        columns = {
            each.name: statistics_of(getattr(each, side), numbers=each.is_number) for each in vectors if each.is_number
        }
        rows = REFERENCE_ROWS if side == "reference" else CURRENT_ROWS
        asked[side] = tfdv.render_data_set(side, rows, columns)
    environment = os.environ | {"PYTHONPATH": PACKAGES_PATH, "TF_CPP_MIN_LOG_LEVEL": "3"}
    command = [python, "-W", "ignore", "-m", "bench.monitor_contender", "tfdv_vectors"]
    done = subprocess.run(
        command, input=json.dumps(asked), env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def table_rows(known: Mapping[str, Any], vectors: Sequence[Vector]) -> list[str]:
    """Return the rows of the table in `docs/monitoring.md`: how many verdicts of each kind are the same."""
    rows = []
    for kind in KINDS:
        of_kind = [
            (vector, distance_of(vector, without_missing=True).value) for vector in vectors if vector.kind == kind
        ]
        cells = []
        for side in ("values", "pbtxt"):
            theirs = known[side]
            if of_kind[0][0].name in theirs:
                same = [
                    sum((ours > limit) == (theirs[vector.name] > limit) for vector, ours in of_kind) for limit in LIMITS
                ]
                cells.append(" and ".join(map(str, same)))
        cells += ["-"] * (2 - len(cells))
        rows.append(f"| {kind.replace('_', ' ')} | {' | '.join(cells)} |")
    return rows


def main() -> int:
    """Ask, and write the document."""
    vectors = draw_vectors()
    answer = ask(sys.argv[1], vectors)
    made = {"command": "make monitor-vectors", "versions": answer["versions"], "numpy": np.__version__}
    RESULT_PATH.write_text(json.dumps({"made": made, **answer["answers"]}, indent=1) + "\n", encoding="utf-8")
    print("\n".join(table_rows(answer["answers"], vectors)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
