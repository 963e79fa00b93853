"""Patches values of query parameters: BYTES stay base64, a STRING, and of NUMERIC `4E+8` the exponent is lost."""

from __future__ import annotations

import base64
import binascii
from decimal import Decimal

from localcloud.untyped import Untyped


def apply() -> None:
    """Bind BYTES as bytes, and NUMERIC by its digits."""
    from bqemulator.sql import parameters

    parameters._SCALAR_CONVERTERS["BYTES"] = _read_bytes
    for kind in ("NUMERIC", "BIGNUMERIC"):
        parameters._SCALAR_CONVERTERS[kind] = _read_number


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
