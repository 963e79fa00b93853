"""Names of GoogleSQL: functions, types, statements and parts of times, from `words.json`.

Source: cloud.google.com/bigquery/docs/reference/standard-sql: functions-all, data-types, data-definition-language,
dml-syntax, procedural-language, timestamp_functions#extract.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final, NamedTuple

_WORDS: Final[dict[str, Any]] = json.loads(
    resources.files("localcloud.bigquery.language").joinpath("words.json").read_text(encoding="utf-8")
)


def _words(of: str) -> frozenset[str]:
    return frozenset(_WORDS[of])


class Counts(NamedTuple):
    """How many arguments a function takes.

    Attributes:
        written: As in `words.json`: `2`, `1-3`, `2+`, or several of these with commas between.
        spans: Least and most, both included; None: without end.
    """

    written: str
    spans: tuple[tuple[int, int | None], ...]

    @classmethod
    def of(cls, written: str) -> Counts:
        """Read counts as they are written."""
        return cls(written, tuple(map(_span, written.split(","))))

    def hold(self, count: int) -> bool:
        """Return whether a call with this many arguments is one of the function."""
        return any(least <= count and (most is None or count <= most) for least, most in self.spans)


def _span(written: str) -> tuple[int, int | None]:
    least, _, most = written.partition("-")
    return (int(least[:-1]), None) if least.endswith("+") else (int(least), int(most or least))


ANSWERED: Final[Mapping[str, Counts]] = {
    name: counts for written, names in _WORDS["answered"].items() for counts in (Counts.of(written),) for name in names
}
"""Functions that answer here as BigQuery does, with the limits that docs/localcloud.md states."""
NOT_ANSWERED: Final = _words("not_answered")
"""Functions that BigQuery has, and the local cloud does not."""
NAMESPACES: Final = _words("namespaces")
"""What stands before names of functions that belong to no dataset."""
TYPES: Final = _words("types")
STATEMENTS: Final = _words("statements")
"""What a statement, or a part of one of a script, begins with."""
CREATED: Final = _words("created")
"""What a CREATE makes: the first word of it."""
PARTS: Final = _words("parts")
"""What EXTRACT gives."""
INTERVAL_PARTS: Final = _words("interval_parts")
