"""Functions and operators that are answered, with the types and the number of their arguments: `signatures.json`.

A signature is `STRING, INT64, [INT64]`, an argument in brackets may be left out, one with `...` may be repeated, and
` | ` stands between those of one function. Beside types there are: ANY; ARRAY and RANGE, of anything; ORDERED, what
ORDER BY takes; GROUPED, what GROUP BY takes, but no array and no struct; ELEMENT, what an array may hold; PART, a part
of a time or what has one; OPTION, a keyword or an argument with its name.

Sources: cloud.google.com/bigquery/docs/reference/standard-sql: functions-all, operators, conversion_rules;
github.com/google/zetasql: zetasql/common/builtin_function_internal_1.cc, _2.cc and _3.cc.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Final, NamedTuple


class Argument(NamedTuple):
    """What one place of a signature takes.

    Attributes:
        kind: A type as GoogleSQL writes it, or one of the words above.
        is_optional: It may be left out.
        is_repeated: It may be there several times.
    """

    kind: str
    is_optional: bool
    is_repeated: bool


class Signature(NamedTuple):
    """One way to call a function.

    Attributes:
        arguments: In their order; at most the last is repeated.
    """

    arguments: tuple[Argument, ...]

    def takes(self, count: int) -> bool:
        """Return whether a call with this many arguments may be one."""
        least = sum(not each.is_optional for each in self.arguments)
        is_open = bool(self.arguments) and self.arguments[-1].is_repeated
        return least <= count and (is_open or count <= len(self.arguments))

    def kind_at(self, place: int) -> str:
        """Return what the argument at a place, from 0, is to be."""
        return self.arguments[min(place, len(self.arguments) - 1)].kind


def _argument(written: str) -> Argument:
    is_optional = written.startswith("[")
    kind = written.strip("[]")
    return Argument(kind.removesuffix("..."), is_optional, kind.endswith("..."))


def _signatures(written: str) -> tuple[Signature, ...]:
    return tuple(Signature(tuple(map(_argument, filter(None, each.split(", "))))) for each in written.split(" | "))


_TABLES: Final = json.loads(
    resources.files("localcloud.bigquery.language").joinpath("signatures.json").read_text(encoding="utf-8")
)
ANSWERED: Final[Mapping[str, tuple[Signature, ...]]] = {
    name: _signatures(written) for name, written in _TABLES["functions"].items()
}
"""Functions that answer here as BigQuery does, with the limits that docs/localcloud.md states."""
OPERATORS: Final[Mapping[str, tuple[Signature, ...]]] = {
    sign: _signatures(written) for sign, written in _TABLES["operators"].items()
}
"""Arithmetic and bits: what two sides they take."""


def take(signatures: tuple[Signature, ...], count: int) -> bool:
    """Return whether one of a function's signatures takes this many arguments."""
    return any(each.takes(count) for each in signatures)
