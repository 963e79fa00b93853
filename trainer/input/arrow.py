"""Columns of the run table as Arrow has them → tensors as files would have given them.

Comes in: the columns wanted and the manifest's schema. Goes out: their names and types, and from a record batch slices
of NumPy arrays: numbers with the default for NULL, texts as distinct values and each row's place among them, which
TensorFlow joins. A text becomes a Python object once per slice and distinct value, not once per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import tensorflow as tf

from trainer.contract.documents import Manifest
from trainer.input.source import ColumnSpec, ParseSpec, Tensor, Tensors
from trainer.input.tables import default_of, scalar_columns

SLICE_ROWS = 8192

Arrays: TypeAlias = tuple[npt.NDArray[Any], ...]
"""A slice: an array per column, two of a text."""


class ArrowColumns:
    """Wanted columns of a run table.

    Args:
        spec: Columns, as `tf.io.parse_example` would take them.
        manifest: Whose schema.

    Raises:
        RequestError: A column that cannot be read from the table.
    """

    def __init__(self, spec: ParseSpec, manifest: Manifest) -> None:
        self._spec = dict(spec)
        self._columns = scalar_columns(spec, manifest)
        self.names = list(self._spec)

    @property
    def signature(self) -> tuple[tf.TensorSpec, ...]:
        """Of a slice's arrays."""
        found: list[tf.TensorSpec] = []
        for feature in self._spec.values():
            if feature.dtype == tf.string:
                found.append(tf.TensorSpec([None], tf.int32))  # places
            found.append(tf.TensorSpec([None], feature.dtype))
        return tuple(found)

    def require_types(self, schema: pa.Schema, table: str) -> None:
        """Check the table's own types.

        Raises:
            DataError: A column has another one than the manifest says.
        """
        for name, column in self._columns.items():
            column.require_type(schema.field(name).type, table)

    def slices(self, batch: pa.RecordBatch) -> Iterator[Arrays]:
        """Cut a batch, NULL filled."""
        for start in range(0, batch.num_rows, SLICE_ROWS):
            rows = batch.slice(start, SLICE_ROWS)
            yield tuple(
                array
                for feature, values in zip(self._spec.values(), rows.columns, strict=True)
                for array in _arrays(values, feature)
            )

    def joined(self, *arrays: Tensor) -> Tensors:
        """Return the columns. [B] each."""
        found, columns = iter(arrays), {}
        for name, feature in self._spec.items():
            values = next(found)
            columns[name] = tf.gather(next(found), values) if feature.dtype == tf.string else values
        return columns


def _arrays(values: pa.Array, feature: ColumnSpec) -> Iterator[npt.NDArray[Any]]:
    """Yield a column's arrays. Arrow's kernels and NumPy's casts leave the other threads Python's lock."""
    default = default_of(feature)
    if feature.dtype == tf.string:
        text = (
            values if pa.types.is_string(values.type) or pa.types.is_binary(values.type) else values.cast(pa.string())
        )
        coded = text.fill_null(default).dictionary_encode()
        yield coded.indices.to_numpy()
        yield coded.dictionary.cast(pa.binary()).to_numpy(zero_copy_only=False)
        return
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    wide = values.cast(pa.int64() if feature.dtype == tf.int64 else pa.float64(), safe=False)
    with np.errstate(over="ignore"):  # beyond float32 is infinity, as in files
        yield wide.fill_null(default).to_numpy().astype(feature.dtype.as_numpy_dtype, copy=False)
