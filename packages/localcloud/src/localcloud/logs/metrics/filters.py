"""Filters of `timeSeries.list`, as far as clients of this project use them.

In: `metric.type = "…" AND resource.labels.endpoint_id = "…" AND metric.labels.latency_type = one_of("model", "x")`.
Out: the metric's type, and whether the labels of a series pass. Comparisons are `=`, `!=` and `= one_of(…)`, joined by
AND; everything else is refused by name.
https://cloud.google.com/monitoring/api/v3/filters
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from localcloud.filter_tokens import END, Token, TokenError, split_path, tokenize

_LABEL = re.compile(r"(metric|resource)\.labels?\.\w+")


class FilterError(ValueError):
    """The filter cannot be read, or uses what is not offered here."""


@dataclass(frozen=True)
class Comparison:
    """A field, whether it must be one of the values or none of them, and these."""

    field: str
    equal: bool
    values: frozenset[str]


@dataclass(frozen=True)
class Filter:
    """All comparisons; each must hold."""

    comparisons: tuple[Comparison, ...]

    @property
    def metric_type(self) -> str:
        """Return the one type that is asked for.

        Raises:
            FilterError: None is, or several are.
        """
        types = [each for each in self.comparisons if each.field == "metric.type" and each.equal]
        if len(types) != 1 or len(types[0].values) != 1:
            raise FilterError('The filter must name one metric: metric.type = "aiplatform.googleapis.com/…".')
        return next(iter(types[0].values))

    def passes(self, fields: Mapping[str, str]) -> bool:
        """Return whether a series is asked for.

        Args:
            fields: `metric.type`, `resource.type`, `metric.labels.…` and `resource.labels.…`.
        """
        return all((fields.get(each.field) in each.values) == each.equal for each in self.comparisons)


def parse(text: str) -> Filter:
    """Read a filter.

    Raises:
        FilterError: It cannot be read, or is more than is offered here.
    """
    try:
        tokens = tokenize(text.replace(",", " "), operators=("!=", "="))
    except TokenError as error:
        raise FilterError(f"Unparseable filter at character {error.position}: {text!r}.") from None
    comparisons = []
    while tokens:
        comparisons.append(_comparison(tokens))
        if tokens and tokens.pop(0) != ("word", "AND"):
            raise FilterError(f"The local cloud takes comparisons joined by AND only, got the filter {text!r}.")
    return Filter(tuple(comparisons))


def _comparison(tokens: list[Token]) -> Comparison:
    name, operator = _take(tokens, "word"), _take(tokens, "operator")
    if name not in ("metric.type", "resource.type") and not _LABEL.fullmatch(name):
        raise FilterError(
            f"Unknown field {name!r} in the filter. Expected metric.type, resource.type, metric.labels.… or"
            " resource.labels.…."
        )
    if tokens and tokens[0] == ("word", "one_of"):
        tokens.pop(0)
        _require(tokens, "(")
        values = []
        while tokens and tokens[0].kind == "string":
            values.append(tokens.pop(0).value)
        _require(tokens, ")")
    else:
        values = [_take(tokens, "string")]
    return Comparison(".".join(split_path(name)).replace(".label.", ".labels."), operator == "=", frozenset(values))


def _take(tokens: list[Token], kind: str) -> str:
    token = tokens.pop(0) if tokens else END
    if token.kind != kind:
        raise FilterError(f"Unparseable filter: expected a {kind}, got {token.text or 'its end'!r}.")
    return token.value


def _require(tokens: list[Token], mark: str) -> None:
    if not tokens or tokens.pop(0) != ("mark", mark):
        raise FilterError(f"Unparseable filter: expected {mark!r} of one_of(…).")
