"""Patches the types of results: GEOGRAPHY and arrays of JSON have other names."""

from __future__ import annotations

from localcloud.untyped import Untyped

_RESULT_KINDS = {"GEOMETRY": "GEOGRAPHY", "JSON": "JSON"}


def apply(executor: Untyped) -> None:
    """Call GEOGRAPHY and arrays of JSON by name."""
    original = executor._resolve_bq_type

    def resolve(field: Untyped, inner_type: Untyped) -> str:
        stored = (field.metadata or {}).get(b"bqemu.duckdb_type", b"").decode().upper().removesuffix("[]")
        return _RESULT_KINDS.get(stored) or str(original(field, inner_type))

    executor._resolve_bq_type = resolve
