"""STRUCT columns, flattened: each leaf becomes a column of its own, named by its path with dots.

Comes in: record batches as BigQuery sends them. Goes out: the same rows with scalar and REPEATED columns only. A NULL
STRUCT gives NULL leaves; a REPEATED STRUCT gives a REPEATED leaf per field, as long as the array. Nothing is copied.
"""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from trainer.errors import DataError


def flatten(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with every STRUCT column replaced, in its place, by its leaves (`outer.inner`).

    Args:
        batch: Columns may be scalars, STRUCTs of any depth, and arrays of either.

    Raises:
        DataError: An array inside an array, or two leaves with the same name; names the leaf.
    """
    if not any(pa.types.is_nested(type_) and not _is_flat_array(type_) for type_ in batch.schema.types):
        return batch
    leaves = [
        leaf
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
        for leaf in _leaves(name, column, repeated=False)
    ]
    _require_distinct([name for name, _ in leaves])
    return pa.RecordBatch.from_arrays([column for _, column in leaves], [name for name, _ in leaves])


def _leaves(name: str, column: pa.Array, *, repeated: bool) -> Iterator[tuple[str, pa.Array]]:
    if _is_struct(column.type):
        fields = (column.type.field(index).name for index in range(column.type.num_fields))
        for field, child in zip(fields, column.flatten(), strict=True):  # Arrow's flatten also spreads the NULLs
            yield from _leaves(f"{name}.{field}", child, repeated=repeated)
    elif _is_array(column.type):
        _require_flat(name, repeated)
        for leaf, values in _leaves(name, column.values, repeated=True):
            yield leaf, _with_values(column, values)
    else:
        yield name, column


def _with_values(column: pa.Array, values: pa.Array) -> pa.Array:
    """Return an array of the same shape over other elements."""
    kind = pa.list_ if pa.types.is_list(column.type) else pa.large_list
    validity, offsets = column.buffers()[:2]
    return pa.Array.from_buffers(
        kind(values.type), len(column), [validity, offsets], column.null_count, column.offset, [values]
    )


def _is_struct(type_: pa.DataType) -> bool:
    return bool(pa.types.is_struct(type_))


def _is_array(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _is_flat_array(type_: pa.DataType) -> bool:
    return _is_array(type_) and not pa.types.is_nested(type_.value_type)


def _require_flat(name: str, repeated: bool) -> None:
    if repeated:
        raise DataError(
            f"column {name}",
            "is REPEATED inside a REPEATED STRUCT",
            "one level of REPEATED: an Example's lists do not nest",
            "UNNEST it, or join its values into one STRING, in the query",
        )


def _require_distinct(names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise DataError(
            f"column {', '.join(twice)}", "stands twice after STRUCTs are flattened", "distinct names", "Rename one"
        )
