"""Query parameters and their types, which REST sends beside the statement.

In: a statement and REST's QueryParameter objects (https://cloud.google.com/bigquery/docs/reference/rest/v2/QueryParameter).
Out: its tree with a typed value in the place of each parameter, marked as one: a parameter of type STRING may stand for
a date or a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlglot  # type: ignore[import-not-found]  # only in the local cloud environment
from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[import-not-found]

_MARK = "localcloud_parameter"
_POSITION = "localcloud_position_"
_NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL"}
_SCALARS = frozenset(
    {"INT64", "FLOAT64", "NUMERIC", "BIGNUMERIC", "STRING", "BYTES", "BOOL", "DATE", "DATETIME", "TIME", "TIMESTAMP",
     "JSON", "GEOGRAPHY"}
)  # fmt: skip


def position_name(number: int) -> str:
    """Return the name of a parameter that has none, by its place."""
    return f"{_POSITION}{number}"


def number_positions(statement: str) -> str:
    """Return a statement in which each `?` is `@` and its `position_name`."""
    pieces: list[str] = []
    end = 0
    for token in sqlglot.tokenize(statement, read="bigquery"):
        if token.token_type == TokenType.PLACEHOLDER and token.text == "?":
            pieces += [statement[end : token.start], f"@{position_name(len(pieces) // 2)}"]
            end = token.end + 1
    return "".join([*pieces, statement[end:]])


def give_types(tree: exp.Expression, parameters: Sequence[Mapping[str, Any]]) -> exp.Expression:
    """Return a tree with a typed value for each parameter whose type is known; it is changed."""
    kinds = {
        str(parameter.get("name") or position_name(number)).lower(): type_of(parameter.get("parameterType") or {})
        for number, parameter in enumerate(parameters)
    }

    def typed(node: exp.Expression) -> exp.Expression:
        kind = kinds.get(node.name.lower()) if type(node) is exp.Parameter else None
        if not kind:
            return node
        value = exp.cast(exp.null(), exp.DataType.build(kind, dialect="bigquery"))
        value.meta[_MARK] = True
        return value

    return tree.transform(typed, copy=False)


def is_parameter(node: exp.Expression) -> bool:
    """Return whether an expression stands for a query parameter."""
    return bool(node.meta.get(_MARK))


def type_of(described: Mapping[str, Any]) -> str:
    """Return a QueryParameterType as GoogleSQL writes it; "" for one that is not looked at."""
    name = str(described.get("type", "")).upper()
    if name == "ARRAY":
        kind = type_of(described.get("arrayType") or {})
        return f"ARRAY<{kind}>" if kind else ""
    if name in ("STRUCT", "RECORD"):
        fields = [(each.get("name", ""), type_of(each.get("type") or {})) for each in described.get("structTypes", [])]
        if not fields or not all(kind for _, kind in fields):
            return ""
        return f"STRUCT<{', '.join(f'`{each}` {kind}' if each else kind for each, kind in fields)}>"
    name = _NAMES.get(name, name)
    return name if name in _SCALARS else ""
