"""A slice blocks when it is surely worse, however many are looked at."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retraining.core.promotion.slices import SliceLoss, surely_worse
from tests.support.small_decision import decide, failed, scores

LOSSES = st.lists(st.tuples(st.floats(-0.2, 0.3), st.floats(0, 0.1)), max_size=12)


def loss(mean: float, deviation: float) -> SliceLoss:
    return SliceLoss(mean=mean, deviation=deviation, where=f"{mean}")


@pytest.mark.parametrize(
    ("mean", "deviation", "chance"),
    [(0.03, 0.01, 0.5), (0.03 + 1.6449 * 0.01, 0.01, 0.05), (0.01, 0.0, 1.0), (0.04, 0.0, 0.0)],
    ids=["at the bound", "95 %", "surely less", "surely more"],
)
def test_the_chance_of_a_loss(mean: float, deviation: float, chance: float) -> None:
    assert loss(mean, deviation).chance(0.03) == pytest.approx(chance, abs=1e-4)


def holm(chances: list[float], level: float) -> set[int]:
    """The definition: the k-th smallest against level / (m - k + 1), until the first that is above."""
    found: set[int] = set()
    for place, index in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        if chances[index] > level / (len(chances) - place):
            return found
        found.add(index)
    return found


@given(LOSSES)
def test_holms_correction(parts: list[tuple[float, float]]) -> None:
    losses = [loss(*part) for part in parts]
    expected = holm([item.chance(0.03) for item in losses], 0.05)
    assert sorted(id(item) for item in surely_worse(losses, 0.03, 0.05)) == sorted(id(losses[i]) for i in expected)


def test_of_many_slices_hardly_any_is_blocked_by_chance() -> None:
    """20 slices that lose just what is tolerated, 2,000 times: at most 5 % of the times any is found worse."""
    random = np.random.default_rng(3)
    blocked = sum(
        bool(surely_worse([loss(0.03 + 0.02 * float(z), 0.02) for z in random.normal(size=20)], 0.03, 0.05))
        for _ in range(2000)
    )
    assert blocked / 2000 <= 0.05 + 3 * (0.05 * 0.95 / 2000) ** 0.5


@pytest.mark.parametrize(("deviation", "verdict"), [(0.002, "reject"), (0.02, "promote")], ids=["sure", "not sure"])
def test_only_a_sure_loss_stops_promotion(small_plan, deviation, verdict) -> None:
    ours, theirs = scores(0.7, UA=(500, 0.60), AA=(500, 0.7)), scores(0.69, UA=(500, 0.65), AA=(500, 0.7))
    decision = decide(small_plan, ours, theirs, deviation=deviation)
    assert decision.verdict == verdict
    words = next(gate.message for gate in decision.gates if gate.gate == "slices")
    fall = "auc falls by 0.050 for carrier 'UA' (0.600 against 0.650)"
    if verdict == "reject":
        assert failed(decision) == ["slices"]
        assert words == f"{fall}, surely more than 0.03"
    else:
        assert words == f"no slice surely loses more than 0.03 auc ({fall}: not sure)"
