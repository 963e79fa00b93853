"""TFRecord shards → batches of tensors.

Comes in: proven files. Goes out: a `Split`. Each file is batched inside the interleave and whole batches are parsed:
element-wise parallel reads are ten times slower for small records.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from trainer.errors import DataError
from trainer.input.files import WAY_OUT, Shards
from trainer.input.pipeline import PARALLEL_FILES, READ_BUFFER_BYTES, READ_ROWS, in_order, options
from trainer.input.source import Order, ParseSpec


class RecordSplit:
    """A split in TFRecord files.

    Args:
        name: Of the split.
        shards: Its files.
    """

    stable = True

    def __init__(self, name: str, shards: Shards) -> None:
        self.name, self.rows = name, sum(file.rows for file in shards.files)
        self._shards = shards

    def batches(self, spec: ParseSpec, order: Order = None) -> tf.data.Dataset:
        """Read every example once."""

        def batches_of(path: tf.Tensor) -> tf.data.Dataset:
            return tf.data.TFRecordDataset(path, self._shards.compression, READ_BUFFER_BYTES).batch(READ_ROWS)

        records = in_order(self._shards.paths, order).interleave(
            batches_of, cycle_length=PARALLEL_FILES, num_parallel_calls=PARALLEL_FILES, deterministic=True
        )
        parsed = records.map(lambda batch: tf.io.parse_example(batch, spec), num_parallel_calls=PARALLEL_FILES)
        return parsed.prefetch(4).with_options(options())

    @contextlib.contextmanager
    def reading(self, spec: ParseSpec) -> Iterator[None]:  # noqa: ARG002 - for the other readers
        """Name what cannot be read."""
        try:
            yield
        except tf.errors.OpError as error:
            raise DataError(
                f"split {self.name}", f"an example cannot be read: {error.message}", "the columns in the manifest"
            ) from error

    def require_rows(self, found: int) -> None:
        """Check how many examples were read."""
        if found != self.rows:
            where = f"split {self.name}, {len(self._shards.files)} shards"
            if self._shards.files:
                where += f" from {self._shards.files[0].uri}"
            raise DataError(where, f"{found} examples", f"{self.rows}, as in the manifest", WAY_OUT)
