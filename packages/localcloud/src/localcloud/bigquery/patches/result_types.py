"""Patches results: names of types, texts of values, and structs whose fields have no names.

| result | without it |
|---|---|
| GEOGRAPHY, arrays of JSON | other names |
| NaN and infinities | other texts |
| `POINT(1 2)` of GEOGRAPHY | `POINT (1 2)` |
| `SELECT (1, 'a')`: `_field_1`, `_field_2` | an error |
| `SELECT [1, NULL]`: refused | an array that clients cannot read |
"""

from __future__ import annotations

import functools
import math
from collections.abc import Awaitable, Callable

import pyarrow as pa

from localcloud.untyped import Untyped

_RESULT_KINDS = {"GEOMETRY": "GEOGRAPHY", "JSON": "JSON"}


def apply(executor: Untyped) -> None:
    """Call types, write values and name fields as the service does."""
    from bqemulator.scripting.interpreter import ScriptInterpreter
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
    write_geography, finalize = arrow_bridge.wkb_to_wkt, executor._finalize_statement_result
    arrow_bridge.wkb_to_wkt = lambda value: str(write_geography(value)).replace(" (", "(")

    @functools.wraps(finalize)
    def finalize_named(table: Untyped, statement_type: str, **kwargs: Untyped) -> Untyped:
        rows, affected, fields = finalize(table, statement_type, **kwargs)
        return name_fields(rows), affected, fields

    executor._finalize_statement_result = finalize_named
    executor._run_single_sql = _without_null_elements(executor._run_single_sql)
    for name in ("_run_query", "_run_query_with_params"):
        setattr(ScriptInterpreter, name, _with_names(getattr(ScriptInterpreter, name)))


def _without_null_elements(run: Callable[..., Awaitable[pa.Table]]) -> Callable[..., Awaitable[pa.Table]]:
    """Refuse results with arrays that have NULL among their elements: within a query they are allowed."""
    from bqemulator.domain.errors import InvalidQueryError

    @functools.wraps(run)
    async def run_checked(*args: Untyped, **kwargs: Untyped) -> pa.Table:
        rows = await run(*args, **kwargs)
        for name, column in zip(rows.column_names, rows.columns, strict=True):
            if any(map(has_null_elements, column.chunks)):
                raise InvalidQueryError(f"Array cannot have a null element; error in writing field {name}")
        return rows

    return run_checked


def has_null_elements(values: pa.Array) -> bool:
    """Return whether an array, at any depth, has NULL among its elements."""
    if pa.types.is_list(values.type):
        elements = values.flatten()  # of NULL it has none
        return elements.null_count > 0 or has_null_elements(elements)
    if pa.types.is_struct(values.type):
        return any(map(has_null_elements, values.flatten()))
    return False


def _with_names(run: Callable[..., Awaitable[pa.Table]]) -> Callable[..., Awaitable[pa.Table]]:
    """Let a script's variables and results have fields with names: Python's dictionaries need them."""

    @functools.wraps(run)
    async def run_named(*args: Untyped, **kwargs: Untyped) -> pa.Table:
        return name_fields(await run(*args, **kwargs))

    return run_named


def name_fields(rows: pa.Table) -> pa.Table:
    """Return a result whose structs' fields all have names: one without has `_field_` and its place, from 1."""
    fields = [field.with_type(_named(field.type)) for field in rows.schema]
    if all(new.type == old.type for new, old in zip(fields, rows.schema, strict=True)):
        return rows
    columns = [
        column
        if field.type == column.type
        else pa.chunked_array([chunk.view(field.type) for chunk in column.chunks], field.type)
        for field, column in zip(fields, rows.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields, rows.schema.metadata))


def _named(kind: pa.DataType) -> pa.DataType:
    """Return a type with names for its structs' fields, at any depth."""
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_named(kind.value_type)))
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct(
        [
            field.with_type(_named(field.type)).with_name(field.name or f"_field_{place}")
            for place, field in enumerate(kind, start=1)
        ]
    )


def _float_text(value: float, *_: Untyped) -> str:
    if math.isfinite(value):
        return str(value)
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
