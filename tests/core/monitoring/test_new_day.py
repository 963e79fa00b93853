"""A complete new day of the source: announced once, and not when a run has used it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from retraining.core.documents import NewDay, PartWork, SpanWork
from retraining.core.monitoring import new_day
from retraining.core.monitoring.new_day import Counted, NewestRun
from retraining.core.planning.windows import AsOf
from tests.support.small_model import make_plan, make_snapshot, make_spec

DAY = date(2013, 11, 18)
AS_OF = datetime(2013, 11, 20, 5, tzinfo=UTC)
TABLES = [{"name": "shop.parcels", "time": "sent_at"}, {"name": "shop.routes", "time": "day"}]
SPEC = make_spec(triggers={"new_day": {"tables": TABLES}})
USUAL = {DAY - timedelta(days=back): 100 for back in range(1, 9)}


def decide(*counts: dict[date, int], earlier: Any = (), newest: Any = None, as_of: datetime = AS_OF) -> NewDay:
    """What is found in the two tables."""
    rows = dict(zip(("shop.parcels", "shop.routes"), counts, strict=True))
    return new_day.decide_new_day(SPEC, as_of, DAY, Counted(rows=rows, bytes_read=9), earlier=earlier, newest=newest)


def run(as_of_day: int, rows: int | None) -> NewestRun:
    """A run at three in the morning of a day, whose snapshot has that many rows of the day looked for."""
    plan = make_plan(as_of=AsOf(value=datetime(2013, 11, as_of_day, 3, tzinfo=UTC), source="logical_date"))
    if rows is None:
        return NewestRun(plan=plan, snapshot=None)
    spans = tuple(
        SpanWork(
            span=day,
            fingerprint="0" * 32,
            parts=(PartWork(part="train", rows=count, shards=1),),
            action="export",
            reason="new",
        )
        for day, count in {**USUAL, DAY: rows}.items()
        if count
    )
    return NewestRun(plan=plan, snapshot=make_snapshot(plan).model_copy(update={"spans": spans}))


def test_a_complete_day_is_announced_with_its_table():
    found = decide({**USUAL, DAY: 90}, {**USUAL, DAY: 50})
    assert (found.outcome, found.day, found.cause) == ("announced", DAY, "new_data:shop.parcels")
    assert found.retrain_as_of == AS_OF
    assert found.message == (
        "Retraining: 2013-11-18 is complete: shop.parcels has 90 rows of it, usually 100; shop.routes has 50 rows of "
        "it, usually 100."
    )


@pytest.mark.parametrize(
    ("parcels", "routes"), [(90, 49), (0, 100), (49, 100)], ids=["half a day of one", "none", "half a day"]
)
def test_a_day_that_is_not_there_yet_starts_nothing(parcels, routes):
    """The day before is complete, and the newest run has it."""
    found = decide({**USUAL, DAY: parcels}, {**USUAL, DAY: routes}, newest=run(19, 0))
    assert (found.outcome, found.cause, found.day) == ("incomplete", None, DAY - timedelta(days=1))
    assert "2013-11-18 is not complete" in found.message


def test_the_first_days_of_a_table_have_nothing_to_be_compared_with():
    assert decide({DAY: 1}, {DAY: 1}).outcome == "announced"
    assert decide({}, {}).outcome == "incomplete"


def test_a_source_that_is_later_than_the_labels_is_announced_by_its_newest_day():
    found = decide(USUAL, {**USUAL, DAY: 100})
    assert (found.outcome, found.day) == ("announced", DAY - timedelta(days=1))


def test_one_day_is_announced_once_and_again_only_when_no_run_has_come_of_it():
    first = decide({**USUAL, DAY: 90}, {**USUAL, DAY: 90})
    for hours, outcome in ((1, "known"), (5, "known"), (6, "again")):
        later = AS_OF + timedelta(hours=hours)
        found = decide({**USUAL, DAY: 90}, {**USUAL, DAY: 90}, earlier=[first], as_of=later)
        assert found.outcome == outcome
        assert (found.cause is None) == (outcome == "known")
    assert "paused in Airflow?" in found.message
    known = new_day.known_without_counting(SPEC, AS_OF + timedelta(hours=1), DAY, [first], None)
    assert known is not None
    assert known.outcome == "known"
    assert new_day.known_without_counting(SPEC, AS_OF, DAY, [], None) is None


@pytest.mark.parametrize(
    ("newest", "outcome"),
    [
        (run(20, 95), "trained"),
        (run(20, 10), "announced"),
        (run(19, 0), "announced"),
        (run(20, None), "under_way"),
        (None, "announced"),
    ],
    ids=["trained on it", "trained on a part of it", "of the day before", "has not read it yet", "no run"],
)
def test_what_the_newest_run_was_trained_on_needs_no_other(newest, outcome):
    found = decide({**USUAL, DAY: 90}, {**USUAL, DAY: 90}, newest=newest)
    assert found.outcome == outcome
    known = new_day.known_without_counting(SPEC, AS_OF, DAY, [], newest)
    assert (known.outcome if known else "announced") == outcome


def test_a_run_that_never_read_its_data_does_not_hold_a_day_back_for_ever():
    found = decide({**USUAL, DAY: 90}, {**USUAL, DAY: 90}, newest=run(20, None), as_of=AS_OF + timedelta(hours=4))
    assert found.outcome == "announced"


@pytest.mark.parametrize("column_type", new_day.TYPES)
def test_the_statement_reads_the_compared_days_alone(column_type):
    query = new_day.rows_query(SPEC.triggers.new_day.tables[0], "my-project.shop.parcels", column_type, DAY)
    assert {parameter.name: parameter.value for parameter in query.parameters} == {
        "first_day": "2013-11-04",
        "end_day": "2013-11-19",
    }
    bound = {"DATE": "(@first_day)"}.get(column_type, f"{column_type}(@first_day)")
    assert f"WHERE `sent_at` >= {bound}" in query.sql
