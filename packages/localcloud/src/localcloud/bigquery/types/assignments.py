"""Whether values fit into the columns that a statement writes, by the service's rules of coercion.

In: a query whose columns say where they go (`written`), with types. Out: what the service says of the first that does
not fit, or nothing. https://cloud.google.com/bigquery/docs/reference/standard-sql/conversion_rules
"""

from __future__ import annotations

from sqlglot import exp  # type: ignore[import-not-found]  # only in the local cloud environment

from localcloud.bigquery.types.typed import TIMES, can_stand_for, kind_of
from localcloud.bigquery.types.written import written_by

_COERCED = {
    "INT64": frozenset({"NUMERIC", "BIGNUMERIC", "FLOAT64"}),
    "NUMERIC": frozenset({"BIGNUMERIC", "FLOAT64"}),
    "BIGNUMERIC": frozenset({"FLOAT64"}),
    "DATE": frozenset({"DATETIME"}),
}
_DECIMALS = frozenset({"NUMERIC", "BIGNUMERIC"})


def wrong_value(query: exp.Expression) -> str | None:
    """Return what the service says of a value that does not fit where it goes; None: nothing is known against it."""
    if not isinstance(query, exp.Select):
        return None
    for written, value in zip(written_by(query), query.selects, strict=False):
        if written is not None and not fits(value.unalias(), written.kind):
            return written.refusal.format(kind=kind_of(value.unalias()).replace("`", ""))
    return None


def fits(value: exp.Expression, kind: str) -> bool:
    """Return whether a value can go where a type is; what is not known can."""
    own = kind_of(value)
    if not own or own == kind or kind in _COERCED.get(own, ()):
        return True
    for outer in ("ARRAY<", "STRUCT<", "RANGE<"):  # their parts are coerced one by one
        if kind.startswith(outer) or own.startswith(outer):
            return kind.startswith(outer) and own.startswith(outer)
    if kind in {*TIMES, "BYTES", "INTERVAL"} and can_stand_for(value, kind):
        return True
    return own == "FLOAT64" and kind in _DECIMALS and _is_written_number(value)


def _is_written_number(value: exp.Expression) -> bool:
    value = value.unnest()
    return isinstance(value.this if isinstance(value, exp.Neg) else value, exp.Literal)
