"""What a first model predicts: the label's kind, guessed from its values, and what a model of it must reach.

In: a table's profile. Out: the label as YAML has it, how the SQL makes numbers of its values, a metric and its bound.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from retraining.core.data.column_roles import types_of
from retraining.core.data.table_profile import MAX_CLASSES, Counted, NewModel, TableProfile
from retraining.core.errors import DataError

MOST_TEXTS = 100
"""Texts that a label may have: more are no classes but names, and a first model learns none of them."""
_ROWS_PER_CLASS = 5
"""That classes need on average."""
_BETTER = 0.05
"""By how much of what is left to win a model must beat one that always answers the same."""
_EXPECTED = "0 and 1, classes from 0 on, texts, or numbers"


@dataclass(frozen=True, kw_only=True)
class Mapped:
    """A value of the label in the SQL: what it is there, the class that it becomes, and its rows."""

    value: str
    is_text: bool
    label: int
    rows: int | None = None


@dataclass(frozen=True, kw_only=True)
class FirstLabel:
    """What the label is, why, and what a model of it must reach.

    `mapped` are its values where the query makes classes of them.
    """

    text: str
    note: str
    metric: str
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
        return _of_texts(model, profile, name)
    if type_ in types_of("binary") and (low, high) == (0, 1) and found.distinct == 2:
        return _binary(name, "0 and 1" if type_ != "BOOLEAN" else "true is 1")
    if type_ in ("INTEGER", "FLOAT") and low is not None and high is not None and found.distinct == 2:
        two = (_number(each, type_) for each in (low, high))
        mapped = tuple(Mapped(value=value, is_text=False, label=at) for at, value in enumerate(two))
        return _binary(name, f"two numbers; 1 is {mapped[1].value}, 0 is {mapped[0].value}", mapped)
    if type_ in types_of("multiclass") and (classes := _classes_from_0(profile)):
        return _multiclass(name, classes, profile.classes, values)
    if type_ in types_of("regression") and (found.distinct or 0) > 1:
        text, chance = f"{{name: {name}, kind: regression}}", "above what always answering the mean reaches (0)"
        return FirstLabel(text=text, note=values, metric="r2", min_value=_BETTER, min_note=chance)
    raise DataError(
        f"LABEL of {model.source}",
        f"{model.label!r} ({type_}) has {values or 'no value'}",
        _EXPECTED,
        model.way_out("has such a column (CAST(x > 15 AS INT64), a CASE)"),
    )


def _of_texts(model: NewModel, profile: TableProfile, name: str) -> FirstLabel:
    """Return classes for texts, by their frequency: of two the rarer one is 1."""
    classes, rows = profile.classes, sum(each.rows for each in profile.classes)
    where, what = f"LABEL of {model.source}", f"{model.label!r} (STRING)"
    if len(classes) < 2:
        raise DataError(where, f"{what} has {len(classes)} values", "two texts or more", "Name another LABEL")
    if len(classes) > min(MOST_TEXTS, rows / _ROWS_PER_CLASS):
        many = f"more than {MAX_CLASSES}" if len(classes) > MAX_CLASSES else str(len(classes))
        limit = f"at most {MOST_TEXTS} texts, and {_ROWS_PER_CLASS} rows of each on average"
        out = model.way_out("puts the rare ones together (a CASE with ELSE 'other'), or makes a number of them")
        raise DataError(where, f"{what} has {many} texts in {rows} rows", limit, out)
    mapped = tuple(Mapped(value=each.value, is_text=True, label=at, rows=each.rows) for at, each in enumerate(classes))
    if len(classes) == 2:
        return _binary(name, f"1 is {_quoted(classes[1])}, 0 is {_quoted(classes[0])}, by the CASE in the SQL", mapped)
    note = f"{_quoted(classes[0])} is 0, the most frequent; the CASE in the SQL has the others"
    return _multiclass(name, len(classes), classes, note, mapped)


def _binary(name: str, note: str, mapped: tuple[Mapped, ...] = ()) -> FirstLabel:
    text, chance = f"{{name: {name}, kind: binary}}", "above what chance reaches (0.5)"
    return FirstLabel(text=text, note=note, metric="auc", min_value=0.5 + _BETTER, min_note=chance, mapped=mapped)


def _multiclass(
    name: str, count: int, classes: tuple[Counted, ...], note: str, mapped: tuple[Mapped, ...] = ()
) -> FirstLabel:
    share = max(each.rows for each in classes) / sum(each.rows for each in classes)
    return FirstLabel(
        text=f"{{name: {name}, kind: multiclass, classes: {count}}}",
        note=note,
        metric="accuracy",
        min_value=round(share + (1 - share) * _BETTER, 4),
        min_note=f"above what always answering the most frequent class reaches ({share:.3f})",
        mapped=mapped,
    )


def _classes_from_0(profile: TableProfile) -> int:
    """Return how many classes whole numbers are: all from 0 on, with rows enough; 0: they are numbers."""
    count = len(profile.classes)
    dense = {each.value for each in profile.classes} == {str(value) for value in range(count)}
    rows = sum(each.rows for each in profile.classes)
    return count if dense and 2 < count <= min(MAX_CLASSES, rows / _ROWS_PER_CLASS) else 0


def _number(value: float, type_: str) -> str:
    return str(int(value)) if type_ == "INTEGER" else repr(float(value))


def _quoted(found: Counted) -> str:
    """Return a text for a comment of one line."""
    shown = found.value if len(found.value) <= 30 else f"{found.value[:29]}…"
    return json.dumps(shown, ensure_ascii=False)
