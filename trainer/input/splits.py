"""A split that stands in files, of whichever format: read in the canonical order, and explained when it is wrong.

List, interleave, batch each file inside the interleave, parse whole batches, prefetch. Element-wise parallel reads, the
usual advice, are ten times slower for small records: every element is handed from thread to thread.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Protocol

import tensorflow as tf

from trainer.errors import DataError
from trainer.input.files import WAY_OUT, Shard, Shards
from trainer.input.pipeline import Reading, shuffled_paths
from trainer.input.source import Dataset, ParseSpec, Share, ShuffleSeed, Tensor, Tensors
from trainer.input.tracing import traced_plainly


class Format(Protocol):
    """How examples lie in a file."""

    def batches_of(self, path: Tensor, compression: str, within: Share | None) -> Dataset:
        """Return a file's records, some thousand rows at a time."""

    def parser(self, spec: ParseSpec) -> Callable[[Tensor], Tensors]:
        """Return what turns such a batch into columns."""

    def rows_within(self, rows: int, within: Share | None) -> int:
        """Return how many of a file's rows are in a share of its records."""

    def find_fault(self, shard: Shard, compression: str, spec: ParseSpec) -> DataError | None:
        """Read a file slowly and name its first record that is not as it should be."""

    def count_rows(self, shard: Shard, compression: str) -> int:
        """Count a file's rows."""


class FileSplit:
    """A split in files.

    Args:
        shards: Its files.
        format_: How to read them.
        reading: How many at a time, and with which threads.
    """

    stable = True

    def __init__(self, name: str, shards: Shards, format_: Format, reading: Reading | None = None) -> None:
        self.name, self.rows = name, sum(format_.rows_within(file.rows, shards.within) for file in shards.files)
        self._shards, self._format, self._reading = shards, format_, reading or Reading()

    @traced_plainly
    def batches(self, spec: ParseSpec, shuffle_seed: ShuffleSeed = None) -> Dataset:
        """Read every example once."""
        shards = self._shards
        batches = shuffled_paths(shards.paths, shuffle_seed).interleave(
            lambda path: self._format.batches_of(path, shards.compression, shards.within),
            **self._reading.files,
            deterministic=True,
        )
        parallel = self._reading.parallel
        parsed = batches.map(self._format.parser(spec), num_parallel_calls=parallel, deterministic=True)
        return parsed.prefetch(self._reading.prefetch).with_options(self._reading.options())

    @contextlib.contextmanager
    def reading(self, spec: ParseSpec) -> Iterator[None]:
        """Name the file and the record that cannot be read."""
        try:
            yield
        except (tf.errors.OpError, UnicodeDecodeError) as error:  # TensorFlow may quote bytes as if they were text
            raise self._explained(spec, error) from error

    def require_rows(self, rows: int) -> None:
        """Check how many examples were read; on a difference count each file's own."""
        if rows == self.rows:
            return
        for file in self._shards.files:
            counted = self._format.count_rows(file, self._shards.compression)
            if counted != file.rows:
                raise DataError(file.uri, f"{counted} examples", f"{file.rows}, as in the manifest", WAY_OUT)
        raise DataError(
            f"split {self.name}, {len(self._shards.files)} files",
            f"{rows} examples",
            f"{self.rows}, as in the manifest",
            WAY_OUT,
        )

    def _explained(self, spec: ParseSpec, error: Exception) -> DataError:
        for file in self._shards.files:
            fault = self._format.find_fault(file, self._shards.compression, spec)
            if fault is not None:
                return fault
        return DataError(
            f"split {self.name}",
            f"an example cannot be read: {getattr(error, 'message', error)}",
            f"columns {', '.join(spec)} as the manifest's schema has them",
            WAY_OUT,
        )
