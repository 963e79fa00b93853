"""A server of the Storage Read API with one table in memory, which honours offsets and breaks midway as it is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager

import grpc
import pyarrow as pa
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead/"


class FakeStorageRead(grpc.GenericRpcHandler):
    """One table, 100 rows per message; breaks with each of `faults` in turn after 250 rows more.

    Its last stream has no rows, so that it can offer as many as are wanted.

    Args:
        rows: Of the table.
    """

    def __init__(self, rows: pa.Table) -> None:
        self.rows = rows
        self.address = ""
        self.cancelled = threading.Event()
        self.faults: list[grpc.StatusCode] = []
        self.session_fault: tuple[grpc.StatusCode, str] | None = None
        self.sessions: list[types.ReadSession] = []
        self.offsets: list[int] = []
        self.routes: list[str] = []
        self.wanted_streams: list[int] = []
        self.empty = False

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """Find the method."""
        if details.method == f"{SERVICE}CreateReadSession":
            return grpc.unary_unary_rpc_method_handler(
                self._create, types.CreateReadSessionRequest.deserialize, types.ReadSession.serialize
            )
        if details.method == f"{SERVICE}ReadRows":
            return grpc.unary_stream_rpc_method_handler(
                self._read, types.ReadRowsRequest.deserialize, types.ReadRowsResponse.serialize
            )
        return None

    def _create(self, request: types.CreateReadSessionRequest, context: grpc.ServicerContext) -> types.ReadSession:
        if self.session_fault is not None:
            context.abort(*self.session_fault)
        self.sessions.append(request.read_session)
        self.wanted_streams.append(request.max_stream_count)
        schema = types.ArrowSchema(serialized_schema=self.rows.schema.serialize().to_pybytes())
        streams = [types.ReadStream(name=f"streams/{number}") for number in range(request.max_stream_count)]
        return types.ReadSession(arrow_schema=schema, streams=[] if self.empty else streams)

    def _read(self, request: types.ReadRowsRequest, context: grpc.ServicerContext) -> Iterator[types.ReadRowsResponse]:
        self.offsets.append(request.offset)
        self.routes.append(dict(context.invocation_metadata())["x-goog-request-params"])
        if request.read_stream != "streams/0":
            return
        context.add_callback(self.cancelled.set)  # also at the end
        fault = self.faults.pop(0) if self.faults else None
        sent = 0
        for start in range(request.offset, self.rows.num_rows, 100):
            if fault is not None and sent >= 250:
                context.abort(fault, "stream broke")
            (batch,) = self.rows.slice(start, 100).combine_chunks().to_batches()
            sent += batch.num_rows
            content = types.ArrowRecordBatch(serialized_record_batch=batch.serialize().to_pybytes())
            progress = types.StreamStats.Progress(at_response_start=0.1, at_response_end=0.2)
            first = {"arrow_schema": types.ArrowSchema(serialized_schema=b"s" * 300)} if start == request.offset else {}
            yield types.ReadRowsResponse(
                arrow_record_batch=content,
                row_count=batch.num_rows,
                stats=types.StreamStats(progress=progress),
                throttle_state=types.ThrottleState(throttle_percent=3),
                uncompressed_byte_size=12345,
                **first,
            )
        if fault is not None and sent < 250:
            context.abort(fault, "stream broke")


@contextmanager
def storage_read(rows: pa.Table) -> Iterator[FakeStorageRead]:
    """Serve a table inside the block."""
    handler = FakeStorageRead(rows)
    running = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    running.add_generic_rpc_handlers((handler,))
    handler.address = f"127.0.0.1:{running.add_insecure_port('127.0.0.1:0')}"
    running.start()
    yield handler
    running.stop(None)


@contextmanager
def client_of(server: FakeStorageRead) -> Iterator[BigQueryReadClient]:
    """Yield Google's client of a server."""
    with grpc.insecure_channel(server.address) as channel:
        yield BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
