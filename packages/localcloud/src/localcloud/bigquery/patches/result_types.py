"""Patches the types of results: GEOGRAPHY and arrays of JSON have other names; NaN and infinities other texts."""

from __future__ import annotations

import math

from localcloud.untyped import Untyped

_RESULT_KINDS = {"GEOMETRY": "GEOGRAPHY", "JSON": "JSON"}


def apply(executor: Untyped) -> None:
    """Call GEOGRAPHY and arrays of JSON by name, and write NaN and infinities as JSON of the service has them."""
    from bqemulator.storage import arrow_bridge

    is_float = arrow_bridge.pa.types.is_floating
    arrow_bridge._BQ_TYPE_FORMATTERS = tuple(
        (is_kind, _float_text if is_kind is is_float else write) for is_kind, write in arrow_bridge._BQ_TYPE_FORMATTERS
    )
    original = executor._resolve_bq_type

    def resolve(field: Untyped, inner_type: Untyped) -> str:
        stored = (field.metadata or {}).get(b"bqemu.duckdb_type", b"").decode().upper().removesuffix("[]")
        return _RESULT_KINDS.get(stored) or str(original(field, inner_type))

    executor._resolve_bq_type = resolve


def _float_text(value: float, *_: Untyped) -> str:
    if math.isfinite(value):
        return str(value)
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
