"""The run table itself → batches of tensors, through the Storage Read API: nothing is exported for it.

Comes in: a manifest whose split has examples but no files. Goes out: a `Split` with the same columns, types and missing
values as the files would give. Each stream of the session has a thread, which makes slices of some thousand rows out of
its Arrow batches; a bounded number of them waits for TensorFlow.

Streams arrive in no order, and a session differs from the next: a split that fits into memory is sorted by `row_hash`
(`pipeline.blocks`), and its epochs are repeatable like those of files; a larger one is read as it comes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import tensorflow as tf

from trainer.bigquery.streams import TableReader
from trainer.contract.documents import Manifest
from trainer.errors import NEW_ATTEMPT, DataError
from trainer.input.arrow import Arrays, ArrowColumns
from trainer.input.pipeline import ROW_HASH, Reading
from trainer.input.slices import Slices
from trainer.input.source import Dataset, ParseSpec, Share, ShuffleSeed
from trainer.input.tables import span_restriction
from trainer.input.tracing import traced_plainly

_MAX_STREAMS = 16


class TableSplit:
    """A split of the run table.

    Args:
        name: Of the split: `train` or `validation`.
        share: Which part of the rows to read, by `row_hash`.
        reading: How many streams and threads.
        reader: Opens sessions.

    Raises:
        DataError: The table is not what the manifest says.
        RequestError: The table is gone, or access is refused.
        StorageError: BigQuery did not answer.
    """

    stable = False

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        share: Share | None = None,
        reading: Reading | None = None,
        reader: TableReader | None = None,
    ) -> None:
        self.name, self._manifest, self._reading = name, manifest, reading or Reading()
        self._restriction = span_restriction(manifest, name, share or Share())
        self._reader = reader or TableReader()
        self._failure: Exception | None = None
        self.rows = manifest.splits[name].rows
        if share is not None and share.count > 1:
            hashes = ArrowColumns({ROW_HASH: tf.io.FixedLenFeature([], tf.int64)}, manifest)
            self.rows = sum(len(columns[0]) for columns in self._slices(hashes))

    @traced_plainly
    def batches(self, spec: ParseSpec, shuffle_seed: ShuffleSeed = None) -> Dataset:
        """Read every example once; each pass opens a session of its own, since sessions expire."""
        del shuffle_seed  # streams have none
        columns = ArrowColumns(spec, self._manifest)
        slices = tf.data.Dataset.from_generator(lambda: self._slices(columns), output_signature=columns.signature)
        typed = slices.map(columns.joined, num_parallel_calls=self._reading.parallel, deterministic=True)
        return typed.prefetch(self._reading.prefetch).with_options(self._reading.options())

    @contextlib.contextmanager
    def reading(self, spec: ParseSpec) -> Iterator[None]:
        """Raise what ended the reading; TensorFlow makes an error of its own of it."""
        del spec  # for files, which can be looked into
        try:
            yield
        except tf.errors.OpError as error:
            if self._failure is None:
                raise
            raise self._failure from error

    def require_rows(self, rows: int) -> None:
        """Check how many examples were read."""
        if rows != self.rows:
            raise DataError(
                f"{self._manifest.table}, split {self.name}",
                f"{rows} examples",
                f"{self.rows}, as in the manifest",
                f"The table is not the one of the snapshot any more. {NEW_ATTEMPT}",
            )

    def _slices(self, columns: ArrowColumns) -> Iterator[Arrays]:
        table, streams = self._manifest.table, min(2 * self._reading.threads, _MAX_STREAMS)
        try:
            session = self._reader.open_session(table, columns.names, self._restriction, streams)
            columns.require_types(session.schema, table)
            with Slices(session.streams, columns.slices) as slices:
                yield from slices
        except Exception as error:  # of any class: TensorFlow makes its own of it, and `reading` raises this one
            self._failure = error
            raise
