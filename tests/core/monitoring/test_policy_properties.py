"""What holds of the policy whatever is seen: months of monitor runs that hypothesis makes up, each seeing its own rows.

The rules are checked by other means than the policy's own: by counting over the rows that came of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from retraining.core import documents as d
from tests.support.scenes.ledger import CHAMPION, decide, rules, signal, signals
from tests.support.small_model import AS_OF

CAUSES = ("skew:a", "skew:b", "performance:", "age:", "drift:a")
WEEK = timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A monitor run: hours after the one before, what it saw, and what became of orders meanwhile."""

    hours: int
    exceeded: frozenset[str]
    ends: str
    by_hand: bool


@dataclass(frozen=True, kw_only=True)
class Month:
    """Rows in order of time, and when the champion changed or a person retrained."""

    rows: list[d.Ledger]
    changes: list[datetime]


STEPS = st.lists(
    st.builds(
        Step,
        hours=st.integers(1, 40),
        exceeded=st.sets(st.sampled_from(CAUSES)).map(frozenset),
        ends=st.sampled_from(["running", "promoted", "rejected", "failed"]),
        by_hand=st.booleans(),
    ),
    min_size=5,
    max_size=40,
)


def minutes(at: int) -> str:
    return f"{at // 60:02d}:{at % 60:02d}"


POLICIES = st.builds(
    lambda windows, cooldown, most, quiet, training: rules(
        cooldown_hours=cooldown,
        windows={"exceeded": min(windows), "of": max(windows)},
        max_retrainings_per_week=most,
        quiet_hours={"start": minutes(quiet[0]), "end": minutes(quiet[1])} if quiet else None,
        training=training,
    ),
    windows=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    cooldown=st.sampled_from([0, 1, 24, 72]),
    most=st.one_of(st.none(), st.integers(0, 3)),
    quiet=st.one_of(
        st.none(), st.tuples(st.integers(0, 1439), st.integers(0, 1439)).filter(lambda pair: pair[0] != pair[1])
    ),
    training=st.sampled_from(
        [None, d.TrainingDays(label_lag_days=0, test_days=1, trained_days=6, answered_days=2)],
    ),
)


def play(steps: list[Step], rule: d.LedgerPolicy) -> Month:
    """Return the rows of a month, in which retrainings end as the steps say."""
    rows: list[d.Ledger] = []
    changes: list[datetime] = []
    results: dict[str, d.LedgerResult] = {}
    champion, hours, by_hand = CHAMPION, 0, None
    for step in steps:
        hours += step.hours
        at = AS_OF + timedelta(hours=hours)
        for row in rows:
            known = results.get(str(row.ledger_id))
            if row.outcome == "retrain" and (known is None or known.state == "running"):
                made = champion
                if step.ends == "promoted":
                    key = f"{at:%Y%m%dt%H%M%Sz}-0123456789ab"
                    made = champion = d.DriftChampion(version_id=str(hours), run_key=key)
                    changes.append(at)
                results[str(row.ledger_id)] = d.LedgerResult(
                    ledger_id=str(row.ledger_id),
                    ordered_at=row.as_of,
                    cause=row.cause,
                    dag_run_id="x",
                    run_key=made.run_key,
                    state=step.ends,
                    version_id=None,
                    gain=None,
                )
        if step.by_hand and rows:
            by_hand = at
            changes.append(at)
        seen = signals(*(signal(cause) for cause in sorted(step.exceeded)), hours=hours, champion=champion)
        rows.append(decide(seen, rows, rule, results=tuple(results.values()), last_by_hand=by_hand))
    return Month(rows=rows, changes=changes)


def orders(month: Month) -> list[d.Ledger]:
    return [row for row in month.rows if row.outcome in ("retrain", "tune", "rollback")]


@settings(max_examples=60, deadline=None)
@given(STEPS, POLICIES)
def test_an_order_is_seen_in_enough_of_the_last_windows(steps: list[Step], rule: d.LedgerPolicy) -> None:
    """And in the one that orders it; of the same champion, where it is a matter of one."""
    month = play(steps, rule)
    for index, row in enumerate(month.rows):
        if row.outcome == "none" or row.reason == "half_learned":
            continue
        last = month.rows[max(0, index - rule.windows_of + 1) : index + 1]
        if str(row.cause).startswith(("skew", "performance")):
            last = [each for each in last if each.facts and row.facts and each.facts.champion == row.facts.champion]
        assert row.cause in row.causes
        needed = 1 if row.cause == "age:" else rule.windows_exceeded
        assert sum(row.cause in each.causes for each in last) >= needed


@settings(max_examples=60, deadline=None)
@given(STEPS, POLICIES)
def test_between_two_orders_lies_the_cool_down(steps: list[Step], rule: d.LedgerPolicy) -> None:
    """At least; it may be lengthened."""
    for before, after in pairwise(orders(play(steps, rule))):
        assert after.as_of - before.as_of >= timedelta(hours=rule.cooldown_hours)


@settings(max_examples=60, deadline=None)
@given(STEPS, POLICIES)
def test_no_week_has_more_orders_than_its_budget(steps: list[Step], rule: d.LedgerPolicy) -> None:
    """Whenever the week begins."""
    ordered = orders(play(steps, rule))
    for row in ordered:
        if rule.max_retrainings_per_week is not None:
            inside = [each for each in ordered if row.as_of <= each.as_of < row.as_of + WEEK]
            assert len(inside) <= rule.max_retrainings_per_week


@settings(max_examples=60, deadline=None)
@given(STEPS, POLICIES)
def test_nothing_is_ordered_in_the_quiet_hours(steps: list[Step], rule: d.LedgerPolicy) -> None:
    """Going from `start` minute by minute until `end` does not meet an order's minute."""
    if rule.quiet_hours is None:
        return
    start, end = (time.fromisoformat(text) for text in (rule.quiet_hours.start, rule.quiet_hours.end))
    at, quiet = datetime.combine(AS_OF.date(), start), set()
    while at.time() != end:
        quiet.add((at.hour, at.minute))
        at += timedelta(minutes=1)
    assert all((row.as_of.hour, row.as_of.minute) not in quiet for row in orders(play(steps, rule)))


@settings(max_examples=60, deadline=None)
@given(STEPS, POLICIES)
def test_what_did_not_help_is_not_ordered_again_until_something_changes(
    steps: list[Step], rule: d.LedgerPolicy
) -> None:
    """Between two orders for one cause, the first in vain: another champion, a person, or it was gone.

    By the rules of an earlier release; with new days to wait for, test_onsets.py has what is held.
    """
    month = play(steps, rule.model_copy(update={"training": None}))
    ordered = orders(month)
    for index, after in enumerate(ordered):
        before = next((row for row in reversed(ordered[:index]) if row.cause == after.cause), None)
        if before is None or after.facts is None:
            continue
        result = next((each for each in after.facts.results if each.ledger_id == before.ledger_id), None)
        if result is None or result.state not in ("promoted", "rejected"):
            continue
        between = [row for row in month.rows if before.as_of < row.as_of < after.as_of]
        away = [before.cause not in row.causes for row in between]
        gone = any(all(away[i : i + rule.windows_of]) for i in range(len(away) - rule.windows_of + 1))
        made = [change for change in month.changes if before.as_of < change <= after.as_of]
        enough = 1 if result.state == "rejected" else 2  # the retraining's own new champion is no further change
        assert gone or len(made) >= enough


@settings(max_examples=60, deadline=None)
@given(STEPS, POLICIES)
def test_a_stored_row_decided_again_is_the_same(steps: list[Step], rule: d.LedgerPolicy) -> None:
    """From what it has in it, its signals and the rows before it."""
    from retraining.core.monitoring import policy

    month = play(steps, rule)
    for index, row in enumerate(month.rows):
        stored = d.Ledger.parse(row.to_bytes())
        assert stored.policy is not None
        assert stored.facts is not None
        seen = signals(*(signal(cause) for cause in sorted(row.causes)), champion=stored.facts.champion)
        seen = seen.model_copy(update={"as_of": row.as_of})
        again = policy.decide(seen, stored.policy, stored.facts, month.rows[:index], ledger_id=stored.ledger_id)
        assert again == stored
