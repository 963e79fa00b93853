"""`make bench-export`'s tables as Arrow files, batch by batch as BigQuery sends them.

`flights` and `wide` are `tables.py`'s; `mixed` has an ARRAY<FLOAT64> of 64 values and a 4 kB BYTES column; `hashy` has
20 integers of random magnitude with a tenth NULL: the worst for an encoder that looks values up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from bench import tables

BATCH_BYTES = 8 << 20
BATCH_ROWS = 65_536
BLOB_BYTES = 4096
EMBEDDING = 64
_INTEGERS = 20


def mixed(rows: int) -> pa.Table:
    """Return ids, embeddings, incompressible blobs and labels."""
    random = np.random.default_rng(1)
    ends = np.arange(rows + 1, dtype=np.int32)
    blobs = [None, pa.py_buffer(ends * BLOB_BYTES), pa.py_buffer(random.bytes(rows * BLOB_BYTES))]
    return pa.table(
        {
            "id": np.arange(rows),
            "embedding": pa.ListArray.from_arrays(ends * EMBEDDING, pa.array(random.normal(size=rows * EMBEDDING))),
            "image": pa.Array.from_buffers(pa.binary(), rows, blobs),
            "label": random.integers(0, 10, rows),
        }
    )


def hashy(rows: int) -> pa.Table:
    """Return integers of 1 to 62 random bits, a third negative, a tenth NULL."""
    random = np.random.default_rng(2)

    def column() -> pa.Array:
        values = random.integers(0, 2**62, rows) >> (62 - random.integers(1, 63, rows))
        return pa.array(np.where(random.random(rows) < 0.3, -values, values), mask=random.random(rows) < 0.1)

    return pa.table({f"h{index:02d}": column() for index in range(_INTEGERS)})


TABLES: dict[str, Callable[[int], pa.Table]] = {
    "flights": tables.flights,
    "wide": tables.wide,
    "mixed": mixed,
    "hashy": hashy,
}


def write_table(name: str, rows: int, path: Path) -> int:
    """Write a table as an Arrow file of batches of some megabytes; give the bytes of a row."""
    table = TABLES[name](rows)
    per_row: int = max(table.nbytes // max(len(table), 1), 1)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=min(BATCH_ROWS, max(BATCH_BYTES // per_row, 1)))
    return per_row


def read_batches(path: Path, rows: int) -> Iterator[pa.RecordBatch]:
    """Read the first rows of an Arrow file, a batch at a time."""
    with pa.OSFile(str(path)) as file:
        reader = pa.ipc.open_file(file)
        for index in range(reader.num_record_batches):
            if rows <= 0:
                return
            batch = reader.get_batch(index).slice(0, rows)
            rows -= batch.num_rows
            yield batch


def without_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return timestamps as the whole numbers that all contenders write."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type):
            numbers = batch.column(index).cast(pa.timestamp("us", tz=field.type.tz)).cast(pa.int64())
            batch = batch.set_column(index, field.name, numbers)
    return batch


if __name__ == "__main__":
    print(write_table(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])))
