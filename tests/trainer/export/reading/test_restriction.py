"""Filters choose exactly the wanted units, and nothing gets into them that is not a date, a part or a number."""

from __future__ import annotations

import datetime
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.errors import RequestError
from trainer.export.reading.reader import row_restriction
from trainer.export.work import Unit

DAYS = ("2023-12-31", "2024-01-01", "2024-01-02")
UNIT = st.builds(
    Unit, span=st.sampled_from(DAYS), part=st.sampled_from(["train", "validation"]), shard=st.integers(0, 3)
)


def chosen(condition: str, unit: Unit) -> bool:
    """Evaluate the condition for one row, in Python."""
    python = re.sub(r"DATE '([^']*)'", r"date('\1')", condition)
    python = re.sub(r"IN \(([^()]*(?:\('[^']*'\)[^()]*)*)\)", r"in {\1}", python)
    python = re.sub(r"(\w) = ", r"\1 == ", python).replace("AND", "and").replace("OR", "or")
    values = {"span": datetime.date.fromisoformat(unit.span), "part": unit.part, "shard": unit.shard}
    return bool(eval(python, {"date": datetime.date.fromisoformat}, values))  # noqa: S307 - made above


@given(st.lists(UNIT, min_size=1, max_size=12, unique=True))
def test_it_chooses_the_units_and_no_others(units: list[Unit]) -> None:
    condition = row_restriction(units)
    for day in DAYS:
        for part in ("train", "validation"):
            for shard in range(5):
                unit = Unit(span=day, part=part, shard=shard)
                assert chosen(condition, unit) == (unit in units), condition


@pytest.mark.parametrize(
    ("units", "condition"),
    [
        pytest.param(
            [("2024-01-01", "train", 0)], "(span = DATE '2024-01-01' AND part = 'train' AND shard = 0)", id="one"
        ),
        pytest.param(
            [(day, part, 0) for day in DAYS for part in ("train", "validation")],
            "(span IN (DATE '2023-12-31', DATE '2024-01-01', DATE '2024-01-02') AND"
            " ((part = 'train' AND shard = 0) OR (part = 'validation' AND shard = 0)))",
            id="days-alike",
        ),
        pytest.param(
            [("2024-01-01", "train", 1), ("2024-01-01", "train", 0), ("2024-01-02", "train", 0)],
            "(span = DATE '2024-01-01' AND part = 'train' AND shard IN (0, 1))"
            " OR (span = DATE '2024-01-02' AND part = 'train' AND shard = 0)",
            id="days-unlike",
        ),
        pytest.param([("golden", "golden", 1), ("golden", "golden", 0)], "shard IN (0, 1)", id="frozen-set"),
    ],
)
def test_it_is_short(units: list[tuple[str, str, int]], condition: str) -> None:
    assert row_restriction([Unit(span=span, part=part, shard=shard) for span, part, shard in units]) == condition


@pytest.mark.parametrize(
    "unit",
    [
        Unit(span="2024-01-01' OR '1'='1", part="train", shard=0),
        Unit(span="20240101", part="train", shard=0),
        Unit(span="2024-01-01", part="train' --", shard=0),
        Unit(span="2024-01-01", part="golden", shard=0),
        Unit(span="2024-01-01", part="train", shard="0 OR TRUE"),
        Unit(span="golden", part="train", shard=0),
        Unit(span="golden", part="golden", shard=-1),
    ],
    ids=["span", "short", "part", "golden-part", "shard", "golden-span", "negative"],
)
def test_nothing_else_gets_in(unit: Unit) -> None:
    with pytest.raises(RequestError):
        row_restriction([unit])
