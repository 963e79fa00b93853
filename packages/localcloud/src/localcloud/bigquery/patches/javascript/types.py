"""Types of functions in JavaScript: what a value of SQL is for one, and what its value is for SQL.

In: a routine's types as the REST API has them. Out: `Kind`, with the names that DuckDB and Arrow have for it, and plain
values that JSON has. Source: cloud.google.com/bigquery/docs/user-defined-functions#supported-javascript-udf-data-types.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from localcloud.refusals import refuse
from localcloud.untyped import Untyped

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_DAY_MS = 86_400_000
_EXACT = 2**53
_ALIASES = {
    **dict.fromkeys(("INT", "SMALLINT", "INTEGER", "BIGINT", "TINYINT", "BYTEINT"), "INT64"),
    "BOOLEAN": "BOOL",
    "DECIMAL": "NUMERIC",
    "BIGDECIMAL": "BIGNUMERIC",
}
_DUCKDB = {
    "INT64": "BIGINT", "FLOAT64": "DOUBLE", "BOOL": "BOOLEAN", "STRING": "VARCHAR", "BYTES": "BLOB", "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP WITH TIME ZONE", "NUMERIC": "DECIMAL(38, 9)", "JSON": "JSON",
}  # fmt: skip
_WHOLE_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
_FITTING = {
    "FLOAT64": ("DOUBLE", "FLOAT", *_WHOLE_NUMBERS),
    "NUMERIC": _WHOLE_NUMBERS,
    "DATE": ("DATE", "VARCHAR"),  # DuckDB takes the text of a literal alone, as BigQuery does
    "TIMESTAMP": ("TIMESTAMP WITH TIME ZONE", "VARCHAR"),
}
"""DuckDB's types that may stand for a parameter's without a cast, where these are others than its own."""


class NotCoercedError(Exception):
    """A function returned what its type does not have."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Kind:
    """A type.

    Attributes:
        name: As a statement writes it.
        kind: Its name without parts.
        element: Of an array.
        fields: Of a struct: names and types.
    """

    name: str
    kind: str
    element: Kind | None = None
    fields: tuple[tuple[str, Kind], ...] = ()

    @property
    def duckdb(self) -> str:
        """The type in DuckDB."""
        return self._written(_DUCKDB)

    @property
    def duckdb_of_arrow(self) -> str:
        """The type in DuckDB of what Arrow has of it: JSON is a text."""
        return self._written({**_DUCKDB, "JSON": "VARCHAR"})

    def _written(self, names: Mapping[str, str]) -> str:
        if self.element is not None:
            return f"{self.element._written(names)}[]"
        if self.fields:
            return f"STRUCT({', '.join(f'{_quoted(name)} {kind._written(names)}' for name, kind in self.fields)})"
        return names[self.kind]

    @property
    def plain(self) -> dict[str, Any]:
        """The type as `runner.js` reads it."""
        described: dict[str, Any] = {"name": self.name, "kind": self.kind}
        if self.element is not None:
            described["element"] = self.element.plain
        if self.fields:
            described["fields"] = [{"name": name, "type": kind.plain} for name, kind in self.fields]
        return described

    def fits(self, value: str) -> str:
        """Return the condition that an expression's type may stand for this one without a cast, in DuckDB's words."""
        given, own = f"typeof({value})", f"typeof(CAST(NULL AS {self.duckdb}))"
        if self.kind == "FLOAT64":
            return f"{given} IN ({_listed(_FITTING[self.kind])}) OR {given} LIKE 'DECIMAL%' OR {given} = '\"NULL\"'"
        names = f", {_listed(_FITTING[self.kind])}" if self.kind in _FITTING else ""
        return f"{given} IN ({own}, '\"NULL\"'{names}{self._literals()})"

    def _literals(self) -> str:
        """Return the types of an array that is written, whose numbers stand for others: those of columns do not."""
        is_floats = self.element is not None and self.element.kind == "FLOAT64"
        return ", 'INTEGER[]', '\"NULL\"[]'" if is_floats else ", '\"NULL\"[]', 'INTEGER[]'" if self.element else ""


def kind_of(described: Mapping[str, Any] | None, what: str, *, is_parameter: bool) -> Kind:
    """Return a routine's type.

    Args:
        described: As the REST API has it.
        what: Whose type it is, for errors.
        is_parameter: Whether it is a parameter's, or the answer's.

    Raises:
        NotOfferedError: Functions in JavaScript have no such type, in BigQuery or here.
    """
    written = str((described or {}).get("typeKind") or "").upper()
    kind = _ALIASES.get(written, written)
    if described and kind == "ARRAY":
        element = kind_of(described.get("arrayElementType"), what, is_parameter=is_parameter)
        return Kind(name=f"ARRAY<{element.name}>", kind=kind, element=element)
    if described and kind == "STRUCT":
        listed = (described.get("structType") or {}).get("fields") or []
        if not listed or any(not each.get("name") for each in listed):
            refuse(f"{what} of a STRUCT whose fields have no names in a function in JavaScript")
        fields = tuple((str(each["name"]), kind_of(each["type"], what, is_parameter=is_parameter)) for each in listed)
        names = ", ".join(f"{name} {field.name}" for name, field in fields)
        return Kind(name=f"STRUCT<{names}>", kind=kind, fields=fields)
    if is_parameter and kind == "INT64":
        refuse(f"{what} of type INT64 in a function in JavaScript: use FLOAT64 or STRING")
    if kind not in _DUCKDB:
        refuse(f"{what} of type {kind or 'ANY TYPE'} in a function in JavaScript")
    return Kind(name=kind, kind=kind)


def arrow_type(kind: Kind) -> Untyped:
    """Return Arrow's type."""
    import pyarrow as pa

    if kind.element is not None:
        return pa.list_(arrow_type(kind.element))
    if kind.fields:
        return pa.struct([(name, arrow_type(field)) for name, field in kind.fields])
    return {
        "INT64": pa.int64(), "FLOAT64": pa.float64(), "BOOL": pa.bool_(), "STRING": pa.string(), "BYTES": pa.binary(),
        "DATE": pa.date32(), "TIMESTAMP": pa.timestamp("us", tz="UTC"), "NUMERIC": pa.decimal128(38, 9),
        "JSON": pa.string(),
    }[kind.kind]  # fmt: skip


def given(value: Untyped, kind: Kind) -> Untyped:
    """Return an argument as JSON has it: `runner.js` makes the function's value of it."""
    if value is None:
        return None
    if kind.element is not None:
        return [given(each, kind.element) for each in value]
    if kind.fields:
        return [given(value[name], field) for name, field in kind.fields]
    return _GIVEN[kind.kind](value) if kind.kind in _GIVEN else value


def taken(value: Untyped, kind: Kind) -> Untyped:
    """Return what a function returned as Arrow has it.

    Raises:
        NotCoercedError: The type does not have it.
    """
    if value is None:
        return None
    if kind.element is not None:
        if None in value:  # BigQuery takes it where no result has it: statements are not looked through for that here
            raise NotCoercedError("The local cloud has no NULL in an array that a function in JavaScript returns")
        return [taken(each, kind.element) for each in value]
    if kind.fields:
        return {name: taken(each, field) for (name, field), each in zip(kind.fields, value, strict=True)}
    try:
        return _TAKEN[kind.kind](value) if kind.kind in _TAKEN else value
    except (ValueError, ArithmeticError, OverflowError):
        raise NotCoercedError(f'Failed to coerce output value "{value}" to type {kind.name}') from None


def _float_given(value: float) -> float | str:
    if math.isfinite(value) and not (value == 0 and math.copysign(1, value) < 0):
        return value
    return "-0" if value == 0 else "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _numeric_given(value: Decimal) -> int | str:
    if value == value.to_integral_value() and abs(value) <= _EXACT:
        return int(value)
    return f"{value.normalize():f}"


def _date_given(value: dt.date) -> int:
    return (value - _EPOCH.date()).days * _DAY_MS


def _timestamp_given(value: dt.datetime) -> str:
    moment = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return str((moment - _EPOCH) // dt.timedelta(microseconds=1))  # a text: JavaScript's numbers have 53 bits


def _integer_taken(value: str) -> int:
    number = int(value)
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return number


def _numeric_taken(value: float | str) -> Decimal:
    with decimal.localcontext(decimal.Context(prec=80)):
        number = Decimal(value).quantize(Decimal("1e-9"), rounding=decimal.ROUND_HALF_UP)
    if not number.is_finite() or abs(number) >= 10**29:
        raise OverflowError
    return number


def _moment_taken(value: float) -> dt.datetime:
    return _EPOCH + dt.timedelta(milliseconds=value)


_GIVEN: dict[str, Callable[[Any], Any]] = {
    "FLOAT64": _float_given,
    "BYTES": lambda value: base64.b64encode(value).decode("ascii"),
    "NUMERIC": _numeric_given,
    "DATE": _date_given,
    "TIMESTAMP": _timestamp_given,
}
_TAKEN: dict[str, Callable[[Any], Any]] = {
    "INT64": _integer_taken,
    "FLOAT64": float,
    "BYTES": base64.b64decode,
    "NUMERIC": _numeric_taken,
    "DATE": lambda value: _moment_taken(value).date(),
    "TIMESTAMP": _moment_taken,
}


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)
