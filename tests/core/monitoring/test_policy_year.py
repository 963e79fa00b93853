"""A year of monitor runs in worlds that no retraining mends: how often one is ordered, and that each row replays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from retraining.core import documents as d
from retraining.core.monitoring import orders, policy
from retraining.core.monitoring.replay import Recorded, decide_again
from tests.support.scenes.ledger import CHAMPION, facts, ledger_id, rules, signal, signals

HOURS_BETWEEN = 12
DAYS = 365
RULES = rules(max_retrainings_per_week=None)


class Year:
    """Monitor runs one after the other, each of which sees what the task `decide` reads.

    Args:
        is_wrong: Whether the signal is over its threshold, by the day.
        state: What comes of each retraining; the champion stays.
    """

    def __init__(self, is_wrong: Callable[[int], bool], state: str) -> None:
        self.recorded: list[Recorded] = []
        last: d.Ledger | None = None
        for hours in range(0, DAYS * 24, HOURS_BETWEEN):
            seen = signals(signal() if is_wrong(hours // 24) else signal(value=0.1, state="ok"), hours=hours)
            rows = [each.row for each in self.recorded]
            recent = [row for row in rows if row.as_of >= seen.as_of - orders.reach(RULES)]
            known = orders.all_orders(recent, last)
            remembered = orders.orders_to_remember(known, RULES, seen.as_of, CHAMPION)
            read = [*(row for row in rows if row.ledger_id in remembered), *recent]
            found = facts(results=tuple(self._result(row, state) for row in read if row.outcome == "retrain"))
            found = found.model_copy(update={"remembered": remembered})
            row = policy.decide(seen, RULES, found, read, ledger_id=ledger_id(hours))
            if row.outcome == "retrain":
                row = last = row.model_copy(update={"earlier_orders": known})
            self.recorded.append(Recorded(signals=seen, row=row))

    @staticmethod
    def _result(row: d.Ledger, state: Any) -> d.LedgerResult:
        return d.LedgerResult(
            ledger_id=str(row.ledger_id),
            ordered_at=row.as_of,
            cause=row.cause,
            dag_run_id="x",
            run_key=None,
            state=state,
            version_id=None,
            gain=None,
        )

    @property
    def ordered(self) -> list[d.Ledger]:
        """The rows that ordered a retraining."""
        return [each.row for each in self.recorded if each.row.outcome == "retrain"]


@pytest.fixture(scope="module")
def years() -> dict[str, Year]:
    """By the world: a lasting drift, or a spike of two days in each week."""
    return {
        "fails": Year(lambda _: True, "failed"),
        "rejected": Year(lambda _: True, "rejected"),
        "spikes": Year(lambda day: day % 7 in (3, 4), "rejected"),
    }


def test_what_a_retraining_did_not_help_is_not_ordered_again_all_year(years: dict[str, Year]) -> None:
    assert len(years["rejected"].ordered) == 1


@pytest.mark.parametrize("world", ["fails", "spikes"])
def test_the_wait_stays_sixteenfold(years: dict[str, Year], world: str) -> None:
    """After the first month no two orders are nearer, and none is held back for longer than to the next cause."""
    times = [row.as_of for row in years[world].ordered]
    waits = [later - earlier for earlier, later in pairwise(times)][5:]
    assert len(waits) > 10
    assert min(waits) >= timedelta(days=16)
    assert max(waits) < timedelta(days=24)


@pytest.mark.parametrize("world", ["fails", "rejected", "spikes"])
def test_each_row_comes_out_the_same_among_all_rows(years: dict[str, Year], world: str) -> None:
    recorded = years[world].recorded
    rows = [each.row for each in recorded]
    assert [each.row.ledger_id for each in recorded if decide_again(each, rows) != each.row] == []
