"""A light check of cron expressions, so that a typing error shows in `make check-models`; Airflow checks the rest."""

from __future__ import annotations

import re

_FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of month", 1, 31, ()),
    ("month", 1, 12, ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")),
    ("day of week", 0, 7, ("sun", "mon", "tue", "wed", "thu", "fri", "sat")),
)
_PRESETS = frozenset({"@hourly", "@daily", "@weekly", "@monthly", "@quarterly", "@yearly"})
_ITEM = re.compile(r"^(?P<first>\*|[a-z0-9]+)(?:-(?P<last>[a-z0-9]+))?(?:/(?P<step>\d+))?$")


def check_cron(expression: str) -> str:
    """Return the expression unchanged when it is a five-field cron expression or one of Airflow's presets.

    Raises:
        ValueError: It is neither; the message names the field.
    """
    if expression in _PRESETS:
        return expression
    parts = expression.split()
    if len(parts) != len(_FIELDS):
        raise ValueError(
            f"{expression!r} has {len(parts)} fields; a cron expression has 5: minute hour day-of-month month "
            "day-of-week, for example '0 3 * * *'"
        )
    for part, (name, low, high, words) in zip(parts, _FIELDS, strict=True):
        for item in part.lower().split(","):
            _check_item(item, name, low, high, words)
    return expression


def _check_item(item: str, name: str, low: int, high: int, words: tuple[str, ...]) -> None:
    match = _ITEM.match(item)
    if match is None:
        raise ValueError(f"{item!r} is no {name}: expected {low}-{high}, *, a range, a list or a step like */5")
    if match["step"] is not None and int(match["step"]) == 0:
        raise ValueError(f"{item!r} steps by 0 in the {name} field")
    if match["first"] == "*":
        if match["last"] is not None:
            raise ValueError(f"{item!r} is no {name}: * cannot begin a range")
        return
    bounds = [_number(text, name, low, high, words) for text in (match["first"], match["last"]) if text is not None]
    if bounds != sorted(bounds):
        raise ValueError(f"{item!r} runs backwards in the {name} field")


def _number(text: str, name: str, low: int, high: int, words: tuple[str, ...]) -> int:
    if text in words:
        return words.index(text) + (1 if low == 1 else 0)
    if not text.isdigit() or not low <= int(text) <= high:
        raise ValueError(f"{text!r} is no {name}: expected {low} to {high}")
    return int(text)
