"""The Storage Read API (BigQueryRead, v1) over the emulator's tables, behaving as the service does.

In: CreateReadSession, ReadRows, SplitReadStream. Out: Arrow (or Avro) rows. A session's rows are written once to an
Arrow file, so that a session is a snapshot, costs no memory, can be read again from any offset, and is the same however
often it is read. Different from bqemulator's own servicer, which ignores `offset`, answers a malformed row restriction
with all rows, leaves estimated_row_count empty and keeps every session in memory for ever.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import duckdb
import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types

from localcloud.bigquery.patches import sql
from localcloud.bigquery.read.restriction import RestrictionError, select_statement
from localcloud.bigquery.read.sessions import (
    RefusalError,
    Session,
    Sessions,
    Stream,
    read_batches,
    refusing,
    requested_streams,
)
from localcloud.bigquery.read.v1beta1 import OlderReadService
from localcloud.bigquery.types.columns import as_sent, column_types
from localcloud.bigquery.types.results import BoundedResults, registered
from localcloud.faults import FaultStore, InjectedError
from localcloud.fields import read_fields
from localcloud.message_fields import MessageFields
from localcloud.projects import Projects
from localcloud.untyped import Untyped


class ReadFaults:
    """Faults of the Storage Read API. Refuses, waits, or says after how many rows a stream breaks."""

    def __init__(self, faults: FaultStore) -> None:
        self._faults = faults

    def meet(self, method: str, table: str) -> None:
        """Let a fault for a call that has one answer happen.

        Args:
            method: `CreateReadSession`, for example.
            table: project.dataset.table

        Raises:
            RefusalError: The fault is an error.
        """
        try:
            with self._faults.intercept(f"BigQueryRead.{method}", table, kinds=("error", "delay")):
                pass
        except InjectedError as error:
            raise RefusalError(grpc.StatusCode[error.code], error.message) from None

    def meet_size(self, table: str, requested: int) -> int | None:
        """Return into how many streams a table is to be cut whatever its size; None when its size decides.

        Args:
            table: project.dataset.table
            requested: How many the client asks for.
        """
        action = self._faults.take("BigQueryRead.CreateReadSession", table, kinds=("split",))
        return None if action is None else int(action["streams"]) or requested

    def meet_stream(self, table: str) -> tuple[int, RefusalError] | None:
        """Return after how many rows a stream is to break, and with what; None when it goes well."""
        action = self._faults.take("BigQueryRead.ReadRows", table, kinds=("error", "delay", "break"))
        if action is None:
            return None
        if action["kind"] == "delay":
            time.sleep(float(action["seconds"]))
            return None
        refusal = RefusalError(grpc.StatusCode[action["code"]], action["message"])
        return (int(action["after"]) if action["kind"] == "break" else 0), refusal


Rows = tuple[types.ReadRowsResponse, pa.Buffer | None]

ROWS_PER_BATCH = 65_536
_SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead/"


FIELDS = MessageFields(read_fields(Path(__file__).with_name("fields.json")), "google.cloud.bigquery.storage.v1.")
"""What becomes of each field of v1's requests."""


class ReadService(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Dispatches the three methods."""

    def __init__(
        self, context: Untyped, sessions: Sessions, faults: ReadFaults, results: BoundedResults, projects: Projects
    ) -> None:
        self._catalog = context.catalog
        self._engine = context.engine
        self._sessions = sessions
        self._faults = faults
        self._results = results
        self._projects = projects

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of a method (grpc's interface)."""
        method = handler_call_details.method.removeprefix(_SERVICE)
        if method == "CreateReadSession":
            kind = types.CreateReadSessionRequest
            call = refusing(_checked(method, self.create_session))
            return grpc.unary_unary_rpc_method_handler(call, kind.deserialize, _serialize)
        if method == "SplitReadStream":
            kind = types.SplitReadStreamRequest
            call = refusing(_checked(method, self.split_stream))
            return grpc.unary_unary_rpc_method_handler(call, kind.deserialize, _serialize)
        if method == "ReadRows":
            kind = types.ReadRowsRequest
            return grpc.unary_stream_rpc_method_handler(self._read_rows, kind.deserialize, _serialize_rows)
        return None

    def create_session(self, request: types.CreateReadSessionRequest) -> types.ReadSession:
        """Select the rows, write them down, and say how they can be read."""
        requested = request.read_session
        where = _split_table_name(self._projects.with_ids(requested.table))
        owner = self._projects.with_ids(request.parent).removeprefix("projects/")
        self._faults.meet("CreateReadSession", ".".join(where))
        if types.ReadSession.pb(requested).table_modifiers.HasField("snapshot_time"):
            raise RefusalError(grpc.StatusCode.UNIMPLEMENTED, "snapshot_time is not offered by the local cloud")
        if requested.read_options.sample_percentage:
            raise RefusalError(grpc.StatusCode.UNIMPLEMENTED, "sample_percentage is not offered by the local cloud")
        connection = self._engine.connection.cursor()  # its own: others run queries at the same time
        try:
            with self._relation(*where, connection) as (source, relation):
                if requested.read_options.row_restriction:
                    sql.register_macros(connection)
                statement, columns = select_statement(
                    project=where[0],
                    source=source,
                    columns=column_types(connection, relation),
                    selected=list(requested.read_options.selected_fields),
                    restriction=requested.read_options.row_restriction,
                )
                reader = as_sent(connection.execute(statement).to_arrow_reader(ROWS_PER_BATCH), columns)
                split = self._faults.meet_size(".".join(where), requested_streams(request))
                session = self._sessions.create(owner, reader, request, split)
        except RestrictionError as error:
            raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, str(error)) from None
        except duckdb.Error as error:
            message = f"request failed: Query error: {str(error).splitlines()[0]}"
            raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, message) from None
        finally:
            connection.close()
        return _describe(session, requested)

    @contextmanager
    def _relation(self, project: str, dataset: str, table: str, connection: Untyped) -> Iterator[tuple[str, str]]:
        """Yield a stored table, or a query's result, as GoogleSQL names it and as DuckDB does."""
        from bqemulator.storage.sql_identifiers import quoted_table_ref

        rows = self._results.rows_of(project, dataset, table)
        if rows is not None:
            with registered(rows, connection) as name:
                yield name, name
        elif self._catalog.get_table(project, dataset, table) is not None:
            yield f"`{project}`.`{dataset}`.`{table}`", quoted_table_ref(project, dataset, table)
        else:
            raise RefusalError(grpc.StatusCode.NOT_FOUND, f"Not found: Table {project}:{dataset}.{table}")

    def split_stream(self, request: types.SplitReadStreamRequest) -> types.SplitReadStreamResponse:
        """Cut a stream in two at a fraction of its rows."""
        session, stream = self._sessions.find_stream(request.name)
        cut = stream.begin + int((stream.end - stream.begin) * request.fraction)
        if not stream.begin < cut < stream.end:
            return types.SplitReadStreamResponse()  # the service's answer for a stream it cannot split there
        parts = {"primary_stream": (stream.begin, cut), "remainder_stream": (cut, stream.end)}
        streams = {}
        for part, (begin, end) in parts.items():
            name = f"{session.name}/streams/{uuid.uuid4().hex[:12]}"
            session.streams[name] = Stream(begin=begin, end=end)
            streams[part] = types.ReadStream(name=name)
        return types.SplitReadStreamResponse(**streams)

    def _read_rows(self, request: types.ReadRowsRequest, context: grpc.ServicerContext) -> Iterator[Rows]:
        _check("ReadRows", request)
        try:
            yield from self.read_rows(request)
        except RefusalError as error:
            context.abort(error.code, error.message)

    def read_rows(self, request: types.ReadRowsRequest) -> Iterator[Rows]:
        """Yield a stream's rows from `offset` on (an offset at its end gives none).

        Arrow rows stand beside their message: inside it, each step on the way would copy them again.

        Raises:
            RefusalError: there is no such stream or row, or a fault breaks the stream.
        """
        session, stream = self._sessions.find_stream(request.read_stream)
        length = stream.end - stream.begin
        if not 0 <= request.offset <= length:
            message = f"Offset {request.offset} is outside of the stream, which has {length} rows"
            raise RefusalError(grpc.StatusCode.OUT_OF_RANGE, message)
        position = begin = stream.begin + request.offset
        broken = self._faults.meet_stream(session.table)
        end = min(stream.end, begin + broken[0]) if broken else stream.end
        encode = _encoder(session)
        for batch in read_batches(session.path, begin, end):
            before = (position - stream.begin) / length
            position += batch.num_rows
            progress = types.StreamStats.Progress(
                at_response_start=before, at_response_end=(position - stream.begin) / length
            )
            response, content = encode(batch, is_first=position - batch.num_rows == begin)
            response.row_count = batch.num_rows
            response.stats = types.StreamStats(progress=progress)
            yield response, content
        if broken:
            raise broken[1]
        session.ended.add(request.read_stream)


def _check(method: str, request: Untyped) -> None:
    FIELDS.check(f"BigQueryRead.{method}", type(request).pb(request))


def _checked(name: str, method: Callable[[Untyped], Untyped]) -> Callable[[Untyped], Untyped]:
    """Return a method that drops no field without a word."""

    def answer(request: Untyped) -> Untyped:
        _check(name, request)
        return method(request)

    return answer


def build_server(
    socket_path: Path,
    middleware: grpc.ServerInterceptor,
    projects: Projects,
    faults: FaultStore,
    results: BoundedResults,
    context: Untyped,
) -> tuple[_Server, int]:
    """Make the gRPC server that stands in for bqemulator's own; `middleware` decides who may call."""
    settings = context.settings
    sessions = Sessions(Path(settings.data_dir) / "sessions", lambda: dt.datetime.now(dt.UTC))
    server = grpc.server(
        ThreadPoolExecutor(16, thread_name_prefix="read"),
        options=[
            ("grpc.max_send_message_length", -1),
            ("grpc.max_receive_message_length", 16 * 1024 * 1024),
        ],
        interceptors=[middleware],
    )
    service = ReadService(context, sessions, ReadFaults(faults), results, projects)
    server.add_generic_rpc_handlers((service, OlderReadService(service, sessions)))
    port = server.add_insecure_port(f"unix:{socket_path}")
    return _Server(server), port


class _Server:
    """The asynchronous face that bqemulator expects of its gRPC server."""

    def __init__(self, server: grpc.Server) -> None:
        self._server = server

    async def start(self) -> None:
        self._server.start()

    async def stop(self, grace: float | None) -> None:  # noqa: ARG002 - open channels do not hold up a stop
        self._server.stop(grace=0.2)


def _describe(session: Session, requested: types.ReadSession) -> types.ReadSession:
    described = types.ReadSession(
        name=session.name,
        table=requested.table,
        data_format=types.DataFormat.AVRO if session.is_avro else types.DataFormat.ARROW,
        read_options=requested.read_options,
        streams=[types.ReadStream(name=name) for name in session.streams],
        expire_time=session.expires,
        estimated_row_count=session.rows,
        estimated_total_bytes_scanned=session.bytes,
    )
    if session.is_avro:
        described.avro_schema = types.AvroSchema(schema=_avro_schema(session))
    else:
        described.arrow_schema = types.ArrowSchema(serialized_schema=session.schema.serialize().to_pybytes())
    return described


def _encoder(session: Session) -> Callable[..., Rows]:
    if session.is_avro:
        return lambda batch, *, is_first: _encode_avro(session, batch, is_first=is_first)
    options = pa.ipc.IpcWriteOptions(compression=session.compression)
    schema = types.ArrowSchema(serialized_schema=session.schema.serialize().to_pybytes())

    def encode(batch: pa.RecordBatch, *, is_first: bool) -> Rows:
        return types.ReadRowsResponse(**({"arrow_schema": schema} if is_first else {})), _ipc_message(batch, options)

    return encode


def _ipc_message(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions) -> pa.Buffer:
    """Return the batch as one encapsulated IPC message: `RecordBatch.serialize` takes no options, a stream does."""
    if options.compression is None:
        return batch.serialize()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    messages = pa.ipc.MessageReader.open_stream(sink.getvalue())
    messages.read_next_message()  # the schema goes out once, by itself
    return messages.read_next_message().serialize()


def _encode_avro(session: Session, batch: pa.RecordBatch, *, is_first: bool) -> Rows:
    from bqemulator.streaming.avro_serializer import serialize_arrow_table_to_avro_rows

    schema = _avro_schema(session)
    data = serialize_arrow_table_to_avro_rows(pa.Table.from_batches([batch]), schema)
    first = {"avro_schema": types.AvroSchema(schema=schema)} if is_first else {}
    return types.ReadRowsResponse(avro_rows=types.AvroRows(serialized_binary_rows=data), **first), None


def _avro_schema(session: Session) -> str:
    from bqemulator.streaming.avro_serializer import arrow_schema_to_avro_json

    return str(arrow_schema_to_avro_json(session.schema))


def _split_table_name(name: str) -> tuple[str, str, str]:
    parts = name.split("/")
    if len(parts) != 6 or parts[::2] != ["projects", "datasets", "tables"]:
        message = (
            f"Invalid table name {name!r}. Expected the form projects/<project>/datasets/<dataset>/tables/<table>."
        )
        raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, message)
    return parts[1], parts[3], parts[5]


def _serialize_rows(rows: Rows) -> bytes:
    """Append Arrow rows to their message, as its field arrow_record_batch with the field serialized_record_batch."""
    response, content = rows
    head = bytes(types.ReadRowsResponse.serialize(response))
    if content is None:
        return head
    inner = b"\x0a" + _varint(content.size)
    return b"".join([head, b"\x22", _varint(len(inner) + content.size), inner, content])


def _varint(value: int) -> bytes:
    groups = [value >> shift & 0x7F for shift in range(0, max(value.bit_length(), 1), 7)]
    return bytes([*(group | 0x80 for group in groups[:-1]), groups[-1]])


def _serialize(answer: Untyped) -> bytes:
    return bytes(type(answer).serialize(answer))
