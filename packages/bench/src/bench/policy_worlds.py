"""Worlds that a retraining policy may meet in a year: what requests are like each day, and what can be learned of them.

A day's requests stand at a place on a line, or at several; a model knows a day as far as the days that it was trained
on stood near it. What it does not know costs it AUC, and shows as a distance of the features, as worse answers once
their labels are known, or as both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from trainer.objective.metrics import Floats

DAYS, BEFORE = 365, 120
"""Of the year, and days before it that the first model may be trained on."""
TOP, COST = 0.72, 0.12
"""AUC of a model that knows all of a day, and what it has less on a day that it knows nothing of."""
NEAR = 0.5
"""How far apart on the line two days are when one tells a third of the other."""

Course = Callable[[Floats], Floats]
"""From days, 0 is the year's first, to where their requests stand."""


@dataclass(frozen=True, kw_only=True)
class World:
    """What happens in a year.

    Attributes:
        name: Of its row.
        course: Where the requests stand.
        seen: How much of it shows in the features.
        felt: How much of it costs AUC.
        worse_from: From which day on every model is worse by `COST`, whatever it was trained on.
        gone: Days from and before which a feature is missing in all requests.
        label_lag_days: Until a label is known.
        fails: Whether every retraining fails.
        mendable: Whether a retraining can make up for what happens.
    """

    name: str
    course: Course
    seen: float = 1.0
    felt: float = 1.0
    worse_from: int | None = None
    gone: tuple[int, int] | None = None
    label_lag_days: int = 1
    fails: bool = False
    mendable: bool = True

    def alike(self) -> Floats:
        """Return how much the days tell of one another, `[days, days]`, from `BEFORE` days before the year on."""
        places = self.course(np.arange(-BEFORE, DAYS, dtype=float))
        return np.asarray(np.exp(-(((places[:, None] - places[None, :]) / NEAR) ** 2)))


def _steps(*days: int) -> Course:
    return lambda at: np.sum([np.where(at >= day, 2.0, 0.0) for day in days], axis=0)


def _still(at: Floats) -> Floats:
    return np.zeros_like(at)


def _spikes(at: Floats) -> Floats:
    """Return six weeks of two bad days each."""
    in_weeks = (at >= 100) & (at < 142)
    return np.where(in_weeks & ((at - 100) % 7 < 2), 2.0, 0.0)


WORLDS: tuple[World, ...] = (
    World(name="none", course=_still),
    World(name="sudden", course=_steps(100)),
    World(name="sudden, requests alone", course=_steps(100), felt=0.0),
    World(name="sudden, answers alone", course=_steps(100), seen=0.0),
    World(name="sudden, twice", course=_steps(100, 130)),
    World(name="gradual", course=lambda at: at / 120),
    World(name="gradual, answers alone", course=lambda at: at / 120, seen=0.0),
    World(name="seasonal", course=lambda at: 1.5 * np.sin(2 * np.pi * at / 365)),
    World(name="labels after 14 days", course=_steps(100), label_lag_days=14),
    World(name="labels after 30 days", course=_steps(100), seen=0.0, label_lag_days=30),
    World(name="outage", course=_still, gone=(100, 105)),
    World(name="spikes", course=_spikes),
    World(name="unmendable", course=_steps(100), worse_from=100, mendable=False),
    World(name="unmendable, answers alone", course=_still, worse_from=100, mendable=False),
    World(name="every retraining fails", course=_steps(100), fails=True, mendable=False),
)
