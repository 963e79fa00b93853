"""Columns of the run table as tensorflow-io reads them, and as files would have given them.

Comes in: the columns wanted and the manifest's schema. Goes out: what to ask the client for, the conditions that cut a
split's rows out of the table, and typed columns.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import tensorflow as tf

from trainer.contract.documents import Manifest
from trainer.errors import NEW_ATTEMPT, DataError, RequestError
from trainer.input.images import ImageFeature
from trainer.input.pipeline import ROW_HASH
from trainer.input.records import MISSING
from trainer.input.source import ColumnSpec, ParseSpec, Share, Tensor, Tensors

_NEW_RUN = f"{NEW_ATTEMPT}: it takes a new snapshot"


@dataclass(frozen=True, kw_only=True)
class _Type:
    dtype: tf.DType  # as the client gives it
    arrow: pa.DataType  # as the table stores it


_TYPES = {
    **dict.fromkeys(("INTEGER", "INT64"), _Type(dtype=tf.int64, arrow=pa.int64())),
    **dict.fromkeys(("FLOAT", "FLOAT64"), _Type(dtype=tf.float64, arrow=pa.float64())),
    **dict.fromkeys(("BOOLEAN", "BOOL"), _Type(dtype=tf.bool, arrow=pa.bool_())),
    "STRING": _Type(dtype=tf.string, arrow=pa.string()),
    "BYTES": _Type(dtype=tf.string, arrow=pa.binary()),
}


@dataclass(frozen=True, kw_only=True)
class Field:
    """A column as the client is asked for it."""

    dtype: tf.DType
    default: Any


class Columns:
    """Wanted columns of a run table.

    Args:
        spec: Columns, as `tf.io.parse_example` would take them.
        manifest: Whose schema and table.

    Raises:
        RequestError: A column that the client cannot read.
    """

    def __init__(self, spec: ParseSpec, manifest: Manifest) -> None:
        self._spec = dict(spec)
        columns = {column.name: column for column in manifest.columns}
        self._kinds = {name: _kind(name, feature, columns) for name, feature in self._spec.items()}

    @property
    def names(self) -> list[str]:
        """Of the columns."""
        return list(self._spec)

    def booleans(self) -> list[str]:
        """Give the columns in which a default cannot stand for NULL."""
        return [name for name, kind in self._kinds.items() if kind.dtype == tf.bool]

    def complete(self) -> str:
        """Give the condition on a row that no wanted column is NULL."""
        return " AND ".join(f"`{name}` IS NOT NULL" for name in self._spec)

    def fields(self, without: frozenset[str] = frozenset()) -> dict[str, Field]:
        """Give what to ask the client for."""
        return {
            name: Field(dtype=kind.dtype, default=_default(self._spec[name]))
            for name, kind in self._kinds.items()
            if name not in without
        }

    def typed(self, batch: Mapping[str, Tensor], missing: frozenset[str]) -> Tensors:
        """Give the columns as files would have given them. [B] each."""
        rows = tf.shape(next(iter(batch.values())), tf.int64)[0]
        columns = {}
        for name, feature in self._spec.items():
            if name in missing:
                columns[name] = tf.fill([rows], tf.constant(_default(feature), feature.dtype))
            else:
                values = batch[name]
                columns[name] = values if values.dtype == feature.dtype else tf.cast(values, feature.dtype)
        return columns

    def require_types(self, schema: bytes, table: str) -> None:
        """Check the table's own types.

        Raises:
            DataError: A column has another one than the manifest says.
        """
        arrow_schema = pa.ipc.read_schema(pa.py_buffer(schema))
        for name, kind in self._kinds.items():
            type_ = arrow_schema.field(name).type
            if type_ != kind.arrow:
                raise DataError(f"{table}, column {name!r}", f"Arrow type {type_}", f"{kind.arrow}", _NEW_RUN)


def span_restriction(manifest: Manifest, split: str, share: Share) -> str:
    """Give the condition on a row of the run table to be in a split.

    Raises:
        DataError: The manifest's spans are not days.
    """
    tested = {file.span for file in manifest.splits["test"].files}
    days = [span.span for span in manifest.spans if span.span not in tested and span.span not in manifest.quarantined]
    try:
        dates = ", ".join(f"DATE '{datetime.date.fromisoformat(day).isoformat()}'" for day in days)
    except ValueError as error:
        raise DataError(f"manifest of run {manifest.run_key}, spans", str(error), "days like 2013-09-20") from error
    if split not in ("train", "validation") or not dates:
        raise DataError(
            f"manifest of run {manifest.run_key}",
            f"split {split} has {manifest.splits[split].rows} examples, no files and no days",
            "files, or days before the test days in the run table",
            _NEW_RUN,
        )
    condition = f"part = '{split}' AND span IN ({dates})"
    if share.count > 1:
        # MOD keeps the sign, and ABS of the least INT64 overflows.
        condition += f" AND MOD(MOD({ROW_HASH}, {share.count}) + {share.count}, {share.count}) = {share.index}"
    return condition


def _kind(name: str, feature: ColumnSpec, columns: Mapping[str, Any]) -> _Type:
    if name == ROW_HASH and name not in columns:
        return _TYPES["INTEGER"]
    column = columns.get(name)
    fault = f"is {column.type} in the run table" if column else "is not in the run table"
    if isinstance(feature, ImageFeature):
        fault = "is an image, which the export resizes"
    elif "." in name:
        fault = "is a field of a STRUCT"
    elif column and column.mode == "REPEATED":
        fault = "is REPEATED, which tensorflow-io's client does not survive"
    elif column and column.type in _TYPES:
        return _TYPES[column.type]
    raise RequestError(
        f"column {name!r}",
        fault,
        f"a scalar of type {', '.join(_TYPES)}, where training reads the table itself",
        "Set training.input to tfrecord, or give such a scalar in the query",
    )


def _default(feature: ColumnSpec) -> float | str:
    default: float | str | None = getattr(feature, "default_value", None)
    return MISSING[feature.dtype] if default is None else default
