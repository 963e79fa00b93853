"""The interval of a feature's importance: how often it holds the truth, in the cells that users live in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from trainer.objective.importance import Exchange, draw_donors
from trainer.objective.metrics import Floats, log_losses

SIMULATIONS = 300
CONFIDENCE = 0.95
SLACK = 3 * (CONFIDENCE * (1 - CONFIDENCE) / SIMULATIONS) ** 0.5


def test_each_donor_gives_once_in_each_repeat_and_the_same_of_the_same_seed() -> None:
    places = np.arange(30) * 3
    drawn = draw_donors(places, 50, seed=7)
    assert (np.sort(drawn, axis=1) == places).all()
    assert len(np.unique(drawn, axis=0)) == 50
    assert (draw_donors(places, 50, 7) == drawn).all()
    assert (draw_donors(places, 50, 8) != drawn).any()


def test_pairs_of_one_unit_do_not_count() -> None:
    """Neither a row with itself, nor rows of one group."""
    places, units = np.arange(40), np.arange(40) // 8
    donors = draw_donors(places, 6, seed=1)
    rises = np.random.default_rng(2).normal(size=(6, 40))
    exchange = Exchange(
        rows=places, donors=donors, shares=np.ones(40), units=units, effective=5.0, confidence=CONFIDENCE
    )
    apart = units[places] != units[donors]
    found = exchange.measure(np.where(apart, rises, 1e6))
    assert found.mean == pytest.approx(rises[apart].mean())
    assert found.high < 10


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Rows of two numbers and a label, and a model that is right, or relies on what says nothing."""

    rows: int
    base: float = -0.5
    slope: float = 1.0
    relied: float = 1.0
    groups: int = 0
    repeats: int = 3
    kind: str = "binary"

    def draw(self, seed: int) -> tuple[Floats, Floats, Floats, np.ndarray]:
        """Return the feature, the rest, labels and units. [rows] each."""
        random = np.random.default_rng(seed)
        units = np.arange(self.rows) % (self.groups or self.rows)
        feature, effect = random.normal(size=units.max() + 1)[units], random.normal(size=units.max() + 1)[units]
        rest = random.normal(size=self.rows)
        score = self.base + self.slope * feature + rest + (0.7 * effect if self.groups else 0)
        if self.kind == "number":
            return feature, rest, score + random.standard_t(3, self.rows), units
        return feature, rest, (random.random(self.rows) < 1 / (1 + np.exp(-score))).astype(np.float64), units

    def losses(self, feature: Floats, rest: Floats, labels: Floats) -> Floats:
        """Return those of the model. [rows]."""
        score = self.base + self.relied * feature + rest
        return np.abs(labels - score) if self.kind == "number" else log_losses(labels, 1 / (1 + np.exp(-score)))

    def truth(self) -> float:
        """Return the rise over very many rows, or over as many groups of ten."""
        big = Cell(**{**vars(self), "rows": 300_000, "groups": 30_000 if self.groups else 0})
        feature, rest, labels, _ = big.draw(99)
        random = np.random.default_rng(1)
        base = big.losses(feature, rest, labels)
        return float(np.mean([big.losses(random.permutation(feature), rest, labels) - base for _ in range(4)]))


def intervals(cell: Cell) -> list[tuple[float, float, float]]:
    found = []
    for seed in range(SIMULATIONS):
        feature, rest, labels, units = cell.draw(seed)
        places = np.arange(cell.rows)
        effective = float(
            cell.groups or (cell.rows if cell.kind == "number" else min(labels.sum(), (1 - labels).sum()))
        )
        exchange = Exchange(
            rows=places,
            donors=draw_donors(places, cell.repeats, seed),
            shares=np.ones(cell.rows),
            units=units,
            effective=effective,
            confidence=CONFIDENCE,
        )
        base = cell.losses(feature, rest, labels)
        rise = exchange.measure(
            np.stack([cell.losses(feature[given], rest, labels) - base for given in exchange.donors])
        )
        found.append((rise.low, rise.mean, rise.high))
    return found


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(Cell(rows=500), id="500 rows"),
        pytest.param(Cell(rows=80), id="80 rows"),
        pytest.param(Cell(rows=80, repeats=1), id="one exchange"),
        pytest.param(Cell(rows=800, base=-4.2), id="3 % positives"),
        pytest.param(Cell(rows=40, kind="number"), id="40 numbers with a heavy tail"),
        pytest.param(Cell(rows=600, groups=30), id="30 groups"),
    ],
)
def test_intervals_hold_the_truth_as_often_as_they_say(cell: Cell) -> None:
    truth = cell.truth()
    held = np.mean([low <= truth <= high for low, _, high in intervals(cell)])
    assert held >= CONFIDENCE - SLACK - 0.02


def test_eight_groups_that_share_a_feature_are_few() -> None:
    """A mean of eight that is as skewed as a loss is: 88 % instead of 95 %, and 82 % without the jackknife."""
    cell = Cell(rows=400, groups=8)
    truth = cell.truth()
    assert np.mean([low <= truth <= high for low, _, high in intervals(cell)]) >= 0.875 - SLACK


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(Cell(rows=500, slope=0, relied=0.05), id="500 rows"),
        pytest.param(Cell(rows=80, slope=0, relied=0.05), id="80 rows"),
        pytest.param(Cell(rows=800, base=-4.2, slope=0, relied=0.05), id="3 % positives"),
        pytest.param(Cell(rows=400, groups=8, slope=0, relied=0.05), id="8 groups"),
    ],
)
def test_a_feature_that_says_nothing_is_seldom_above_nothing(cell: Cell) -> None:
    """The model gives it a little weight by chance, as models do."""
    above = np.mean([low > 0 for low, _, _ in intervals(cell)])
    assert above <= 1 - CONFIDENCE + SLACK
