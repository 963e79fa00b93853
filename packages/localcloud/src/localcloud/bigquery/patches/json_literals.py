"""Patches what stands behind a JSON literal: `JSON '[1, 2]'[0]` was read as an element of the text, not of the JSON."""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.untyped import Untyped

_BEHIND = (exp.Bracket, exp.Dot)


def apply() -> None:
    """Read the literal first, then what is taken of it."""
    from sqlglot.parsers.bigquery import BigQueryParser  # type: ignore[import-not-found]

    BigQueryParser.TYPE_LITERAL_PARSERS = {**BigQueryParser.TYPE_LITERAL_PARSERS, exp.DType.JSON: _read}


def _read(parser: Untyped, this: exp.Expression, _kind: exp.Expression) -> exp.Expression:
    literal = this
    while isinstance(literal, _BEHIND):
        literal = literal.this
    inner = parser.expression(exp.ParseJSON(this=literal.copy()))
    if literal is this:
        return inner
    literal.replace(inner)
    return this
