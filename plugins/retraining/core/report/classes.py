"""How good the models are class by class, where the label has several: what is found, right, and mixed up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retraining.core.documents import Evaluation
from retraining.core.spec.features import Label, class_text

CELLS_SHOWN = 20  # classes up to which the whole table of answers is shown

_Confusion = Sequence[Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """One class of the test days.

    `recall` is the share of its rows that are found, `precision` the share of the answers with it that are right; None
    where there is none. `gain` is of recall, over the champion. `mixed_up` is the class most often answered instead.
    """

    label: str
    rows: int
    recall: float | None
    precision: float | None
    champion: float | None
    gain: float | None
    mixed_up: str | None
    mixed_up_rows: int


@dataclass(frozen=True, kw_only=True)
class Cell:
    """How many rows of a class got an answer, and which share of the class they are."""

    rows: int
    share: float
    right: bool


def class_rows(evaluation: Evaluation, label: Label) -> list[ClassRow]:
    """Return the rows of the classes table, the least found first; empty without a table of answers."""
    ours = evaluation.challenger.confusion
    if ours is None:
        return []
    theirs = evaluation.champion.confusion if evaluation.champion else None
    rows = [_row(label, number, ours, theirs) for number in range(len(ours))]
    return sorted(rows, key=lambda row: (row.recall is None, row.recall or 0.0))  # those alike stay in their order


def answers(evaluation: Evaluation) -> list[list[Cell]]:
    """Return the challenger's answers by class, for a table; empty when there are too many classes to see anything."""
    confusion = evaluation.challenger.confusion
    if confusion is None or len(confusion) > CELLS_SHOWN:
        return []
    return [
        [Cell(rows=rows, share=rows / max(sum(row), 1), right=label == answer) for answer, rows in enumerate(row)]
        for label, row in enumerate(confusion)
    ]


def _row(label: Label, number: int, ours: _Confusion, theirs: _Confusion | None) -> ClassRow:
    recall = _recall(number, ours)
    champion = _recall(number, theirs) if theirs else None
    wrong = {answer: rows for answer, rows in enumerate(ours[number]) if answer != number and rows}
    mixed_up = max(wrong, key=lambda answer: (wrong[answer], -answer), default=None)
    answered = sum(row[number] for row in ours)
    return ClassRow(
        label=class_text(label, number),
        rows=sum(ours[number]),
        recall=recall,
        precision=ours[number][number] / answered if answered else None,
        champion=champion,
        gain=None if recall is None or champion is None else recall - champion,
        mixed_up=None if mixed_up is None else class_text(label, mixed_up),
        mixed_up_rows=0 if mixed_up is None else wrong[mixed_up],
    )


def _recall(label: int, confusion: _Confusion) -> float | None:
    rows = sum(confusion[label])
    return confusion[label][label] / rows if rows else None
