"""How often the gate `gain` errs where test days have effects: equal models by the number of days and their effect.

In: nothing but seeds. Out: for each cell the share of comparisons that promote one of two equally good models. A day
adds to the difference of their mean absolute errors; an effect of 1 has the standard error that the day's rows alone
have, so that an effect e makes the true error √(1 + e²) times that of independent rows. The judge's own bootstrap
draws days or rows as the judge does, by the number of days; the rows `… by rows` are drawn by row all the same.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

from bench.gates_cells import CONFIDENCE, SAMPLES, Cell, summarise
from retraining.core.documents.evaluation import LEAST_DAYS, LEAST_GROUPS, LEAST_ROWS
from trainer.objective.bootstrap import Pair, Resampling, bootstrap_metrics

EFFECTS = (0.0, 1.0, 1.73, 3.0, 5.5)
"""Of which √3 doubles the true error; 5.5 is what the flights have (`gates_flights`)."""
DAYS = (7, 14, 28, 60)
ROWS_PER_DAY = 100


def promotes_by_days(seed: int, days: int, effect: float, *, by_day: bool) -> bool | None:
    """Compare two equal models on test days drawn anew; None: it is not judged.

    Args:
        seed: Of this comparison.
        days: Test days.
        effect: Of a day, in standard errors of its rows.
        by_day: Whether days are drawn.
    """
    random, of_row = np.random.default_rng(seed), np.repeat(np.arange(days), ROWS_PER_DAY)
    errors = 20 + random.normal(size=(2, len(of_row)))  # of labels that are 0: the answers are the absolute errors
    errors[0] += effect * np.sqrt(2 / ROWS_PER_DAY) * random.normal(size=days)[of_row]
    drawn = Resampling(
        samples=SAMPLES,
        seed=seed,
        confidence=CONFIDENCE,
        groups=of_row if by_day else None,
        min_rows=LEAST_ROWS,
        min_groups=LEAST_GROUPS,
        unit="days",
    )
    pair = Pair(labels=np.zeros(len(of_row)), challenger=errors[0], champion=errors[1])
    found = bootstrap_metrics(pair, ["mae"], drawn)
    return found["mae"].high < 0 if found else None


def measure_days(comparisons: int, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """Return every cell; the column, `rate`, is the effect."""
    rows = [(f"{days} days, by {'days' if days >= LEAST_DAYS else 'rows'}", days, days >= LEAST_DAYS) for days in DAYS]
    rows.insert(1, (f"{LEAST_DAYS} days, by rows", LEAST_DAYS, False))
    cells: list[Cell] = []
    for name, days, by_day in rows:
        for place, effect in enumerate(EFFECTS):
            start = 1_000_000 * (place + 1)
            ask = partial(promotes_by_days, days=days, effect=effect, by_day=by_day)
            cells.append(summarise(name, effect, list(pool.map(ask, range(start, start + comparisons), chunksize=25))))
    return {"comparisons": comparisons, "promise": round(1 - CONFIDENCE, 6), "promotions": list(map(vars, cells))}


def days_head() -> str:
    """Return the line above the table: the true error by that of independent rows."""
    return f"| test days | {' | '.join(f'{(1 + effect**2) ** 0.5:.1f} times' for effect in EFFECTS)} |"
