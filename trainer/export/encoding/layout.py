"""How rows lie in Examples: all numbers in one vector, several rows in one Example, or (by default) neither.

What a training job spends on reading is the number of features and of Examples, not of bytes: one dense vector reads
five times as fast as its hundred columns, Examples of 256 rows twenty times as fast as single ones.
Comes in: batches of rows. Goes out: batches with a row per Example, which the encoder treats like any others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from trainer.contract.column_types import RUN_COLUMNS
from trainer.contract.documents import ImageColumn, ShardLayout
from trainer.errors import RequestError
from trainer.export.encoding.arrays import Floats, feature_kind, floats, integers, is_array, validity
from trainer.export.encoding.types import FeatureKind
from trainer.export.encoding.wire import Ints

NUMERIC = "_numeric"
"""FLOAT: the features in `ShardLayout.numeric`, in that order; NULL is NaN. [n], or [rows_per_record * n] row-major."""

ROWS = "_rows"
"""INT64 [1]: how many rows of a pre-batched Example are real; the others are padding."""

INT64_NULL = np.iinfo(np.int64).min
"""NULL, and padding, of an integer in a pre-batched Example; of a float NaN, of bytes the empty string."""

_EMPTY = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, kw_only=True)
class _Feature:
    """What the layout asks about a column."""

    kind: FeatureKind | None
    repeated: bool
    image: bool  # BYTES


class Arrangement:
    """Lays out batches of one schema.

    Args:
        schema: Of the batches; the run table's own columns are left out.
        images: As in the export request; only checked here.

    Raises:
        RequestError: A column is missing, REPEATED, of another type or has a name that the layout needs; names it.
    """

    def __init__(self, schema: pa.Schema, layout: ShardLayout, images: Sequence[ImageColumn] = ()) -> None:
        fields = [field for field in schema if field.name not in RUN_COLUMNS]
        types = {field.name: field.type for field in fields}
        _require({name: _feature(type_) for name, type_ in types.items()}, layout, images, "layout")
        self._numeric, self._rows = layout.numeric, layout.rows_per_record
        self._plain = [field.name for field in fields if field.name not in layout.numeric]
        self.schema = self.arrange(pa.RecordBatch.from_pylist([], schema=schema)).schema

    def arrange(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row per Example: ⌈n_rows / rows_per_record⌉, the last one padded."""
        columns = {name: batch.column(name) for name in self._plain}
        if self._rows > 1:
            columns = {name: self._grouped(column) for name, column in columns.items()}
            columns[ROWS] = _int64s(self._real(batch.num_rows))
        if self._numeric:
            columns[NUMERIC] = self._vectors([batch.column(name) for name in self._numeric], batch.num_rows)
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def _real(self, rows: int) -> Ints:
        records = -(-rows // self._rows)
        return np.minimum(rows - np.arange(records, dtype=np.int64) * self._rows, self._rows)

    def _vectors(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        """Write all columns side by side. → list<float> [n_records]."""
        records = -(-rows // self._rows)
        matrix = np.empty((records * self._rows, len(columns)), np.float32)
        matrix[rows:] = np.nan
        for index, column in enumerate(columns):
            matrix[:rows, index] = _numbers(column)
        return _lists(_float32s(matrix.reshape(-1)), records, self._rows * len(columns))

    def _grouped(self, column: pa.Array) -> pa.Array:
        """Put the values of each Example into one list, without NULL. → list [n_records]."""
        records = -(-len(column) // self._rows)
        padding = records * self._rows - len(column)
        match feature_kind(column.type):
            case FeatureKind.INT64:
                values, valid = integers(column), validity(column)
                filled = values if valid is None else np.where(valid, values, INT64_NULL)
                padded = _int64s(np.concatenate([filled, np.full(padding, INT64_NULL)]))
            case FeatureKind.FLOAT:
                padded = _float32s(np.concatenate([_numbers(column), np.full(padding, np.nan, np.float32)]))
            case _:
                text = pc.fill_null(column.cast(pa.binary()), _EMPTY)
                padded = pa.concat_arrays([text, pa.array([b""] * padding, pa.binary())])
        return _lists(padded, records, self._rows)


def _numbers(column: pa.Array) -> Floats:
    """Return a column as float32, NULL as NaN. [n]."""
    kind = feature_kind(column.type)
    values = floats(column) if kind is FeatureKind.FLOAT else integers(column).astype(np.float32)
    valid = validity(column)
    return values if valid is None else np.where(valid, values, np.float32(np.nan))


def _lists(values: pa.Array, rows: int, each: int) -> pa.Array:
    """Cut values into lists of the same length."""
    starts = pa.py_buffer((np.arange(rows + 1) * each).astype(np.int32))
    return pa.Array.from_buffers(pa.list_(values.type), rows, [None, starts], 0, 0, [values])


def _float32s(values: Floats) -> pa.Array:
    return pa.Array.from_buffers(pa.float32(), len(values), [None, pa.py_buffer(values)])


def _int64s(values: Ints) -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def _feature(type_: pa.DataType) -> _Feature:
    repeated = is_array(type_)
    kind = feature_kind(type_.value_type if repeated else type_)
    return _Feature(kind=kind, repeated=repeated, image=pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _require(features: Mapping[str, _Feature], layout: ShardLayout, images: Sequence[ImageColumn], where: str) -> None:
    """Check both sides' columns against a layout."""
    named = [*layout.numeric, *(image.name for image in images)]
    _refuse(where, "names columns that are not there", [name for name in named if name not in features], "the query's")
    _refuse(where, "names columns twice", [name for name in features if named.count(name) > 1], "each once")
    numbers = [name for name in layout.numeric if not _is_number(features[name])]
    _refuse(where, f"packs columns into {NUMERIC} that are no numbers", numbers, "INT64, FLOAT64, … not REPEATED")
    pictures = [image.name for image in images if features[image.name].repeated or not features[image.name].image]
    _refuse(where, "names images in columns that are not BYTES", pictures, "PNG or JPEG in BYTES, not REPEATED")
    own = [NUMERIC] * bool(layout.numeric) + [ROWS] * (layout.rows_per_record > 1)
    _refuse(where, "needs the names of columns", [name for name in own if name in features], "other names")
    if layout.rows_per_record > 1:
        repeated = [name for name, feature in features.items() if feature.repeated]
        _refuse(
            where, f"has {layout.rows_per_record} rows per Example with REPEATED columns", repeated, "scalars, or 1 row"
        )


def _is_number(feature: _Feature) -> bool:
    return not feature.repeated and feature.kind in (FeatureKind.INT64, FeatureKind.FLOAT)


def _refuse(where: str, found: str, names: Sequence[str], expected: str) -> None:
    if names:
        raise RequestError(
            where, f"{found}: {', '.join(names)}", expected, "Change the model's data.layout or its query"
        )
