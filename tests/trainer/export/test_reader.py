"""Reading through Google's own client against a server that honours offsets and breaks midway."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pyarrow as pa
import pytest
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport

from trainer.errors import RequestError, StorageError
from trainer.export.reader import BigQueryReader, Unit, row_restriction, rows_of

SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead/"
DAY = datetime.date(2024, 1, 1)
ROWS = pa.table(
    {
        "x": pa.array(range(1000)),
        "span": pa.array([DAY] * 1000),
        "part": pa.array(["train", "validation"] * 500),
        "shard": pa.array([0, 0, 1, 1] * 250),
        "row_hash": pa.array(range(1000)),
    }
)
UNITS = [Unit(span="2024-01-01", part="train", shard=0), Unit(span="2024-01-01", part="validation", shard=1)]


class FakeStorageRead(grpc.GenericRpcHandler):
    """One table, 100 rows per message; breaks with each of `faults` in turn after 250 rows more."""

    def __init__(self) -> None:
        self.faults: list[grpc.StatusCode] = []
        self.session_fault: grpc.StatusCode | None = None
        self.sessions: list[types.ReadSession] = []
        self.offsets: list[int] = []

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
            context.abort(self.session_fault, "Not found: Table project.dataset.parcels")
        self.sessions.append(request.read_session)
        schema = types.ArrowSchema(serialized_schema=ROWS.schema.serialize().to_pybytes())
        return types.ReadSession(arrow_schema=schema, streams=[types.ReadStream(name="streams/1")])

    def _read(self, request: types.ReadRowsRequest, context: grpc.ServicerContext) -> Iterator[types.ReadRowsResponse]:
        self.offsets.append(request.offset)
        fault = self.faults.pop(0) if self.faults else None
        sent = 0
        for start in range(request.offset, ROWS.num_rows, 100):
            if fault is not None and sent >= 250:
                context.abort(fault, "stream broke")
            (batch,) = ROWS.slice(start, 100).combine_chunks().to_batches()
            sent += batch.num_rows
            content = types.ArrowRecordBatch(serialized_record_batch=batch.serialize().to_pybytes())
            yield types.ReadRowsResponse(arrow_record_batch=content, row_count=batch.num_rows)
        if fault is not None and sent < 250:
            context.abort(fault, "stream broke")


@pytest.fixture
def server() -> Iterator[FakeStorageRead]:
    handler = FakeStorageRead()
    running = grpc.server(futures.ThreadPoolExecutor(max_workers=4))
    running.add_generic_rpc_handlers((handler,))
    handler.address = f"127.0.0.1:{running.add_insecure_port('127.0.0.1:0')}"
    running.start()
    yield handler
    running.stop(None)


@pytest.fixture
def make_reader(server: FakeStorageRead) -> Iterator[Callable[..., BigQueryReader]]:
    channel = grpc.insecure_channel(server.address)

    def make(waited: list[float] | None = None) -> BigQueryReader:
        client = BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
        return BigQueryReader("project.dataset.parcels", ["x"], client, sleep=([] if waited is None else waited).append)

    yield make
    channel.close()


def test_only_the_wanted_columns_and_units_are_asked_for(server: Any, make_reader: Any) -> None:
    table = make_reader().read(UNITS)
    assert table.num_rows == 1000
    session = server.sessions[0]
    assert session.table == "projects/project/datasets/dataset/tables/parcels"
    assert list(session.read_options.selected_fields) == ["x", "span", "part", "shard", "row_hash"]
    assert session.read_options.row_restriction == (
        "(span = DATE '2024-01-01' AND part = 'train' AND shard = 0)"
        " OR (span = DATE '2024-01-01' AND part = 'validation' AND shard = 1)"
    )


def test_a_broken_stream_goes_on_at_the_first_missing_row(server: Any, make_reader: Any) -> None:
    server.faults = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL]
    waited: list[float] = []
    table = make_reader(waited).read(UNITS)
    assert table["x"].to_pylist() == list(range(1000))
    assert server.offsets == [0, 300, 600]
    assert waited == [0.5, 0.5]


def test_a_stream_that_only_breaks_is_given_up_with_the_row(server: Any, make_reader: Any) -> None:
    server.faults = [grpc.StatusCode.UNAVAILABLE] * 4 + [grpc.StatusCode.UNAVAILABLE] * 20
    waited: list[float] = []
    with pytest.raises(StorageError, match="broke at row 1000"):
        make_reader(waited).read(UNITS)
    assert waited[-5:] == [0.5, 1, 2, 4, 8]


def test_an_error_that_does_not_pass_is_not_tried_again(server: Any, make_reader: Any) -> None:
    server.faults = [grpc.StatusCode.PERMISSION_DENIED]
    with pytest.raises(StorageError, match="broke at row 300"):
        make_reader().read(UNITS)
    assert server.offsets == [0]


@pytest.mark.parametrize("code", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT])
def test_a_missing_table_cannot_be_mended_by_trying_again(server: Any, make_reader: Any, code: Any) -> None:
    server.session_fault = code
    with pytest.raises(RequestError, match=r"project\.dataset\.parcels: Not found"):
        make_reader().read(UNITS)


def test_rows_are_told_apart_by_unit() -> None:
    assert rows_of(ROWS, UNITS[0])["x"].to_pylist() == list(range(0, 1000, 4))
    assert rows_of(ROWS, UNITS[1])["x"].to_pylist() == list(range(3, 1000, 4))


@pytest.mark.parametrize(
    "unit",
    [
        Unit(span="2024-01-01' OR '1'='1", part="train", shard=0),
        Unit(span="2024-01-01", part="train' --", shard=0),  # type: ignore[arg-type]
        Unit(span="2024-01-01", part="train", shard="0 OR TRUE"),  # type: ignore[arg-type]
    ],
    ids=["span", "part", "shard"],
)
def test_nothing_but_dates_parts_and_numbers_gets_into_the_filter(unit: Unit) -> None:
    with pytest.raises(RequestError):
        row_restriction([unit])
