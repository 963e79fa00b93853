"""What `make bench-policy` promises: a small cell of it, and the page's table of all."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from bench.policy import RESULT_PATH, table_rows
from bench.policy_worlds import WORLDS
from bench.policy_year import PATIENCE_DAYS, Year, stuck_days
from tests.support.product import REPOSITORY

BY_NAME = {world.name: world for world in WORLDS}


def played(name: str, *, is_earlier: bool = False) -> dict[str, Any]:
    """A year without a schedule."""
    year = Year(world=BY_NAME[name], schedule_days=None, is_earlier=is_earlier)
    year.play()
    return year.summary()


def test_a_sudden_drift_without_a_schedule_is_learned() -> None:
    """By the rules of the release before the model stayed at AUC 0.60 for ever, where 0.72 was reachable."""
    before, now = played("sudden", is_earlier=True), played("sudden")
    assert (before["last"], before["reachable"]) == (0.6, 0.72)
    assert before["stuck"] > 100
    assert now["last"] > 0.715
    assert (now["stuck"], now["same"]) == (0, now["rows"])
    assert now["orders"] <= 10


@pytest.mark.parametrize("name", ["unmendable, answers alone", "spikes"])
def test_what_cannot_be_mended_orders_seldom(name: str) -> None:
    found = played(name)
    assert found["orders"] <= 15
    assert found["same"] == found["rows"]


def test_a_day_is_stuck_after_a_training_window() -> None:
    gap = np.concatenate([np.full(PATIENCE_DAYS + 5, 0.1), [0.0], np.full(PATIENCE_DAYS, 0.1)])
    assert stuck_days(gap) == 5


def test_nothing_is_stuck_where_mending_is_possible_and_all_rows_replay() -> None:
    """In all worlds, as measured."""
    known = json.loads(RESULT_PATH.read_text(encoding="utf-8"))
    assert list(known["worlds"]) == list(BY_NAME)
    for name, found in known["worlds"].items():
        for schedule in found.values():
            now = schedule["now"]
            assert now["same"] == now["rows"], name
            assert now["orders"] <= 45, name
            assert now["stuck"] == 0 or not BY_NAME[name].mendable, name


def test_the_page_has_what_was_measured() -> None:
    page = (REPOSITORY / "docs" / "monitoring.md").read_text(encoding="utf-8")
    known = json.loads(RESULT_PATH.read_text(encoding="utf-8"))
    assert [row for row in table_rows(known) if row not in page] == []
