"""Values of hyperparameters that both sides take, or both refuse: Airflow before a job is paid for, the trainer in it.

`tests/contracts/hyperparameters.json` has the forms of a value; each limit of each architecture adds its two sides.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.contracts import EXAMPLES, SCHEMAS


class Row(NamedTuple):
    """A value, and whether it is taken."""

    architecture: str
    name: str
    value: Any
    taken: bool


def edges(known: dict[str, Any]) -> Iterator[tuple[Any, bool]]:
    """Yield the last values that a hyperparameter's limits allow, and the first ones that they do not."""
    step = 1e-9 if known["type"] == "number" else 1
    for limit, inside, outside in (
        ("minimum", 0, -step),
        ("above", step, 0),
        ("maximum", 0, max(step, known.get("maximum", 0) * 1e-9)),
        ("below", -step, 0),
    ):
        if limit in known:
            yield known[limit] + inside, True
            yield known[limit] + outside, False
    if known["type"] == "integers":
        yield [], known.get("may_be_empty", False)
    for choice in known.get("one_of", ()):
        yield choice, True
        yield choice + "?", False


def rows() -> Iterator[Row]:
    """Yield all of them."""
    for values in json.loads((EXAMPLES.parent / "hyperparameters.json").read_text(encoding="utf-8")):
        yield Row(**values)
    architectures = json.loads((SCHEMAS / "capabilities.json").read_text(encoding="utf-8"))["architectures"]
    for architecture, found in architectures.items():
        for name, known in found["hyperparameters"].items():
            for value, taken in edges(known):
                yield Row(architecture, name, value, taken)


ROWS = list(rows())
