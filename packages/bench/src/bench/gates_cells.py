"""How often the gates err where evidence is scarce: equal models by label rate, groups and slices.

In: nothing but seeds. Out: for each cell the share of comparisons that were judged, and of all the share that promoted,
or stopped, one of two equally good models. Gains go through the judge's own bootstrap. Slices are too many for that:
their standard error is that of infinitely many samples (DeLong, DeLong, Clarke-Pearson 1988, Biometrics 44), which a
test holds to the judge's; evidence, chance and Holm's correction are the product's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from retraining.core.documents.evaluation import LEAST_GROUPS, LEAST_ROWS
from retraining.core.promotion.slices import SliceLoss, surely_worse
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics
from trainer.objective.metrics import Floats

RATES = (0.001, 0.005, 0.01, 0.02, 0.1, 0.5)
"""Shares of positives."""
ALONE, UNEVEN = "none", "14, one of 90 %"
GROUPS: tuple[int | str, ...] = (ALONE, 1, 2, 3, 5, 7, 14, UNEVEN, 50, 1000)
SLICES = (5, 20, 200)
TEST_ROWS, SLICED_ROWS = 4000, 40_000
SAMPLES, CONFIDENCE = 100, 0.95
"""Fewer samples than the judge's 500."""
STOPS_TIMES = 3
"""As often are slices simulated, which takes less."""
NOISE, GROUP_EFFECT = 0.5, 0.3
"""Of a score whose classes lie 1.5 apart: each model's own, and what a group does to a model's positives."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One table cell: shares of all comparisons."""

    row: str
    rate: float
    judged: float
    erred: float


def equal_scores(labels: Floats, random: np.random.Generator) -> list[Floats]:
    """Return the scores of two equally good models. [...] → two of [...]."""
    signal = random.normal(size=labels.shape) + 1.5 * labels
    return [signal + NOISE * random.normal(size=labels.shape) for _ in range(2)]


def number_rows(groups: int | str, random: np.random.Generator) -> npt.NDArray[np.intp] | None:
    """Return each test row's group; None: rows stand for themselves. [n]."""
    if groups == ALONE:
        return None
    if groups == UNEVEN:
        return np.where(random.random(TEST_ROWS) < 0.9, 0, random.integers(1, 14, TEST_ROWS))
    return np.arange(TEST_ROWS) % int(groups)


def promotes(seed: int, rate: float, groups: int | str) -> bool | None:
    """Compare two equal models on test rows drawn anew; None: it is not judged."""
    random = np.random.default_rng(seed)
    labels = (random.random(TEST_ROWS) < rate).astype(np.float64)
    of_row, sides = number_rows(groups, random), equal_scores(labels, random)
    if of_row is not None:
        effects = GROUP_EFFECT * random.normal(size=(2, of_row.max() + 1))
        sides = [side + effect[of_row] * labels for side, effect in zip(sides, effects, strict=True)]
    drawn = Resampling(
        samples=SAMPLES,
        seed=seed,
        confidence=CONFIDENCE,
        groups=of_row,
        min_rows=LEAST_ROWS,
        min_groups=LEAST_GROUPS,
    )
    found = bootstrap_metrics(Pair(labels=labels, challenger=sides[0], champion=sides[1]), ["auc"], drawn)
    return found["auc"].low > 0 if found else None


def stops(seed: int, rate: float, slices: int) -> bool | None:
    """Look for slices in which an equal model surely loses anything, which stops most; None: no slice is judged."""
    random = np.random.default_rng(seed)
    labels = (random.random((slices, SLICED_ROWS // slices)) < rate).astype(np.float64)
    positives = labels.sum(axis=1)
    labels = labels[np.minimum(positives, labels.shape[1] - positives) >= LEAST_ROWS]
    if not len(labels):
        return None
    means, deviations, units = compare_slices(labels, *equal_scores(labels, random))
    losses = [
        SliceLoss(mean=-float(mean), deviation=float(deviation), where="", degrees=float(m) - 1)
        for mean, deviation, m in zip(means, deviations, units, strict=True)
    ]
    return bool(surely_worse(losses, 0.0, 1 - CONFIDENCE))


def compare_slices(labels: Floats, challenger: Floats, champion: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each slice's difference of AUC, its standard error, and the rows of its smaller class.

    Each slice has at least two rows of each class.

    Args:
        labels: [slices, n]
        challenger: [slices, n]
        champion: [slices, n]
    """
    positives = labels.sum(axis=1)
    negatives = labels.shape[1] - positives
    units = np.minimum(positives, negatives)
    differences = _placements(labels, challenger) - _placements(labels, champion)
    variance = np.zeros(len(labels))
    for label, count in ((0, negatives), (1, positives)):
        own = np.where(labels == label, differences, 0)
        mean = own.sum(axis=1) / count  # of either class the difference of AUC
        variance += (np.square(own).sum(axis=1) / count - mean**2) / count
    return mean, np.sqrt(np.maximum(variance, 0) * units / (units - 1)), units


def _placements(labels: Floats, scores: Floats) -> Floats:
    """Return of each row the share of the other class that it is on the right side of. [slices, n] → [slices, n]."""
    order = np.argsort(scores, axis=1)
    ranked = np.take_along_axis(labels, order, axis=1)
    positives = ranked.sum(axis=1, keepdims=True)
    negatives = labels.shape[1] - positives
    below, above = np.cumsum(1 - ranked, axis=1) / negatives, 1 - np.cumsum(ranked, axis=1) / positives
    placed = np.empty_like(scores)
    np.put_along_axis(placed, order, np.where(ranked == 1, below, above), axis=1)
    return placed


def summarise(row: str, rate: float, found: Sequence[bool | None]) -> Cell:
    """Return the shares of a cell's comparisons."""
    judged = sum(item is not None for item in found) / len(found)
    return Cell(row=row, rate=rate, judged=judged, erred=sum(item is True for item in found) / len(found))


def table_head() -> str:
    """Return the line above."""
    return f"| label rate | {' | '.join(f'{100 * rate:g} %' for rate in RATES)} |"


def table_lines(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the page's table: a column for each label rate, the share that was judged below 99 %."""
    rows = dict.fromkeys(cell["row"] for cell in cells)
    return [f"| {' | '.join([row, *(_shown(cell) for cell in cells if cell['row'] == row)])} |" for row in rows]


def _shown(cell: Mapping[str, Any]) -> str:
    if cell["judged"] == 0:
        return "not judged"
    part = f" ({100 * cell['judged']:.0f} % judged)" if cell["judged"] < 0.99 else ""
    return f"{100 * cell['erred']:.1f} %{part}"


def measure_cells(comparisons: int, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Return every cell: false promotions by groups, and false stops by slices at no tolerated loss."""

    def cells(
        simulate: Callable[..., bool | None], rows: Sequence[int | str], name: str, times: int
    ) -> list[dict[str, Any]]:
        found = []
        for row in rows:
            for place, rate in enumerate(RATES):
                start = 1_000_000 * (place + 1)  # the same seeds in each row of the table
                ask = partial(simulate, rate=rate, **{name: row})
                results = list(pool.map(ask, range(start, start + times), chunksize=25))
                found.append(vars(summarise(str(row), rate, results)))
        return found

    return {
        "comparisons": {"promotions": comparisons, "stops": STOPS_TIMES * comparisons},
        "promise": round(1 - CONFIDENCE, 6),
        "promotions": cells(promotes, GROUPS, "groups", comparisons),
        "stops": cells(stops, SLICES, "slices", STOPS_TIMES * comparisons),
    }
