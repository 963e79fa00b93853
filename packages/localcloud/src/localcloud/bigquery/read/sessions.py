"""The sessions of the Storage Read API: rows written once to an Arrow file, cut into streams, and read from any row on.

In: the rows of a query. Out: sessions by name, batches of rows by position. Expired sessions go with their files.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types

from localcloud.untyped import Untyped

SESSION_LIFETIME = dt.timedelta(hours=6)  # https://cloud.google.com/bigquery/docs/reference/storage#create_a_session
MAX_STREAMS = 100
BYTES_PER_STREAM = 1_000_000  # the service gives small tables one stream
MESSAGE_BYTES = 8 * 1024 * 1024
LIMIT_BYTES = 4 * 1024**3
_COMPRESSIONS = {1: "lz4", 2: "zstd"}


class RefusalError(Exception):
    """An answer other than OK: a gRPC status code and a message."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(message)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stream:
    """A range of a session's rows, [begin, end)."""

    begin: int
    end: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Session:
    """A snapshot of the selected rows in an Arrow file, cut into streams."""

    name: str
    table: str  # project.dataset.table
    path: Path
    schema: pa.Schema
    rows: int
    bytes: int
    is_avro: bool
    compression: str | None
    expires: dt.datetime
    streams: dict[str, Stream]
    ended: set[str] = dataclasses.field(default_factory=set)  # streams that were read to their ends


class Sessions:
    """The sessions that are alive; expired ones are removed with their files.

    So are those that were read to their ends, oldest first, when all together take more than `limit_bytes`: the service
    keeps each for six hours, a laptop's disk cannot.
    """

    def __init__(self, directory: Path, now: Callable[[], dt.datetime], limit_bytes: int = LIMIT_BYTES) -> None:
        self._directory = directory
        self._now = now
        self._limit_bytes = limit_bytes
        self._sessions: dict[str, Session] = {}
        self._lock = threading.Lock()
        directory.mkdir(parents=True, exist_ok=True)
        for left_over in directory.iterdir():  # of the process before
            left_over.unlink()

    def create(
        self,
        project: str,
        reader: pa.RecordBatchReader,
        request: types.CreateReadSessionRequest,
        split: int | None = None,
    ) -> Session:
        """Write a query's rows to a file and cut them into streams.

        Args:
            split: How many streams to make even of a small table; None: as its size says.
        """
        self._remove_expired()
        self._make_room()
        path = self._directory / f"{uuid.uuid4().hex}.arrow"
        rows = size = 0
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, reader.schema) as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
                size += batch.nbytes
        options = request.read_session.read_options
        name = f"projects/{project}/locations/us/sessions/{path.stem}"
        count = min(split or _stream_count(request, size), MAX_STREAMS, rows)
        session = Session(
            name=name,
            table=".".join(request.read_session.table.split("/")[1::2]),
            path=path,
            schema=reader.schema,
            rows=rows,
            bytes=size,
            is_avro=request.read_session.data_format == types.DataFormat.AVRO,
            compression=_COMPRESSIONS.get(int(options.arrow_serialization_options.buffer_compression)),
            expires=self._now() + SESSION_LIFETIME,
            streams={
                f"{name}/streams/{index}": Stream(begin=rows * index // count, end=rows * (index + 1) // count)
                for index in range(count)
            },
        )
        with self._lock:
            self._sessions[name] = session
        return session

    def find_stream(self, stream_name: str) -> tuple[Session, Stream]:
        """Return a stream and its session.

        Raises:
            RefusalError: there is none of this name, or it has expired.
        """
        self._remove_expired()
        session = self._sessions.get(stream_name.split("/streams/")[0])
        if session is None or stream_name not in session.streams:
            raise RefusalError(
                grpc.StatusCode.NOT_FOUND, f"Not found: stream {stream_name} (or its session has expired)"
            )
        return session, session.streams[stream_name]

    def get(self, name: str) -> Session:
        """Return a session.

        Raises:
            RefusalError: there is none of this name, or it has expired.
        """
        self._remove_expired()
        session = self._sessions.get(name)
        if session is None:
            raise RefusalError(grpc.StatusCode.NOT_FOUND, f"Not found: session {name} (or it has expired)")
        return session

    def _remove_expired(self) -> None:
        now = self._now()
        with self._lock:
            for session in [each for each in self._sessions.values() if each.expires <= now]:
                self._remove(session)

    def _make_room(self) -> None:
        with self._lock:
            held = sum(session.bytes for session in self._sessions.values())
            for session in list(self._sessions.values()):  # in the order they were made
                if held > self._limit_bytes and session.ended >= set(session.streams):
                    held -= session.bytes
                    self._remove(session)

    def _remove(self, session: Session) -> None:
        del self._sessions[session.name]
        session.path.unlink(missing_ok=True)  # who reads it now keeps what they have mapped


def refusing(method: Callable[[Untyped], Untyped]) -> Callable[[Untyped, grpc.ServicerContext], Untyped]:
    """Return a gRPC method that answers a refusal with its code and message."""

    def call(request: object, context: grpc.ServicerContext) -> object:
        try:
            return method(request)
        except RefusalError as error:
            context.abort(error.code, error.message)
            raise  # not reached: abort raises

    return call


def read_batches(path: Path, begin: int, end: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows [begin, end) of an Arrow file, in messages of at most about MESSAGE_BYTES."""
    with pa.memory_map(str(path)) as file:
        reader = pa.ipc.open_file(file)
        position = 0
        for index in range(reader.num_record_batches):
            if position >= end:
                return
            batch = reader.get_batch(index)
            first = max(begin - position, 0)
            last = min(end - position, batch.num_rows)
            position += batch.num_rows
            rows = max(1, int(batch.num_rows * MESSAGE_BYTES / max(batch.nbytes, 1)))
            for start in range(first, last, rows):
                yield batch.slice(start, min(rows, last - start))


def requested_streams(request: types.CreateReadSessionRequest) -> int:
    """Return how many streams a client asks for."""
    return int(request.max_stream_count or request.preferred_min_stream_count or 1)


def _stream_count(request: types.CreateReadSessionRequest, size: int) -> int:
    return min(requested_streams(request), 1 + size // BYTES_PER_STREAM)
