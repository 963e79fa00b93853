"""What a new model's YAML guesses from a look at its table: label, and division by time.

In: a table's profile, and today's date. Out: the label as YAML has it, how the SQL makes numbers of its values, a
metric and its bound; the window and its test days. How long a model is trained is each run's to decide (`jobs/recipe`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from itertools import pairwise
from statistics import median

from retraining.core.data.column_roles import types_of
from retraining.core.data.table_profile import MAX_CLASSES, Counted, FilledDay, NewModel, TableProfile
from retraining.core.documents.evaluation import LEAST_DAYS
from retraining.core.errors import DataError
from retraining.core.metrics import Metric
from retraining.core.spec.data import LEAST_VALIDATION_DAYS, VALIDATION_PERCENT, takes_whole_days
from retraining.core.spec.features import MAX_CLASS_NAME
from retraining.core.spec.yaml_file import NO_TEXT

MAX_TEXTS = 100
"""Texts that a label may have: more are no classes but names, and a first model learns none of them."""
_ROWS_PER_CLASS = 5
"""That classes need on average."""
_MIN_GAIN = 0.05
"""By how much of what is left to win a model must beat one that always answers the same."""
_WIDTH = 100
_EXPECTED = "0 and 1, classes from 0 on, texts, or numbers"


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """A number of the label in the SQL: what it is there, and the class that it becomes."""

    value: str
    label: int


@dataclass(frozen=True, kw_only=True)
class FirstLabel:
    """What the label is, why, and what a model of it must reach.

    `text` may be several lines; `mapped` are its numbers where the query makes classes of them.
    """

    text: str
    note: str
    metric: Metric
    min_value: float
    min_note: str
    mapped: tuple[Mapped, ...] = ()


def guess_label(model: NewModel, profile: TableProfile, name: str) -> FirstLabel:
    """Return what the label seems to be.

    Args:
        model: What its user says.
        profile: Of its table.
        name: Of the label, as YAML has it.

    Raises:
        DataError: It is none that can be learnt; says why, the limit, and the way out.
    """
    found, low, high = profile.of_column(model.label), profile.label_low, profile.label_high
    type_, values = found.column.type, f"{found.distinct} values from {low:g} to {high:g}" if low is not None else ""
    if type_ == "STRING":
        return _label_of_texts(model, profile, name)
    if type_ in types_of("binary") and (low, high) == (0, 1) and found.distinct == 2:
        return _binary_label(name, "0 and 1" if type_ != "BOOLEAN" else "true is 1")
    if type_ in ("INTEGER", "FLOAT") and low is not None and high is not None and found.distinct == 2:
        two = (_number_label(each, type_) for each in (low, high))
        mapped = tuple(Mapped(value=value, label=at) for at, value in enumerate(two))
        return _binary_label(name, f"two numbers; 1 is {mapped[1].value}, 0 is {mapped[0].value}", mapped)
    if type_ in types_of("multiclass") and (classes := _label_of_classes(profile)):
        return _multiclass_label(name, str(classes), profile.classes, values)
    if type_ in types_of("regression") and (found.distinct or 0) > 1:
        text, chance = f"{{name: {name}, kind: regression}}", "above what always answering the mean reaches (0)"
        return FirstLabel(text=text, note=values, metric="r2", min_value=_MIN_GAIN, min_note=chance)
    raise DataError(
        f"LABEL of {model.source}",
        f"{model.label!r} ({type_}) has {values or 'no value'}",
        _EXPECTED,
        model.way_out("has such a column (CAST(x > 15 AS INT64), a CASE)"),
    )


def _label_of_texts(model: NewModel, profile: TableProfile, name: str) -> FirstLabel:
    """Return classes for texts, by their frequency: of two the rarer one is 1."""
    classes, rows = profile.classes, sum(each.rows for each in profile.classes)
    where, what = f"LABEL of {model.source}", f"{model.label!r} (STRING)"
    if len(classes) < 2:
        raise DataError(where, f"{what} has {len(classes)} values", "two texts or more", "Name another LABEL")
    if len(classes) > min(MAX_TEXTS, rows / _ROWS_PER_CLASS):
        many = f"more than {MAX_CLASSES}" if len(classes) > MAX_CLASSES else str(len(classes))
        limit = f"at most {MAX_TEXTS} texts, and {_ROWS_PER_CLASS} rows of each on average"
        out = model.way_out("puts the rare ones together (a CASE with ELSE 'other'), or makes a number of them")
        raise DataError(where, f"{what} has {many} texts in {rows} rows", limit, out)
    if odd := next((each for each in classes if not _is_class_name(each.value)), None):
        limit = f"at most {MAX_CLASS_NAME} characters, none of them a control character but tab and new line"
        out = model.way_out("gives it another text (a CASE, or REGEXP_REPLACE)")
        raise DataError(where, f"{what} has {_quoted(odd)}", limit, out)
    listed = _listed([json.dumps(each.value, ensure_ascii=False) for each in classes])
    if len(classes) == 2:
        return _binary_label(name, f"1 is {_quoted(classes[1])}, the rarer one", texts=listed)
    return _multiclass_label(name, listed, classes, f"{len(classes)} texts, the most frequent first")


def _listed(items: Sequence[str]) -> str:
    """Return a YAML list, of many items in several lines."""
    lines = [""]
    for item in items:
        if lines[-1] and len(lines[-1]) + len(item) > _WIDTH:
            lines.append("")
        lines[-1] += f"{item}, "
    text = "\n".join(line.rstrip() for line in lines).removesuffix(",")
    return f"[{text}]"


def _is_class_name(text: str) -> bool:
    """Whether a spec can list the text."""
    return len(text) <= MAX_CLASS_NAME and not NO_TEXT.search(text)


def _binary_label(name: str, note: str, mapped: tuple[Mapped, ...] = (), texts: str = "") -> FirstLabel:
    classes = f", classes: {texts}" if texts else ""
    text, chance = f"{{name: {name}, kind: binary{classes}}}", "above what chance reaches (0.5)"
    return FirstLabel(text=text, note=note, metric="auc", min_value=0.5 + _MIN_GAIN, min_note=chance, mapped=mapped)


def _multiclass_label(name: str, listed: str, classes: tuple[Counted, ...], note: str) -> FirstLabel:
    share = max(each.rows for each in classes) / sum(each.rows for each in classes)
    return FirstLabel(
        text=f"{{name: {name}, kind: multiclass, classes: {listed}}}",
        note=note,
        metric="accuracy",
        min_value=round(share + (1 - share) * _MIN_GAIN, 4),
        min_note=f"above what always answering the most frequent class reaches ({share:.3f})",
    )


def _label_of_classes(profile: TableProfile) -> int:
    """Return how many classes whole numbers are: all from 0 on, with rows enough; 0: they are numbers."""
    count = len(profile.classes)
    dense = {each.value for each in profile.classes} == {str(value) for value in range(count)}
    rows = sum(each.rows for each in profile.classes)
    return count if dense and 2 < count <= min(MAX_CLASSES, rows / _ROWS_PER_CLASS) else 0


def _number_label(value: float, type_: str) -> str:
    return str(int(value)) if type_ == "INTEGER" else repr(float(value))


def _quoted(found: Counted) -> str:
    """Return a text for a comment of one line."""
    shown = found.value if len(found.value) <= 30 else f"{found.value[:29]}…"
    return json.dumps(shown, ensure_ascii=False)


LABEL_LAG_DAYS = 1
MAX_WINDOW_DAYS, MAX_TEST_DAYS = 3650, 365
"""The spec's limits, see `spec.data.Data`."""

_FILLED_DAYS = 60
_ENOUGH_ROWS = 5000
"""Until there are so many, the window takes more than `_FILLED_DAYS` days."""

_WEEK_DAYS = 7
_LONGEST_PAUSE = timedelta(days=30)
"""Without a row, and without 3 of the usual pauses between them: the table ended."""


@dataclass(frozen=True, kw_only=True)
class FirstWindow:
    """Calendar days, the filled days and rows in them, and what is said of them; `ended`: first and last day."""

    days: int
    test_days: int
    filled_days: int
    trained_days: int
    rows: int
    test_rows: int
    note: str
    ended: tuple[date, date] | None
    as_of: datetime
    """Of the first run whose window ends with the newest row."""
    schedule: tuple[str, str] | None
    """Cron expression and what it means, as often as rows come; None: no new ones do."""

    @property
    def validation_by(self) -> str:
        """How the validation split is found, where the days with rows say otherwise than their window; else empty."""
        enough = self.trained_days * VALIDATION_PERCENT >= LEAST_VALIDATION_DAYS * 100
        if enough == takes_whole_days(self.days - self.test_days):
            return ""
        return "days" if enough else "rows"


def guess_window(model: NewModel, profile: TableProfile, today: date) -> FirstWindow:
    """Return a window that has some `_FILLED_DAYS` days with rows, or more until there are rows enough.

    Raises:
        DataError: There are rows of fewer than two days, or those of two do not fit the longest window.
    """
    days = [day for day in profile.days if day.day < today]
    if len(days) < 2:
        found = f"{model.time} has rows of {len(days)} days before today"
        out = "Leave out TIME: a hash of the key then decides what is tested"
        raise DataError(f"TIME of {model.source}", found, "two days or more, to train on and to test with", out)
    newest = days[0].day
    if (newest - days[1].day).days >= MAX_WINDOW_DAYS:
        found = f"the newest day of {model.time} is {newest}, the one before it {days[1].day}"
        out = "Leave out TIME: a hash of the key then decides what is tested"
        raise DataError(f"TIME of {model.source}", found, f"less than {MAX_WINDOW_DAYS} days between them", out)
    taken = _taken(days)
    tested = _tested(taken)
    pause = median((later.day - earlier.day).days for later, earlier in pairwise(days))
    ended = today - newest > max(_LONGEST_PAUSE, timedelta(days=3 * pause))
    test_days = min(MAX_TEST_DAYS, (newest - taken[tested].day).days)
    length = (newest - taken[-1].day).days + 1
    longest = ", the longest window" if len(taken) < len(days) and length > MAX_WINDOW_DAYS - 2 * pause else ""
    as_of = datetime.combine(newest + timedelta(days=1 + LABEL_LAG_DAYS), time(), tzinfo=UTC)
    return FirstWindow(
        days=max(length, test_days + 1),
        test_days=test_days,
        filled_days=len(taken),
        trained_days=len(taken) - tested,
        rows=sum(day.rows for day in taken),
        test_rows=sum(day.rows for day in taken[:tested]),
        note=f"{len(taken)} days with rows of the {_rows_between(days, profile)} there are{longest}",
        ended=(profile.first or newest, newest) if ended else None,
        as_of=as_of,
        schedule=None if ended else _guess_schedule(pause),
    )


def _guess_schedule(pause: float) -> tuple[str, str]:
    """Return a week's, or a month's where rows come less often. A model without one learns no drift by itself."""
    if pause <= _WEEK_DAYS:
        return "0 3 * * 1", "every Monday at 3 o'clock UTC"
    return "0 3 2 * *", f"every month at 3 o'clock UTC, as rows come every {pause:g} days"


def _taken(days: list[FilledDay]) -> list[FilledDay]:
    """Return the days of the window, newest first."""
    oldest, rows = days[0].day - timedelta(days=MAX_WINDOW_DAYS - 1), 0
    taken: list[FilledDay] = []
    for day in days:
        if day.day < oldest or (len(taken) >= _FILLED_DAYS and rows >= _ENOUGH_ROWS):
            break
        taken.append(day)
        rows += day.rows
    return taken


def _tested(taken: list[FilledDay]) -> int:
    """Return how many of the newest are tested, until they have a tenth of the rows; at most a quarter.

    As many days as an interval over days needs, where there are enough: rows of a day are too alike to be drawn one by
    one (docs/evaluation.md, "Where days have effects"). With fewer days, or months in the place of days, some 7.
    """
    total, rows = sum(day.rows for day in taken), 0
    newest = taken[0].day
    by_day = len(taken) >= 4 * LEAST_DAYS and (newest - taken[LEAST_DAYS].day).days <= MAX_TEST_DAYS
    least = LEAST_DAYS if by_day else min(7, len(taken) // 8)
    for count, day in enumerate(taken[:-1], 1):
        rows += day.rows
        longest = (newest - taken[count].day).days >= MAX_TEST_DAYS
        enough = count >= least and rows >= total / 10
        if enough or longest or count >= len(taken) / 4:
            return count
    return 1


def _rows_between(days: list[FilledDay], profile: TableProfile) -> str:
    return str(len(days)) if len(profile.days) < MAX_WINDOW_DAYS else f"more than {MAX_WINDOW_DAYS}"
