"""What `make bench-tuning` searches: scores by hyperparameters, a little different each week.

In: a week and a trial's values. Out: the score that is seen (with noise, where there is some) and the true one. Weeks
differ as runs do: in the flights model by its data, in the synthetic functions by an optimum that wanders.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

GRID_PATH = Path(__file__).with_name("tuning_grid.json")
THIS_WEEK = 0  # earlier weeks are negative
DRIFT = 0.01  # of every range, standard deviation of a week's step
_STUDY = {"metric": "val_score", "parallel_trials": 3, "recall": 3, "early_stopping": "none"}

Values = Mapping[str, Any]


class Surface(Protocol):
    """Scores of all weeks."""

    @property
    def name(self) -> str:
        """Name for the table."""

    @property
    def goal(self) -> Literal["maximize", "minimize"]:
        """Which scores are good."""

    @property
    def best(self) -> float:
        """Best known score of this week."""

    @property
    def section(self) -> Mapping[str, Any]:
        """The section `tuning` of its spec."""

    def true(self, week: int, values: Values) -> float:
        """Return the score without noise."""

    def seen(self, week: int, values: Values) -> float:
        """Return the score as a trial reports it."""


@dataclass(frozen=True)
class Box:
    """A test function over a box: its optimum walks a little every week.

    Attributes:
        name: For the table.
        goal: Which values are good.
        best: Its optimum.
        bounds: Of each dimension.
        seed: Of the walk.
    """

    name: str
    goal: Literal["maximize", "minimize"]
    best: float
    bounds: Sequence[tuple[float, float]]
    seed: int

    @property
    def section(self) -> Mapping[str, Any]:
        """Return a double per dimension."""
        parameters = [
            {"name": f"x{index}", "kind": "double", "min": low, "max": high}
            for index, (low, high) in enumerate(self.bounds)
        ]
        return {**_STUDY, "goal": self.goal, "parameters": parameters}

    def true(self, week: int, values: Values) -> float:
        """Return the function where the week's optimum is moved back to its place."""
        steps = random.Random(self.seed)
        shift = [0.0] * len(self.bounds)
        for _ in range(abs(week)):
            shift = [old + steps.gauss(0, DRIFT) for old in shift]
        moved = [part * (high - low) for part, (low, high) in zip(shift, self.bounds, strict=True)]
        return _FUNCTIONS[self.name]([values[f"x{index}"] - by for index, by in enumerate(moved)])

    def seen(self, week: int, values: Values) -> float:
        """Return the same: these have no noise."""
        return self.true(week, values)


class Flights:
    """The flights model between the measured points: linear in dropout and in the logarithm of the learning rate.

    This week is the later window of the file, every earlier week the other one. Noise is that of other seeds.
    """

    name = "flights"
    goal: Literal["maximize", "minimize"] = "maximize"

    def __init__(self, seed: int) -> None:
        grid = json.loads(GRID_PATH.read_text())
        windows = [grid["windows"][end] for end in sorted(grid["windows"])]
        self._axes = grid["axes"]
        self._tables = [self._table(window["scores"]) for window in (windows[-1], windows[0])]
        middle = windows[-1]["seeds"]
        mean = sum(middle) / len(middle)
        self.noise = math.sqrt(sum((score - mean) ** 2 for score in middle) / (len(middle) - 1))
        self.best = max(windows[-1]["scores"])
        self._random = random.Random(seed)

    @property
    def section(self) -> Mapping[str, Any]:
        """Return what the grid spans."""
        rates, dropouts = self._axes["learning_rate"], self._axes["dropout"]
        parameters = [
            {"name": "learning_rate", "kind": "double", "min": rates[0], "max": rates[-1], "scale": "log"},
            {"name": "dropout", "kind": "double", "min": dropouts[0], "max": dropouts[-1]},
            {"name": "hidden_units", "kind": "categorical", "values": self._axes["hidden_units"]},
        ]
        return {**_STUDY, "goal": self.goal, "parameters": parameters}

    def true(self, week: int, values: Values) -> float:
        """Return the score between the points."""
        rate = _place([math.log(each) for each in self._axes["learning_rate"]], math.log(values["learning_rate"]))
        dropout = _place(self._axes["dropout"], values["dropout"])
        table = self._tables[0 if week == THIS_WEEK else 1]
        corners = itertools.product(rate, dropout)
        return sum(a * b * table[i, j, values["hidden_units"]] for (i, a), (j, b) in corners)

    def seen(self, week: int, values: Values) -> float:
        """Return it as another seed would."""
        return self.true(week, values) + self._random.gauss(0, self.noise)

    def _table(self, scores: Sequence[float]) -> dict[tuple[int, int, str], float]:
        rates, dropouts = (range(len(self._axes[name])) for name in ("learning_rate", "dropout"))
        return dict(zip(itertools.product(rates, dropouts, self._axes["hidden_units"]), scores, strict=True))


def surfaces(seed: int) -> list[Surface]:
    """Return all as a seed has them."""
    return [
        Flights(seed),
        Box("Branin", "minimize", 0.397887, ((-5.0, 10.0), (0.0, 15.0)), seed),
        Box("Hartmann 6", "maximize", 3.32237, ((0.0, 1.0),) * 6, seed),
    ]


def _place(axis: Sequence[float], value: float) -> tuple[tuple[int, float], tuple[int, float]]:
    """Return the two neighbours of a value and their weights."""
    right = min(max(bisect.bisect_left(axis, value), 1), len(axis) - 1)
    share = min(max((value - axis[right - 1]) / (axis[right] - axis[right - 1]), 0.0), 1.0)
    return (right - 1, 1 - share), (right, share)


def _branin(x: Sequence[float]) -> float:
    """Return Branin's function. [2]; https://www.sfu.ca/~ssurjano/branin.html."""
    a, b = x
    hill = b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6
    return hill**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10


_ALPHA = (1.0, 1.2, 3.0, 3.2)
_A = ((10, 3, 17, 3.5, 1.7, 8), (0.05, 10, 17, 0.1, 8, 14), (3, 3.5, 1.7, 10, 17, 8), (17, 8, 0.05, 10, 0.1, 14))
_P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def _hartmann(x: Sequence[float]) -> float:
    """Return Hartmann's function, turned so that more is better. [6]; https://www.sfu.ca/~ssurjano/hart6.html."""
    return sum(
        alpha * math.exp(-sum(a * (value - p) ** 2 for a, value, p in zip(row, x, centre, strict=True)))
        for alpha, row, centre in zip(_ALPHA, _A, _P, strict=True)
    )


_FUNCTIONS = {"Branin": _branin, "Hartmann 6": _hartmann}
