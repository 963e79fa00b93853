"""Columns of the run table as tensorflow-io reads them, and as files would have given them.

Comes in: the columns wanted and the manifest's schema. Goes out: what to ask the client for, and typed columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import tensorflow as tf

from trainer.contract.column_types import COLUMN_TYPES, READ_BY_TENSORFLOW_IO
from trainer.contract.documents import Manifest
from trainer.input.source import ParseSpec, Tensor, Tensors
from trainer.input.tables import default_of, scalar_columns


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column as the client is asked for it."""

    dtype: tf.DType
    default: Any


class IoColumns:
    """Wanted columns of a run table.

    Args:
        spec: Columns, as `tf.io.parse_example` would take them.
        manifest: Whose schema and table.

    Raises:
        RequestError: A column that the client cannot read.
    """

    def __init__(self, spec: ParseSpec, manifest: Manifest) -> None:
        self._spec, self._table = dict(spec), manifest.table
        self._columns = scalar_columns(spec, manifest, READ_BY_TENSORFLOW_IO)

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return list(self._spec)

    def booleans(self) -> list[str]:
        """Return the columns in which a default cannot stand for NULL."""
        return [name for name, column in self._columns.items() if column.type == "BOOLEAN"]

    def complete(self) -> str:
        """Return the condition on a row that no wanted column is NULL."""
        return " AND ".join(f"`{name}` IS NOT NULL" for name in self._spec)

    def fields(self, without: frozenset[str] = frozenset()) -> dict[str, Field]:
        """Return what to ask the client for."""
        return {
            name: Field(dtype=tf.as_dtype(COLUMN_TYPES[column.type].tensorflow), default=default_of(self._spec[name]))
            for name, column in self._columns.items()
            if name not in without
        }

    def typed(self, batch: Mapping[str, Tensor], missing: frozenset[str]) -> Tensors:
        """Return the columns as files would have given them. [B] each."""
        rows = tf.shape(next(iter(batch.values())), tf.int64)[0]
        columns = {}
        for name, feature in self._spec.items():
            if name in missing:
                columns[name] = tf.fill([rows], tf.constant(default_of(feature), feature.dtype))
            else:
                values = batch[name]
                columns[name] = values if values.dtype == feature.dtype else tf.cast(values, feature.dtype)
        return columns

    def require_types(self, schema: bytes) -> None:
        """Check the table's own types.

        Raises:
            DataError: A column has another one than the manifest says.
        """
        found = pa.ipc.read_schema(pa.py_buffer(schema))
        for name, column in self._columns.items():
            column.require_type(found.field(name).type, self._table)
