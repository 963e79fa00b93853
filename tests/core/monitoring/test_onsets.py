"""Orders that wait until a retraining trains on days that drifted, and what counts as one that did not help."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from retraining.core import documents as d
from retraining.core.monitoring import onsets
from tests.support.scenes.ledger import AT_ONCE, CHAMPION, decide, result, rules, signal, signals
from tests.support.small_model import AS_OF

TRAINING = d.TrainingDays(label_lag_days=1, test_days=2, trained_days=8, answered_days=7)
RULE = rules(**AT_ONCE, training=TRAINING)
QUIET = signal(value=0.1, state="ok")
GONE = timedelta(days=1)


class Months:
    """Monitor runs one after the other; each order comes to what a test says, before the next run."""

    def __init__(self, rule: d.LedgerPolicy = RULE, hours_between: int = 6) -> None:
        self.rule, self.hours_between = rule, hours_between
        self.rows: list[d.Ledger] = []
        self.results: list[d.LedgerResult] = []
        self.champion = CHAMPION

    def look(self, *found: Any, **known: Any) -> d.Ledger:
        """The next monitor run."""
        hours = len(self.rows) * self.hours_between
        seen = signals(*(found or (signal(),)), hours=hours, champion=self.champion)
        remembered = tuple(str(row.ledger_id) for row in self.rows if row.outcome == "retrain")
        told = {"results": tuple(self.results), "remembered": remembered} | known
        row = decide(seen, self.rows, self.rule, **told)
        self.rows.append(row)
        return row

    def end(self, row: d.Ledger, state: str) -> None:
        """Let an order come to something; a promoted model serves."""
        hours = (row.as_of - AS_OF) / timedelta(hours=1)
        made = d.DriftChampion(version_id=f"{hours:g}", run_key=f"{row.as_of:%Y%m%dt%H%M%Sz}-0123456789ab")
        self.champion = made if state == "promoted" else self.champion
        self.results.append(result(hours, state, made))

    def pass_days(self, days: float, state: str, *found: Any) -> list[d.Ledger]:
        """Look for some days, and return what was ordered."""
        ordered = []
        for _ in range(round(days * 24 / self.hours_between)):
            row = self.look(*found)
            if row.outcome == "retrain":
                ordered.append(row)
                self.end(row, state)
        return ordered


def new_days(row: d.Ledger, since: datetime) -> int:
    return onsets.new_days(TRAINING, since, row.as_of)


def test_an_order_waits_for_a_day_that_it_trains_on_and_says_until_when() -> None:
    """Seen at 3 o'clock, in a window of 24 hours; labels take a day, and two days are test days."""
    months = Months()
    first = months.look()
    assert (first.outcome, first.reason, first.severity) == ("warn", "new_days", "warning")
    assert first.since == {"skew:carrier": datetime(2013, 11, 19, 15, tzinfo=UTC)}
    assert "the order waits until 2013-11-24 00:00 UTC" in first.message
    (ordered, *_) = months.pass_days(6, "rejected")
    assert ordered.as_of == datetime(2013, 11, 24, 3, tzinfo=UTC)
    assert {row.reason for row in months.rows if row.as_of < ordered.as_of} == {"new_days"}


@pytest.mark.parametrize(
    ("cause", "lag", "until"),
    [
        ("skew:carrier", 0, "2013-11-23"),
        ("skew:carrier", 14, "2013-12-07"),
        ("performance:", 1, "2013-11-21"),  # of the answers of seven days, the middle one
        ("performance:", 14, "2013-11-24"),  # whose labels came after 14 days
        ("estimate:", 1, "2013-11-21"),
    ],
)
def test_the_wait_covers_the_labels_delay(cause: str, lag: int, until: str) -> None:
    """What is seen by labels was there before they came."""
    training = TRAINING.model_copy(update={"label_lag_days": lag})
    asks = rules(**AT_ONCE, training=training, actions={"estimate": "retrain"})
    assert f"the order waits until {until} 00:00 UTC" in Months(asks).look(signal(cause)).message


@pytest.mark.parametrize("cause", ["age:", "drift:a", "errors:version 1", "source:p.d.t"])
def test_what_is_no_matter_of_new_days_does_not_wait(cause: str) -> None:
    """A champion's age has its days; a drift from an earlier window is over before its days are trained on."""
    kind = cause.partition(":")[0]
    row = Months(rules(**AT_ONCE, training=TRAINING, actions={kind: "retrain"})).look(signal(cause))
    assert row.outcome == "retrain"


def test_a_spike_that_is_over_before_its_days_are_trained_on_orders_nothing() -> None:
    """Nor do six of them, a week apart."""
    months = Months()
    for _ in range(6):
        assert months.pass_days(2, "rejected") == []
        assert months.pass_days(5, "rejected", QUIET) == []


@pytest.mark.parametrize(("quiet", "lasts"), [(GONE - timedelta(hours=6), True), (GONE, False)])
def test_a_cause_lasts_until_whole_windows_without_it(quiet: timedelta, lasts: bool) -> None:
    """Windows that share requests with one that saw it say little."""
    months = Months()
    since = months.look().since["skew:carrier"]
    months.pass_days(quiet / timedelta(days=1), "rejected", QUIET)
    assert (months.look().since["skew:carrier"] == since) is lasts


def test_windows_that_were_not_judged_do_not_end_a_cause() -> None:
    months = Months()
    since = months.look().since
    months.pass_days(3, "rejected", signal(state="not_judged", because="too_few"))
    assert months.look().since == since


def test_what_did_not_help_is_tried_again_on_twice_as_many_new_days() -> None:
    """And once on new days alone (8 are trained on here): never twice on the same, never for the last time."""
    months = Months()
    since = months.look().since["skew:carrier"]
    counts = [new_days(row, since) for row in months.pass_days(90, "rejected")]
    assert counts == [1, 2, 4, 8, 16, 32, 64]
    assert "a retraining on 64 of the days since 2013-11-19 15:00 UTC left it as it is" in months.rows[-1].message


def test_causes_that_came_together_are_one() -> None:
    """One order is for both, and the guard holds the other one by it, without a cool-down too."""
    months = Months(rules(**AT_ONCE, cooldown_hours=0, training=TRAINING))
    (ordered,) = months.pass_days(4.5, "rejected", signal(value=0.9), signal("skew:dest"))
    assert ordered.causes == ("skew:carrier", "skew:dest")
    row = months.look(signal("skew:dest"))
    assert (row.cause, row.reason) == ("skew:dest", "loop_guard")


def test_another_drift_later_is_another_cause() -> None:
    """Its days were in no retraining yet."""
    months = Months(rules(**AT_ONCE, cooldown_hours=0, training=TRAINING))
    months.pass_days(5, "rejected")
    (other, *_) = [row for row in months.pass_days(5, "rejected", signal("skew:dest")) if row.cause == "skew:dest"]
    assert new_days(other, other.since["skew:dest"]) == 1


def test_a_half_learned_model_is_trained_once_more_on_new_days_alone() -> None:
    """Although nothing is over its threshold any more."""
    months = Months()
    first, *_ = months.pass_days(4.25, "promoted")
    since = first.since["skew:carrier"]
    (last,) = months.pass_days(40, "promoted", QUIET)
    assert (last.reason, last.cause, last.causes) == ("half_learned", "skew:carrier", ())
    assert new_days(last, since) == TRAINING.trained_days
    assert "the champion on 1 of 8" in last.message
    assert months.rows[-1].since == {}


def test_a_last_retraining_that_is_rejected_is_not_repeated() -> None:
    months = Months()
    months.pass_days(4.25, "promoted")
    assert [row.reason for row in months.pass_days(40, "rejected", QUIET)] == ["half_learned"]


def test_what_is_other_after_all_was_learned_came_later() -> None:
    """The world goes on changing: each new champion counts days anew, and orders do not grow rare."""
    months = Months(rules(**AT_ONCE, training=TRAINING))
    ordered = months.pass_days(120, "promoted")
    gaps = [later.as_of - row.as_of for row, later in pairwise(ordered)]
    assert max(gaps) <= timedelta(days=TRAINING.trained_days + 1)


def test_what_a_person_gives_a_time_for_waits_for_nothing() -> None:
    """The retraining computes as of that time, whatever the clock says."""
    months = Months()
    months.look()
    assert months.look(retrain_as_of=AS_OF).outcome == "retrain"


def test_a_person_who_retrains_lifts_the_guard() -> None:
    months = Months(rules(**AT_ONCE, cooldown_hours=0, training=TRAINING))
    months.pass_days(4.5, "rejected")
    assert months.look().reason == "loop_guard"
    assert months.look(last_by_hand=months.rows[-1].as_of).outcome == "retrain"


@pytest.mark.parametrize("state", ["rejected", "failed", "promoted"])
def test_each_row_comes_out_the_same_among_all_rows(state: str) -> None:
    """As `replay-policy --check` takes it again."""
    from retraining.core.monitoring.replay import Recorded, decide_again

    months = Months(hours_between=12)

    def found(day: int) -> Any:
        return signal() if day % 40 < 25 else QUIET

    seen = []
    for step in range(160):
        row = months.look(found(step // 2))
        seen.append(signals(found(step // 2), hours=step * 12, champion=row.facts.champion if row.facts else None))
        if row.outcome == "retrain":
            months.end(row, state)
    assert any(row.outcome == "retrain" for row in months.rows)
    again = [
        decide_again(Recorded(signals=was, row=row), months.rows) for was, row in zip(seen, months.rows, strict=True)
    ]
    assert again == months.rows
