"""Patches values of query parameters: BYTES stay the base64 text that REST sends, and become a STRING."""

from __future__ import annotations

import base64
import binascii

from localcloud.untyped import Untyped


def apply() -> None:
    """Bind BYTES as bytes."""
    from bqemulator.sql import parameters

    parameters._SCALAR_CONVERTERS["BYTES"] = _read_bytes


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
