"""The run table as a training reads it: which rows are a split's, and which columns can be read.

Comes in: the manifest, a split's name and share, the columns wanted. Goes out: a condition on rows, and per column its
type, checked.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa

from trainer.contract.column_types import COLUMN_TYPES, READ_FROM_TABLE
from trainer.contract.documents import Column as ManifestColumn
from trainer.contract.documents import Manifest
from trainer.errors import NEW_ATTEMPT, DataError, RequestError
from trainer.input.images import ImageFeature
from trainer.input.pipeline import ROW_HASH
from trainer.input.records import MISSING
from trainer.input.source import ColumnSpec, ParseSpec, Share

_NEW_RUN = f"{NEW_ATTEMPT}: it takes a new snapshot"


@dataclass(frozen=True, kw_only=True)
class Column:
    """A scalar of the run table.

    Attributes:
        name: Of the column.
        type: As the manifest has it.
    """

    name: str
    type: str

    def require_type(self, found: pa.DataType, table: str) -> None:
        """Check the table's own type.

        Raises:
            DataError: It is not the manifest's.
        """
        expected = COLUMN_TYPES[self.type].arrow
        if str(found) != expected:
            raise DataError(f"{table}, column {self.name!r}", f"Arrow type {found}", expected, _NEW_RUN)


def scalar_columns(spec: ParseSpec, manifest: Manifest, types: Collection[str] = READ_FROM_TABLE) -> dict[str, Column]:
    """Find the wanted columns.

    Args:
        spec: Columns, as `tf.io.parse_example` would take them.
        manifest: Whose schema.
        types: Those that can be read.

    Raises:
        RequestError: One that cannot be read.
    """
    stored = {column.name: column for column in manifest.columns}
    stored.setdefault(ROW_HASH, ManifestColumn(name=ROW_HASH, type="INTEGER", mode="NULLABLE"))
    return {name: _scalar(name, feature, stored.get(name), types) for name, feature in spec.items()}


def span_restriction(manifest: Manifest, split: str, share: Share) -> str:
    """Return the condition on a row of the run table to be in a split.

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


def default_of(feature: ColumnSpec) -> float | str:
    """Return what stands for NULL."""
    default: float | str | None = getattr(feature, "default_value", None)
    return MISSING[feature.dtype] if default is None else default


def _scalar(name: str, feature: ColumnSpec, column: ManifestColumn | None, types: Collection[str]) -> Column:
    fault = f"is {column.type} in the run table" if column else "is not in the run table"
    if isinstance(feature, ImageFeature):
        fault = "is an image, which the export resizes"
    elif "." in name:
        fault = "is a field of a STRUCT"
    elif column and column.mode == "REPEATED":
        fault = "is REPEATED"
    elif column and column.type in types:
        return Column(name=name, type=column.type)
    raise RequestError(
        f"column {name!r}",
        fault,
        f"a scalar of type {', '.join(types)}, where training reads the table itself",
        "Set training.input to tfrecord, or give such a scalar in the query",
    )
