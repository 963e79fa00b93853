"""Night after night over a window of 60 days: which spans are exported, which are reused."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

from retraining.core.documents import Plan, Snapshot
from retraining.core.planning import windows
from tests.support.small_model import AS_OF, make_plan, make_snapshot, make_spec

WINDOW_DAYS, TEST_DAYS = 60, 7


def night(number: int) -> Plan:
    """The run `number` nights after the first; labels are known after two days."""
    data = make_spec().data.model_dump(mode="json")
    spec = make_spec(data={**data, "window_days": WINDOW_DAYS, "test_days": TEST_DAYS, "label_lag_days": 2})
    return make_plan(spec, as_of=windows.AsOf(value=AS_OF + timedelta(days=number), source="logical_date"))


def source_rows(plan: Plan, late: dict[date, int] | None = None) -> list[dict[str, Any]]:
    """The fingerprint query's rows over the plan's window: a day's numbers are its own, `late` rows come on top."""
    days = [plan.window.start + timedelta(days=offset) for offset in range(WINDOW_DAYS)]
    return [
        {
            "span": day,
            "part": part,
            "row_count": rows + (late or {}).get(day, 0),
            "bit_xor": str(day.toordinal() * 31 + (late or {}).get(day, 0)),
            "hash_sum": str(day.toordinal() * 1009),
            "shards": 1,
        }
        for day in days
        for part, rows in (("train", 900), ("validation", 100))
    ]


def store_after(*snapshots: Snapshot) -> dict[str, dict[str, int | None]]:
    """What the span store holds once these were exported."""
    stored: dict[str, dict[str, int | None]] = {}
    for snapshot in snapshots:
        for span in snapshot.spans:
            stored.setdefault(str(span.span), {})[span.fingerprint] = None
    return stored


def test_the_second_night_exports_exactly_one_of_60_spans():
    first = make_snapshot(night(0), fingerprint_rows=source_rows(night(0)))
    assert [span.action for span in first.spans] == ["export"] * WINDOW_DAYS
    second = make_snapshot(night(1), fingerprint_rows=source_rows(night(1)), stored=store_after(first))
    exported = [(span.span, span.reason) for span in second.spans if span.action == "export"]
    assert len(second.spans) == WINDOW_DAYS
    assert exported == [(night(1).window.end - timedelta(days=1), "new span")]


def test_a_late_row_of_an_old_day_exports_that_day_again_and_no_other():
    first = make_snapshot(night(0), fingerprint_rows=source_rows(night(0)))
    late = {night(0).window.start + timedelta(days=30): 1}
    again = make_snapshot(night(0), fingerprint_rows=source_rows(night(0), late), stored=store_after(first))
    changed = {span.span: span.reason for span in again.spans if span.action == "export"}
    assert list(changed) == list(late)
    assert "other content" in next(iter(changed.values()))


def test_a_day_joins_the_window_only_when_its_labels_were_known_and_late_rows_come_with_it():
    """Rows may come late within the label lag: no older run's window has their day, so no stored span changes."""
    this_run, tomorrow = night(0).window, night(1).window
    assert this_run.end + timedelta(days=2) == AS_OF.date()
    day = tomorrow.end - timedelta(days=1)
    assert day == this_run.end
    first = make_snapshot(night(0), fingerprint_rows=source_rows(night(0)))
    second = make_snapshot(night(1), fingerprint_rows=source_rows(night(1), late={day: 5}), stored=store_after(first))
    assert [span.span for span in second.spans if span.action == "export"] == [day]
    assert sum(part.rows for part in second.spans[-1].parts) == 1000 + 2 * 5
