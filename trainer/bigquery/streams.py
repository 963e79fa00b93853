"""A read session of a table: streams of Arrow record batches.

Comes in: a table, columns, a row restriction. Goes out: streams, each to be read by one thread. One that breaks is
continued at the row where it broke. https://cloud.google.com/bigquery/docs/reference/storage
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import grpc
import pyarrow as pa
from google.api_core import exceptions
from google.api_core.gapic_v1 import routing_header
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

from trainer.bigquery.structs import flatten
from trainer.errors import NEW_ATTEMPT, OUTAGE_S, RequestError, StorageError, TrainerError

_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.5, 30.0  # between two attempts without a new row
_STREAM_TIMEOUT_S = 3600.0
_ARROW_RECORD_BATCH, _SERIALIZED_RECORD_BATCH = 4, 1  # fields of ReadRowsResponse, and of ArrowRecordBatch in it
_VARINT, _BYTES, _FIXED = 0, 2, {1: 8, 5: 4}  # wire types
_TRANSIENT = (
    exceptions.Aborted,
    exceptions.Cancelled,
    exceptions.DeadlineExceeded,
    exceptions.InternalServerError,
    exceptions.ServiceUnavailable,
    exceptions.TooManyRequests,
    exceptions.Unknown,
)
NO_READ_AHEAD = ("grpc.http2.bdp_probe", 0)
"""Channel option: hold no more of a stream than was asked for."""

_PATIENTLY = Retry(predicate=if_exception_type(*_TRANSIENT), timeout=OUTAGE_S)
_LISTED = 40
_AGAIN = "Start again: what is finished is kept"


@dataclass(frozen=True, kw_only=True)
class Session:
    """A snapshot of the rows that are wanted.

    Attributes:
        schema: Of the columns as the table has them, STRUCTs whole.
        streams: Disjoint shares of the rows, in any order; none where there are no rows.
    """

    schema: pa.Schema
    streams: Sequence[RowStream]


class TableReader:
    """Opens read sessions.

    Args:
        client: Default: Google's client with credentials and hosts from the environment.
        sleep: Waits this many seconds between attempts.
    """

    def __init__(self, client: BigQueryReadClient | None = None, sleep: Callable[[float], None] = time.sleep) -> None:
        self._client, self._sleep = client, sleep

    def open_session(self, table: str, columns: Sequence[str], restriction: str, streams: int) -> Session:
        """Start reading.

        Args:
            table: project.dataset.table
            columns: Wanted, in this order; a field of a STRUCT as `outer.inner`.
            restriction: Condition on a row, in GoogleSQL.
            streams: At most so many at once.

        Raises:
            RequestError: The table or a column is missing, or access is refused.
            StorageError: BigQuery did not answer; of the streams: one broke again and again.
        """
        session = self._create_session(table, columns, restriction, streams)
        schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
        made = [RowStream(self._messages, table, each.name, schema, columns, self._sleep) for each in session.streams]
        return Session(schema=schema, streams=made)

    def _create_session(self, table: str, columns: Sequence[str], restriction: str, streams: int) -> types.ReadSession:
        project, dataset, name = table.split(".")
        fields = [*dict.fromkeys(column.split(".")[0] for column in columns)]
        request = types.ReadSession(
            table=f"projects/{project}/datasets/{dataset}/tables/{name}",
            data_format=types.DataFormat.ARROW,
            read_options=types.ReadSession.TableReadOptions(selected_fields=fields, row_restriction=restriction),
        )
        try:
            if self._client is None:
                self._client = BigQueryReadClient(transport=partial(BigQueryReadGrpcTransport, channel=_channel))
            return self._client.create_read_session(
                parent=f"projects/{project}", read_session=request, max_stream_count=streams, retry=_PATIENTLY
            )
        except (exceptions.GoogleAPICallError, GoogleAuthError) as error:
            raise _refused(table, fields, error) or StorageError(
                table, f"BigQuery did not answer: {error}", "a read session", _AGAIN
            ) from error

    def _messages(self, name: str, offset: int) -> Any:  # noqa: ANN401 - grpc has no types
        """Ask for a stream's messages as they are: the client's own classes would copy each twice."""
        if self._client is None:
            raise AssertionError("a stream has a session")
        call = self._client.transport.grpc_channel.unary_stream(
            "/google.cloud.bigquery.storage.v1.BigQueryRead/ReadRows", types.ReadRowsRequest.serialize
        )
        request = types.ReadRowsRequest(read_stream=name, offset=offset)
        routing = routing_header.to_grpc_metadata([("read_stream", name)])
        return call(request, timeout=_STREAM_TIMEOUT_S, metadata=[routing])


class RowStream:
    """Iterates over a stream's record batches; another thread may close it meanwhile.

    Args:
        ask: From the stream's name and the first row wanted to its messages.
        table: For messages.
        name: Of the stream.
        schema: Of its batches.
        columns: To select.
        sleep: As of `TableReader`.
    """

    def __init__(
        self,
        ask: Callable[[str, int], Any],
        table: str,
        name: str,
        schema: pa.Schema,
        columns: Sequence[str],
        sleep: Callable[[float], None],
    ) -> None:
        self._ask, self._table, self._name, self._schema, self._columns = ask, table, name, schema, list(columns)
        self._sleep = sleep
        self._messages: Any = None
        self._closed = False
        self._batches = self._read()

    def __iter__(self) -> RowStream:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def close(self) -> None:
        """End it: the server stops sending, and who waits for the next batch finds the end."""
        self._closed = True
        if self._messages is not None:
            self._messages.cancel()

    def _read(self) -> Iterator[pa.RecordBatch]:
        """Yield the batches; after an error go on at the first row that did not arrive."""
        offset, delay, waited = 0, _FIRST_DELAY_S, 0.0
        while not self._closed:
            try:
                self._messages = self._ask(self._name, offset)
                for message in self._messages if not self._closed else ():
                    batches = [_batch(message, self._schema, self._columns)]
                    del message
                    offset, delay, waited = offset + batches[0].num_rows, _FIRST_DELAY_S, 0.0
                    yield batches.pop()  # nothing here keeps it while the next one is waited for
                return
            except grpc.RpcError as broken:
                if self._closed:
                    return
                error = exceptions.from_grpc_error(broken)
                if waited >= OUTAGE_S or not isinstance(error, _TRANSIENT):
                    raise _refused(self._table, self._columns, error) or StorageError(
                        f"{self._table}, read stream {self._name}",
                        f"broke at row {offset}: {error.message}",
                        "all its rows",
                        _AGAIN,
                    ) from error
                self._sleep(delay)
                delay, waited = min(2 * delay, _LONGEST_DELAY_S), waited + delay
            finally:
                if self._messages is not None:
                    self._messages.cancel()  # nobody wants the rest


def _channel(*arguments: object, options: Sequence[tuple[str, object]], **keywords: object) -> grpc.Channel:
    """Make the client's channel, without reading ahead: else it would hold tens of megabytes beside our own."""
    return BigQueryReadGrpcTransport.create_channel(*arguments, options=[*options, NO_READ_AHEAD], **keywords)


def _batch(message: bytes, schema: pa.Schema, columns: list[str]) -> pa.RecordBatch:
    """Read the record batch where it stands in a ReadRowsResponse."""
    content = _field(_field(memoryview(message), _ARROW_RECORD_BATCH), _SERIALIZED_RECORD_BATCH)
    return flatten(pa.ipc.read_record_batch(pa.py_buffer(content), schema)).select(columns)


def _field(message: memoryview, number: int) -> memoryview:
    """Find a message or bytes field (https://protobuf.dev/programming-guides/encoding)."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind, size = tag & 7, 0
        if kind == _VARINT:
            _, at = _varint(message, at)
        elif kind == _BYTES:
            size, at = _varint(message, at)
        else:
            size = _FIXED[kind]
        if tag == number << 3 | _BYTES:
            return message[at : at + size]
        at += size
    raise StorageError("BigQuery's read stream", f"a message without field {number}", "Arrow record batches", _AGAIN)


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:_LISTED])}, … ({more} more)"


def _refused(table: str, columns: Sequence[str], error: Exception) -> TrainerError | None:
    """Make the error of an answer that trying again does not change."""
    if isinstance(error, exceptions.Forbidden | exceptions.Unauthorized):
        return RequestError(
            table,
            error.message,
            "an account with bigquery.readsessions.create and bigquery.tables.getData",
            "Grant them to the account that the job runs as (roles/bigquery.readSessionUser and bigquery.dataViewer)",
        )
    if isinstance(error, exceptions.InvalidArgument):
        return RequestError(
            table,
            error.message,
            f"a run table with the columns {_listed(columns)}",
            f"It is not the one that the request was made for. {NEW_ATTEMPT}",
        )
    if isinstance(error, exceptions.NotFound) and "able" in error.message:  # a session that expired is read again
        return RequestError(
            table,
            error.message,
            "the table that the snapshot made",
            "It may have expired: clear the run's snapshot task and what follows it",
        )
    return None
