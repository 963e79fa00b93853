"""The run table itself → batches of tensors, through tensorflow-io's BigQueryClient (`training.reader: tensorflow_io`).

For an image that has it: its last release works with TensorFlow 2.16 only. Comes in and goes out: what
`bigquery.py` takes and gives, several times slower. Rows come as Arrow over several streams, each batched inside the
interleave. The client's Arrow reader refuses NULL, so rows with a NULL in a wanted column come in sessions of their
own, as Avro.

Streams arrive in no order, and a session differs from the next: a split that fits into memory is sorted by `row_hash`
(`pipeline.blocks`), and its epochs are repeatable like those of files; a larger one is read as it comes.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from trainer.contract.documents import Manifest
from trainer.errors import NEW_ATTEMPT, DataError, RequestError, StorageError, TrainerError
from trainer.input.io_columns import Field, IoColumns
from trainer.input.pipeline import READ_ROWS, ROW_HASH, Reading
from trainer.input.source import Dataset, ParseSpec, Share, ShuffleSeed, Tensor
from trainer.input.tables import span_restriction
from trainer.input.tracing import traced_plainly

_MAX_STREAMS = 16
_TRANSIENT = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.InternalError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnavailableError,
    tf.errors.UnknownError,
)
_numbers = itertools.count()


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """A part of the table that is read in one session.

    Attributes:
        restriction: Its rows.
        format: ARROW or AVRO.
        missing: IoColumns that are NULL in all of them, and are not read.
    """

    restriction: str
    format: str
    missing: frozenset[str] = frozenset()


class IoTableSplit:
    """A split of the run table.

    Args:
        name: Of the split: `train` or `validation`.
        share: Which part of the rows to read, by `row_hash`.
        reading: How many streams and threads.

    Raises:
        DataError: The table is gone or is not what the manifest says.
        StorageError: BigQuery did not answer.
    """

    stable = False

    def __init__(
        self, name: str, manifest: Manifest, share: Share | None = None, reading: Reading | None = None
    ) -> None:
        self.name, self._manifest, self._reading = name, manifest, reading or Reading()
        self._restriction = span_restriction(manifest, name, share or Share())
        self._client = _Client(manifest.table, self._reading)
        self._parts: dict[frozenset[str], list[_Rows]] = {}
        self.rows = manifest.splits[name].rows
        if share is not None and share.count > 1:
            with self._explained():
                self.rows = self._client.count(self._restriction)

    @traced_plainly
    def batches(self, spec: ParseSpec, shuffle_seed: ShuffleSeed = None) -> Dataset:
        """Read every example once, in whatever order the streams give."""
        del shuffle_seed
        columns = IoColumns(spec, self._manifest)
        with tf.init_scope():  # also when an epoch is being traced: what the table holds is asked once, now
            parts = self._parts_for(columns)
        whole = self._read_rows(parts[0], columns)
        for part in parts[1:]:
            whole = whole.concatenate(self._read_rows(part, columns))
        return whole.prefetch(self._reading.prefetch).with_options(self._reading.options())

    @contextlib.contextmanager
    def reading(self, spec: ParseSpec) -> Iterator[None]:
        """Say what BigQuery's answer means."""
        del spec  # for files, which can be looked into
        with self._explained():
            yield

    def require_rows(self, rows: int) -> None:
        """Check how many examples were read."""
        if rows != self.rows:
            raise DataError(
                f"{self._manifest.table}, split {self.name}",
                f"{rows} examples",
                f"{self.rows}, as in the manifest",
                f"The table is not the one of the snapshot any more. {NEW_ATTEMPT}",
            )

    def _read_rows(self, part: _Rows, columns: IoColumns) -> Dataset:
        stored = columns.fields(without=part.missing)
        rows = self._client.rows(part.restriction, stored, part.format)
        return rows.map(
            lambda batch: columns.typed(batch, part.missing),
            num_parallel_calls=self._reading.parallel,
            deterministic=True,
        )

    def _parts_for(self, columns: IoColumns) -> list[_Rows]:
        """Cut the split so that each part can be read, once per set of columns."""
        names = frozenset(columns.names)
        if names not in self._parts:
            with self._explained():
                columns.require_types(self._client.schema(columns.fields()))
                self._parts[names] = list(self._cut(columns))
        return self._parts[names]

    def _cut(self, columns: IoColumns) -> Iterator[_Rows]:
        """Rows without NULL as Arrow; the rest as Avro, and apart by which boolean is NULL.

        Avro gives a default for NULL, and no boolean can stand for a missing one.
        """
        complete = columns.complete()
        yield _Rows(restriction=f"{self._restriction} AND {complete}", format="ARROW")
        incomplete = f"{self._restriction} AND NOT ({complete})"
        if not self._client.count(incomplete, at_most=1):
            return
        parts = [_Rows(restriction=incomplete, format="AVRO")]
        for name in columns.booleans():
            parts = [cut for part in parts for cut in self._cut_by(name, part)]
        yield from parts

    def _cut_by(self, name: str, part: _Rows) -> Iterator[_Rows]:
        null = f"{part.restriction} AND `{name}` IS NULL"
        if not self._client.count(null, at_most=1):
            yield part
            return
        yield _Rows(restriction=null, format=part.format, missing=part.missing | {name})
        yield _Rows(
            restriction=f"{part.restriction} AND `{name}` IS NOT NULL", format=part.format, missing=part.missing
        )

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except tf.errors.OpError as error:
            raise _explanation(error, self._manifest, self.name) from error


class _Client:
    """tensorflow-io's client on one table."""

    def __init__(self, table: str, reading: Reading) -> None:
        self._project, self._dataset, self._table = table.split(".")
        self._reading = reading
        self._streams = min(2 * reading.threads, _MAX_STREAMS)
        library, make_resource = _load_client()
        self._library = library
        # A client's map of connections is not guarded: two streams that open at once through one client crash the
        # process. So each stream has a client of its own; by name, since unnamed ones are one and the same.
        resources = [make_resource(shared_name=f"stream-{next(_numbers)}") for _ in range(self._streams + 1)]
        self._opener = library.BigQueryClient()
        self._opener._client_resource = resources[0]
        self._stream_clients = tf.stack(resources[1:])

    @traced_plainly
    def rows(self, restriction: str, fields: Mapping[str, Field], format_: str) -> Dataset:
        """Return rows in batches; each pass opens a session of its own, since sessions expire."""

        def one_pass(_: Tensor) -> Dataset:
            session = self._session(restriction, fields, format_)
            streams = session.get_streams()

            def batches_of(number: Tensor) -> Dataset:
                # By number: a dataset of resource handles ends the process (DT_VARIANT == input.dtype()).
                stream, session._client_resource = streams[number], self._stream_clients[number]
                # Nothing but a plain batch may stand here: asked again after its end, the client ends the process.
                return session.read_rows(stream).batch(READ_ROWS)

            return tf.data.Dataset.range(tf.size(streams, tf.int64)).interleave(
                batches_of,
                cycle_length=self._streams,
                num_parallel_calls=min(self._reading.threads, self._streams),
                deterministic=True,
            )

        return tf.data.Dataset.range(1).flat_map(one_pass)

    def count(self, restriction: str, at_most: int | None = None) -> int:
        """Count rows, or find out whether there are any."""
        fields = {ROW_HASH: Field(dtype=tf.int64, default=0)}
        rows = 0
        for batch in self.rows(restriction, fields, "ARROW").with_options(self._reading.options()):
            rows += len(batch[ROW_HASH])
            if at_most is not None and rows >= at_most:
                break
        return rows

    def schema(self, fields: Mapping[str, Field]) -> bytes:
        """Return the Arrow schema of some columns, without reading a row."""
        session = self._session("part = ''", fields, "ARROW")
        return bytes(session._schema.numpy())

    def _session(self, restriction: str, fields: Mapping[str, Field], format_: str) -> Any:  # noqa: ANN401 - no types
        return self._opener.read_session(
            f"projects/{self._project}",
            self._project,
            self._table,
            self._dataset,
            {name: {"output_type": field.dtype, "default_value": field.default} for name, field in fields.items()},
            row_restriction=restriction,
            requested_streams=self._streams,
            data_format=self._library.BigQueryClient.DataFormat[format_],
        )


def _load_client() -> tuple[Any, Callable[..., Tensor]]:
    """Import tensorflow-io: its client and the operation that makes a client's resource.

    Raises:
        RequestError: It is missing, or was built for another TensorFlow.
    """
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # it looks for a machine of Google's, and complains
    try:
        from tensorflow_io import bigquery
        from tensorflow_io.python.ops import core_ops

        return bigquery, core_ops.io_big_query_client
    except (ImportError, NotImplementedError, tf.errors.OpError) as error:
        raise RequestError(
            "training.reader tensorflow_io",
            f"tensorflow-io cannot be loaded beside TensorFlow {tf.__version__}: {error}",
            "tensorflow-io 0.37 and TensorFlow 2.16, as trainer/requirements-tfio.txt has them",
            "Train in an image built with it (docs/data.md#tensorflow-io), or remove training.reader",
        ) from error


def _explanation(error: tf.errors.OpError, manifest: Manifest, split: str) -> TrainerError:
    """Say what an answer of BigQuery means for the run."""
    where, reason = f"{manifest.table}, split {split}", " ".join(error.message.split())
    if isinstance(error, tf.errors.NotFoundError):
        return DataError(
            where,
            f"the run table is not there: {reason}",
            f"the table of run {manifest.run_key}",
            f"It expires after data.keep_table_days. {NEW_ATTEMPT}",
        )
    if isinstance(error, tf.errors.PermissionDeniedError | tf.errors.UnauthenticatedError):
        needed = "a service account with bigquery.readsessions.create and bigquery.tables.getData"
        return RequestError(where, reason, needed, "Grant it, then start again")
    if isinstance(error, _TRANSIENT):
        return StorageError(where, f"BigQuery did not answer: {reason}", way_out="Start again")
    return DataError(where, reason, "a run table with the columns of the manifest", NEW_ATTEMPT)
