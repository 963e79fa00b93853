"""The order of rows in a shard: by `row_hash`, ties by their bytes, so that every export gives the same file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from trainer.errors import DataError
from trainer.export.arrays import integers
from trainer.export.encode import Encoder


def by_hash(batch: pa.RecordBatch, encoder: Encoder) -> pa.Array:
    """Give the rows' indices in file order. [n_rows].

    Args:
        batch: With an INT64 column `row_hash`.
        encoder: Gives the bytes of rows with equal hashes.

    Raises:
        DataError: `row_hash` is missing, NULL or not INT64.
    """
    hashes = batch.column("row_hash") if "row_hash" in batch.schema.names else None
    if hashes is None or hashes.null_count or not pa.types.is_int64(hashes.type):
        raise DataError("run table", "column row_hash is missing, NULL or not INT64", "FARM_FINGERPRINT of the row")
    values = integers(hashes)
    order = np.argsort(values, kind="stable")
    equal = np.flatnonzero(np.diff(values[order]) == 0)
    if len(equal):
        _sort_ties(order, values, equal, batch, encoder)
    return pa.Array.from_buffers(pa.int64(), len(order), [None, pa.py_buffer(order.astype(np.int64))])


def _sort_ties(
    order: np.ndarray[tuple[int, ...], np.dtype[np.intp]],
    values: np.ndarray[tuple[int, ...], np.dtype[np.int64]],
    equal: np.ndarray[tuple[int, ...], np.dtype[np.intp]],
    batch: pa.RecordBatch,
    encoder: Encoder,
) -> None:
    """Sort, in place, each run of rows with the same hash by the rows' bytes."""
    positions = np.union1d(equal, equal + 1)
    rows = order[positions].tolist()
    content = {row: b"".join(buffer.tobytes() for buffer in encoder.encode(batch.slice(row, 1))) for row in rows}
    order[positions] = sorted(rows, key=lambda row: (int(values[row]), content[row]))
