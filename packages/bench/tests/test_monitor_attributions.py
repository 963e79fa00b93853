"""What `make bench-attributions` counts: attributions by the core's orders, and how far shares moved."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from bench import monitor_attributions as bench
from retraining.core.monitoring import attributions as core

WEIGHTS = np.array([3.0, -2.0, 0.5])
BASELINES = np.array([1.0, 0.0, 0.0])
CHANCE = np.random.default_rng(7)
ROWS = CHANCE.normal(0.0, 1.0, (40, 3))


def product(rows: np.ndarray) -> np.ndarray:
    """A model whose features do not add up."""
    return rows @ WEIGHTS + rows[:, 0] * rows[:, 1]


def test_attributions_are_those_of_the_core() -> None:
    """The same instances, asked one by one; all of a row add up to its answer."""
    found = bench.attributions_of(product, ROWS, BASELINES, "seed")
    names = ["0", "1", "2"]
    explained = [
        core.Explained(name=(str(row), 0), instance=dict(zip(names, values, strict=True)))
        for row, values in enumerate(ROWS.tolist())
    ]
    asked = core.asked_instances(explained, dict(zip(names, BASELINES.tolist(), strict=True)), "seed")
    answers = product(np.array([[instance[name] for name in names] for instance in asked])).reshape(len(ROWS), 4)
    for row, values in enumerate(answers):
        order = core.draw_order(names, "seed", row)
        added = dict(zip(order, (after - before for before, after in itertools.pairwise(values)), strict=True))
        assert found[row] == pytest.approx([added[name] for name in names])
    assert np.array(found).sum(axis=1) == pytest.approx(product(ROWS) - product(BASELINES[None])[0])


def test_a_lost_feature_moves_the_shares_and_other_rows_of_one_kind_do_not() -> None:
    then, now = (
        bench.attributions_of(product, part, BASELINES, seed) for part, seed in ((ROWS[:20], "a"), (ROWS[20:], "b"))
    )
    assert bench.shift_of(now, then, "seed") == 0
    lost = ROWS[20:].copy()
    lost[:, 0] = BASELINES[0]
    assert bench.shift_of(bench.attributions_of(product, lost, BASELINES, "b"), then, "seed") > 0.3


def test_the_page_has_the_table_of_the_stored_result() -> None:
    """Every line of it stands in docs/monitoring.md as it was measured."""
    found = json.loads(bench.RESULT_PATH.read_text(encoding="utf-8"))
    page = (bench.RESULT_PATH.parents[4] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    for line in bench.table(found).splitlines():
        assert line in page
    assert all(counts["days"] == 280 for counts in found["flights"].values())
