"""The Storage Read API as tensorflow-io's BigQueryClient speaks it: v1beta1's BigQueryStorage over v1's service.

In: CreateReadSession, ReadRows, BatchCreateReadSessionStreams, FinalizeStream, SplitReadStream. Out: the same sessions
and rows as `read` serves, in the older messages. Google's libraries have dropped these messages; `v1beta1_messages`
builds them. Every stream's rows are assigned when its session is made (BALANCED), so a stream that is added later has
none, and finalizing one changes nothing but that it counts as ended.
https://cloud.google.com/bigquery/docs/reference/storage/rpc/google.cloud.bigquery.storage.v1beta1
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import grpc
from google.cloud.bigquery_storage_v1 import types
from google.protobuf import empty_pb2

from localcloud.bigquery.read.sessions import RefusalError, Session, Sessions, Stream, refusing
from localcloud.bigquery.read.v1beta1_messages import MESSAGES
from localcloud.untyped import Untyped

_SERVICE = "/google.cloud.bigquery.storage.v1beta1.BigQueryStorage/"
_FORMATS = {0: types.DataFormat.AVRO, 1: types.DataFormat.AVRO, 3: types.DataFormat.ARROW}
_HALF = 0.5  # where a split without a fraction cuts


class OlderReadService(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    """Translates between v1beta1's messages and the methods of `read.ReadService`."""

    def __init__(self, service: Untyped, sessions: Sessions) -> None:
        self._service = service
        self._sessions = sessions
        self._finalized: set[str] = set()
        self._unary: dict[str, tuple[Callable[[Untyped], Untyped], str]] = {
            "CreateReadSession": (self.create_session, "CreateReadSessionRequest"),
            "BatchCreateReadSessionStreams": (self.create_streams, "BatchCreateReadSessionStreamsRequest"),
            "FinalizeStream": (self.finalize_stream, "FinalizeStreamRequest"),
            "SplitReadStream": (self.split_stream, "SplitReadStreamRequest"),
        }

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Return the handler of a method (grpc's interface)."""
        if not handler_call_details.method.startswith(_SERVICE):
            return None
        method = handler_call_details.method.removeprefix(_SERVICE)
        if method == "ReadRows":
            kind = MESSAGES["ReadRowsRequest"]
            return grpc.unary_stream_rpc_method_handler(self._read_rows, kind.FromString, _serialize)
        if method in self._unary:
            call, name = self._unary[method]
            return grpc.unary_unary_rpc_method_handler(refusing(call), MESSAGES[name].FromString, _serialize)
        return None

    def create_session(self, request: Untyped) -> Untyped:
        """Open a session of a table."""
        if request.format not in _FORMATS:
            raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, f"Invalid data format {request.format}")
        table = request.table_reference
        session = self._service.create_session(
            types.CreateReadSessionRequest(
                parent=request.parent,
                read_session=types.ReadSession(
                    table=f"projects/{table.project_id}/datasets/{table.dataset_id}/tables/{table.table_id}",
                    data_format=_FORMATS[request.format],
                    table_modifiers=_modifiers(request),
                    read_options=types.ReadSession.TableReadOptions(
                        selected_fields=list(request.read_options.selected_fields),
                        row_restriction=request.read_options.row_restriction,
                    ),
                ),
                max_stream_count=request.requested_streams,
            )
        )
        answer = MESSAGES["ReadSession"](
            name=session.name,
            streams=[{"name": stream.name} for stream in session.streams],
            table_reference=table,
            table_modifiers=request.table_modifiers if request.HasField("table_modifiers") else None,
            sharding_strategy=request.sharding_strategy,
        )
        answer.expire_time.FromDatetime(session.expire_time)
        if session.data_format == types.DataFormat.AVRO:
            answer.avro_schema.schema = session.avro_schema.schema
        else:
            answer.arrow_schema.serialized_schema = session.arrow_schema.serialized_schema
        return answer

    def read_rows(self, request: Untyped) -> Iterator[Untyped]:
        """Yield a stream's rows from an offset on."""
        position = request.read_position
        _, stream = self._sessions.find_stream(position.stream.name)
        rows = types.ReadRowsRequest(read_stream=position.stream.name, offset=position.offset)
        for response, content in self._service.read_rows(rows):
            progress = response.stats.progress
            status = MESSAGES["StreamStatus"](
                estimated_row_count=stream.end - stream.begin,
                fraction_consumed=progress.at_response_end,
                progress={"at_response_start": progress.at_response_start, "at_response_end": progress.at_response_end},
            )
            answer = MESSAGES["ReadRowsResponse"](row_count=response.row_count, status=status)
            if content is None:
                answer.avro_rows.serialized_binary_rows = response.avro_rows.serialized_binary_rows
                answer.avro_rows.row_count = response.row_count
            else:
                answer.arrow_record_batch.serialized_record_batch = content.to_pybytes()
                answer.arrow_record_batch.row_count = response.row_count
            yield answer

    def create_streams(self, request: Untyped) -> Untyped:
        """Add streams to a session. All its rows are assigned already, so the new ones have none."""
        if request.requested_streams <= 0:
            raise RefusalError(grpc.StatusCode.INVALID_ARGUMENT, "requested_streams must be positive")
        session = self._sessions.get(request.session.name)
        names = [_add_stream(session, session.rows, session.rows) for _ in range(request.requested_streams)]
        return MESSAGES["BatchCreateReadSessionStreamsResponse"](streams=[{"name": name} for name in names])

    def finalize_stream(self, request: Untyped) -> Untyped:
        """Count a stream as ended; what it holds can still be read."""
        session, _ = self._sessions.find_stream(request.stream.name)
        if not set(session.streams) - self._finalized - {request.stream.name}:
            message = f"Stream {request.stream.name} is the last live one of its session"
            raise RefusalError(grpc.StatusCode.FAILED_PRECONDITION, message)
        self._finalized.add(request.stream.name)
        return empty_pb2.Empty()

    def split_stream(self, request: Untyped) -> Untyped:
        """Cut a stream in two at a fraction of its rows; asked again, give the same two."""
        name = request.original_stream.name
        session, stream = self._sessions.find_stream(name)
        fraction = request.fraction or _HALF
        cut = stream.begin + int((stream.end - stream.begin) * fraction)
        if not stream.begin < cut < stream.end:
            return MESSAGES["SplitReadStreamResponse"]()  # the service's answer for a stream it cannot split there
        seed = f"{name} {cut}"
        return MESSAGES["SplitReadStreamResponse"](
            primary_stream={"name": _add_stream(session, stream.begin, cut, f"{seed} primary")},
            remainder_stream={"name": _add_stream(session, cut, stream.end, f"{seed} remainder")},
        )

    def _read_rows(self, request: Untyped, context: grpc.ServicerContext) -> Iterator[Untyped]:
        try:
            yield from self.read_rows(request)
        except RefusalError as error:
            context.abort(error.code, error.message)


def _add_stream(session: Session, begin: int, end: int, seed: str | None = None) -> str:
    """Put a stream into a session; give its name, which a seed decides."""
    identity = uuid.uuid4() if seed is None else uuid.uuid5(uuid.NAMESPACE_URL, seed)
    name = f"{session.name}/streams/{identity.hex[:12]}"
    session.streams[name] = Stream(begin=begin, end=end)
    return name


def _modifiers(request: Untyped) -> types.ReadSession.TableModifiers | None:
    if not request.table_modifiers.HasField("snapshot_time"):
        return None
    return types.ReadSession.TableModifiers(snapshot_time=request.table_modifiers.snapshot_time.ToDatetime())


def _serialize(answer: Untyped) -> bytes:
    return bytes(answer.SerializeToString())
