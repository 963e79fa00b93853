"""What a monitor has ordered: which earlier rows a decision rests on, and which orders of long ago still matter."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime, timedelta

from retraining.core import backoff
from retraining.core.documents.ledger import Ledger, LedgerOrder, LedgerPolicy
from retraining.core.documents.monitoring import DriftChampion
from retraining.core.naming.run_keys import RunKey
from retraining.core.spec.monitoring import Action

ORDERS: tuple[Action, ...] = ("retrain", "tune", "rollback")
"""Outcomes that start something."""
WEEK = timedelta(days=7)


def reach(policy: LedgerPolicy) -> timedelta:
    """Return how far back orders matter: for the longest cool-down, the budget's week, a rollback."""
    longest = timedelta(hours=policy.cooldown_hours * 2**backoff.MAX_DOUBLINGS)
    return max(longest, WEEK, timedelta(hours=policy.rollback_within_hours))


def rows_of_interest(
    rows: Sequence[Ledger], policy: LedgerPolicy, as_of: datetime, remembered: Collection[str] = ()
) -> list[Ledger]:
    """Return the earlier rows that a decision rests on, oldest first, whatever more there are.

    They are those since `reach`, or of a monitor that seldom runs as many as the policy looks at, and the orders that
    are remembered.
    """
    earlier = sorted((row for row in rows if row.as_of < as_of), key=lambda row: row.as_of)
    first = as_of - reach(policy)
    recent = sum(row.as_of >= first for row in earlier)
    start = len(earlier) - max(recent, min(policy.windows_of, len(earlier)))
    return [*(row for row in earlier[:start] if row.ledger_id in remembered), *earlier[start:]]


def all_orders(rows: Sequence[Ledger], last: Ledger | None) -> tuple[LedgerOrder, ...]:
    """Return all orders so far, oldest first: those that the last one knew of, itself, and those of rows."""
    ordering = [row for row in (*rows, *((last,) if last else ())) if row.outcome in ORDERS and row.ledger_id]
    found = {order.ledger_id: order for row in ordering for order in row.earlier_orders}
    found |= {
        str(row.ledger_id): LedgerOrder(
            ledger_id=str(row.ledger_id), as_of=row.as_of, outcome=row.outcome, cause=row.cause
        )
        for row in ordering
    }
    return tuple(sorted(found.values(), key=lambda order: (order.as_of, order.ledger_id)))


def orders_to_remember(
    orders: Sequence[LedgerOrder], policy: LedgerPolicy, as_of: datetime, champion: DriftChampion | None
) -> tuple[str, ...]:
    """Return the ids of orders from before `reach` that still matter.

    They are those since the champion's own time, which made no new one, and the last one of each cause.

    Args:
        orders: All, oldest first.
        policy: The rules.
        as_of: Of the decision.
        champion: That serves.
    """
    made = RunKey.parse(champion.run_key).as_of if champion else as_of
    retrained = [order for order in orders if order.outcome in ("retrain", "tune") and order.as_of < as_of]
    last_of = {order.cause: order.ledger_id for order in retrained}
    return tuple(
        order.ledger_id
        for order in retrained
        if order.as_of < as_of - reach(policy) and (order.as_of > made or order.ledger_id == last_of[order.cause])
    )


def last_order(rows: Sequence[Ledger], lost: Collection[str] = ()) -> datetime | None:
    """Return when a retraining was last ordered, of those that were not lost."""
    return max((row.as_of for row in retrainings(rows, lost)), default=None)


def retrainings(rows: Sequence[Ledger], lost: Collection[str] = ()) -> list[Ledger]:
    """Return the rows that ordered a retraining, with a study or without, and were not lost."""
    return [row for row in rows if row.outcome in ("retrain", "tune") and row.ledger_id not in lost]
