"""Whether the source has a complete new day that no run has used: then a retraining is ordered, once per day.

In: rows per day of the source's tables, what earlier looks announced, what the newest run was trained on. Out: a
`NewDay`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from statistics import median

from retraining.core.data.sql import Parameter, Query, render
from retraining.core.documents import DayRows, NewDay, Plan, Snapshot
from retraining.core.documents.monitoring import NewDayOutcome
from retraining.core.errors import SpecError
from retraining.core.spec import triggers
from retraining.core.spec.model import ModelSpec

COMPARED_DAYS = 7
AGAIN_AFTER = timedelta(hours=6)
"""An event whose retraining has not begun by then is given again: the DAG was paused, or a worker died with it."""
TYPES = ("TIMESTAMP", "DATETIME", "DATE")

RowsPerDay = Mapping[date, int]


@dataclass(frozen=True, kw_only=True)
class NewestRun:
    """The newest run that may deploy: its plan, and its snapshot once it has one."""

    plan: Plan
    snapshot: Snapshot | None


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What the tables have: rows per day of each by name, and the bytes that were read for it.

    `trouble` says instead why they were not counted.
    """

    rows: Mapping[str, RowsPerDay]
    bytes_read: int = 0
    trouble: tuple[NewDayOutcome, str] | None = None


def rows_query(table: triggers.DatedTable, name: str, column_type: str, looked_for: date) -> Query:
    """Return the statement that counts rows per day: of the day looked for, and of those it is compared with.

    Args:
        table: As the spec has it.
        name: `project.dataset.table`.
        column_type: Of its column of time: one of `TYPES`.
        looked_for: The newest day.
    """
    sql = render("new_day.sql.j2", table=name, time=table.time, type=column_type)
    first, end = looked_for - timedelta(days=2 * COMPARED_DAYS), looked_for + timedelta(days=1)
    return Query(
        sql=sql,
        parameters=(
            Parameter(name="first_day", type="DATE", value=first.isoformat()),
            Parameter(name="end_day", type="DATE", value=end.isoformat()),
        ),
    )


def known_without_counting(
    spec: ModelSpec, as_of: datetime, looked_for: date, earlier: Sequence[NewDay], newest: NewestRun | None
) -> NewDay | None:
    """Return the answer that needs no look at the tables; None: they must be counted."""
    outcome = _settled(looked_for, as_of, earlier, newest, require_new_day(spec).min_share)
    return None if outcome is None else _answer(spec, as_of, looked_for, looked_for, outcome)


def decide_new_day(
    spec: ModelSpec,
    as_of: datetime,
    looked_for: date,
    counted: Counted,
    *,
    earlier: Sequence[NewDay],
    newest: NewestRun | None,
) -> NewDay:
    """Return what is announced, or why nothing is.

    Args:
        spec: The model.
        as_of: When it is looked.
        looked_for: The newest day that a run of now would use.
        counted: Rows of the tables.
        earlier: What the monitor's earlier runs found, in any order.
        newest: The newest run that may deploy.
    """
    if counted.trouble:
        return _answer(spec, as_of, looked_for, None, counted.trouble[0], counted, counted.trouble[1])
    share = require_new_day(spec).min_share
    days = [looked_for - timedelta(days=back) for back in range(COMPARED_DAYS)]
    found = next((day for day in days if all(is_complete(rows, day, share) for rows in counted.rows.values())), None)
    if found is None:
        return _answer(spec, as_of, looked_for, None, "incomplete", counted)
    outcome = _settled(found, as_of, earlier, newest, share)
    if outcome is None:
        outcome = "again" if any(_announces(row, found) for row in earlier) else "announced"
    if outcome in ("known", "trained") and found < looked_for:
        return _answer(spec, as_of, looked_for, found, "incomplete", counted)
    return _answer(spec, as_of, looked_for, found, outcome, counted)


def is_complete(rows: RowsPerDay, day: date, min_share: float) -> bool:
    """Return whether a day has enough rows beside the median of the seven days before it that have any."""
    count, expected = rows.get(day, 0), usual_rows(rows, day)
    return count > 0 and (expected is None or count >= min_share * expected)


def usual_rows(rows: RowsPerDay, day: date) -> float | None:
    """Return the median rows of the days before that have any; None: none has."""
    before = [rows.get(day - timedelta(days=back), 0) for back in range(1, COMPARED_DAYS + 1)]
    return median(counts) if (counts := [count for count in before if count]) else None


def _settled(
    day: date, as_of: datetime, earlier: Sequence[NewDay], newest: NewestRun | None, min_share: float
) -> NewDayOutcome | None:
    """Return why a day needs no event; None: it does."""
    if newest is not None and newest.plan.window.end > day:
        if newest.snapshot is None:
            if as_of - newest.plan.as_of < AGAIN_AFTER:
                return "under_way"
        elif is_complete(_rows_of(newest.snapshot), day, min_share):
            return "trained"
    if any(_announces(row, day) and as_of - row.as_of < AGAIN_AFTER for row in earlier):
        return "known"
    return None


def _announces(row: NewDay, day: date) -> bool:
    return row.cause is not None and row.day == day


def _rows_of(snapshot: Snapshot) -> RowsPerDay:
    return {span.span: sum(part.rows for part in span.parts) for span in snapshot.spans}


def require_new_day(spec: ModelSpec) -> triggers.NewDay:
    """Return what the spec says of new days.

    Raises:
        SpecError: Nothing: the file was changed since its DAG was read.
    """
    if spec.triggers.new_day is None:
        raise SpecError(f"{spec.name}.yaml", "no triggers.new_day", "one", "The DAG as it is now has no such task")
    return spec.triggers.new_day


def _answer(
    spec: ModelSpec,
    as_of: datetime,
    looked_for: date,
    day: date | None,
    outcome: NewDayOutcome,
    counted: Counted | None = None,
    message: str = "",
) -> NewDay:
    shown = looked_for if day is None or outcome == "incomplete" else day
    rows = counted.rows if counted else {}
    tables = tuple(
        DayRows(table=name, rows=found.get(shown, 0), usual=usual_rows(found, shown)) for name, found in rows.items()
    )
    gives = outcome in ("announced", "again")
    return NewDay(
        model=spec.name,
        as_of=as_of,
        looked_for=looked_for,
        day=day,
        outcome=outcome,
        message=message or _message_of_outcome(outcome, shown, tables),
        cause=f"new_data:{require_new_day(spec).tables[0].name}" if gives else None,
        retrain_as_of=as_of if gives else None,
        tables=tables,
        bytes_read=counted.bytes_read if counted else 0,
    )


def _message_of_outcome(outcome: NewDayOutcome, day: date, tables: Sequence[DayRows]) -> str:
    match outcome:
        case "announced":
            return f"Retraining: {day} is complete: {_listed(tables)}."
        case "again":
            return (
                f"Retraining: {day} is complete, and no run has used it since that was announced. Is the DAG paused in "
                "Airflow?"
            )
        case "known":
            return f"Waiting: {day} was announced, and its retraining has not read the data yet."
        case "trained":
            return f"Waiting: the newest run was trained on {day} already."
        case "under_way":
            return f"Waiting: a run that will read {day} has begun."
        case _:
            return f"Waiting: {day} is not complete: {_listed(tables)}."


def _listed(tables: Sequence[DayRows]) -> str:
    return "; ".join(
        f"{item.table} has {item.rows:,} rows of it" + ("" if item.usual is None else f", usually {item.usual:,.0f}")
        for item in tables
    )
