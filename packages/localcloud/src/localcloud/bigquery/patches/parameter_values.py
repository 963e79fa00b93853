"""Patches values of query parameters.

| value | without it |
|---|---|
| BYTES | base64, a STRING |
| NUMERIC `4E+8` | the exponent is lost |
| JSON | a STRING |
| DATE, DATETIME, TIMESTAMP of the year `1`, as Python's `strftime` writes it | refused |
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from localcloud.untyped import Untyped

_YEAR = re.compile(r"^\d{1,3}(?=-)")


def apply() -> None:
    """Bind BYTES as bytes, NUMERIC by its digits, JSON as JSON, and times of any year."""
    from bqemulator.sql import parameters

    parameters._SCALAR_CONVERTERS["BYTES"] = _read_bytes
    for kind in ("NUMERIC", "BIGNUMERIC"):
        parameters._SCALAR_CONVERTERS[kind] = _read_number
    for kind in ("DATE", "DATETIME", "TIMESTAMP"):
        parameters._SCALAR_CONVERTERS[kind] = functools.partial(_read_time, parameters._SCALAR_CONVERTERS[kind])
    original = parameters._placeholder_for

    def placeholder_for(value: Untyped, parameter: dict[str, Any]) -> str:
        is_json = (parameter.get("parameterType") or {}).get("type") == "JSON"
        return "CAST(? AS JSON)" if is_json else str(original(value, parameter))

    parameters._placeholder_for = placeholder_for


def _read_time(read: Callable[[str], Untyped], text: Untyped) -> Untyped:
    """Return a time whose year may have fewer than four digits."""
    return read(_YEAR.sub(lambda match: match[0].zfill(4), str(text), count=1))


def _read_bytes(text: Untyped) -> bytes:
    """Return the bytes of a value.

    Raises:
        ValidationError: It is no base64.
    """
    from bqemulator.domain.errors import ValidationError

    try:
        return base64.b64decode(str(text), validate=True)
    except binascii.Error:
        raise ValidationError(f"Invalid value of a BYTES parameter: {str(text)[:100]!r}. Expected base64.") from None


def _read_number(text: Untyped) -> Decimal:
    """Return a number written without an exponent, which DuckDB drops.

    Raises:
        ValidationError: It is none.
    """
    from bqemulator.domain.errors import ValidationError

    try:
        number = Decimal(str(text))
    except ArithmeticError:
        number = Decimal("NaN")
    if not number.is_finite():
        raise ValidationError(f"Invalid NUMERIC value: {str(text)[:100]}")
    return Decimal(f"{number:f}")
