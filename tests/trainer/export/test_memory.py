"""An export's growth in memory has a bound that does not depend on the table.

Measured as a user would see it: the exporter in a process of its own, which reads over gRPC and uploads over HTTP from
and to this process; the largest resident size less that after the imports.
"""

from __future__ import annotations

import datetime
import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent import futures
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa
import pytest
from google.cloud.bigquery_storage_v1 import types

from tests.trainer.storage.test_gcs import FakeCloudStorage

LIMIT_BYTES = 128_000_000
MESSAGE_BYTES = 8 << 20
SERVICE = "/google.cloud.bigquery.storage.v1.BigQueryRead/"
UNIT = re.compile(r"span = DATE '([^']+)' AND part = '(\w+)' AND shard = (\d+)")

EXPORT = """
import sys
from trainer.export.memory import bound_allocators
bound_allocators()
import google.cloud.storage, grpc
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient
from google.cloud.bigquery_storage_v1.services.big_query_read.transports import BigQueryReadGrpcTransport
from trainer.contract.reading import parse_document
from trainer.contract.documents import ExportRequest
from trainer.bigquery.streams import NO_READ_AHEAD
from trainer.export.reading.reader import BigQueryReader
from trainer.export.job import SpanExport
from trainer.cluster.replica import Replica
from trainer.storage import Storage
from trainer.telemetry.logs import log_to_streams

request = parse_document(ExportRequest, sys.stdin.buffer.read(), "request")
channel = grpc.insecure_channel(sys.argv[1], [("grpc.max_receive_message_length", -1), NO_READ_AHEAD])
client = BigQueryReadClient(transport=BigQueryReadGrpcTransport(channel=channel))
reader = BigQueryReader([column.name for column in request.columns], client)
with log_to_streams():
    SpanExport(request, Storage(), reader, Replica()).write_spans()
"""


def flights(rows: int, random: np.random.Generator) -> dict[str, pa.Array]:
    """Like the flights: times and numbers with gaps, short texts."""
    numbers = {
        f"number_{index:02d}": pa.array(random.integers(0, 3000, rows), mask=random.random(rows) < 0.03)
        for index in range(16)
    }
    codes = pa.array([f"N{index}" for index in range(4000)])
    return numbers | {
        "flight_id": pa.array([f"2013-01-01-UA-{index}-EWR" for index in random.integers(0, 10**9, rows).tolist()]),
        "tailnum": codes.take(pa.array(random.integers(0, 4000, rows))),
        "moment": pa.array(random.integers(13 * 10**14, 14 * 10**14, rows), pa.timestamp("us", tz="UTC")),
    }


def wide(rows: int, random: np.random.Generator) -> dict[str, pa.Array]:
    """A hundred floats."""
    return {f"f{index:02d}": pa.array(random.random(rows)) for index in range(100)}


def mixed(rows: int, random: np.random.Generator) -> dict[str, pa.Array]:
    """Embeddings and incompressible blobs of 4 kB."""
    ends = np.arange(rows + 1, dtype=np.int32)
    blobs = [None, pa.py_buffer(ends * 4096), pa.py_buffer(random.bytes(rows * 4096))]
    return {
        "id": pa.array(range(rows)),
        "embedding": pa.ListArray.from_arrays(pa.array(ends * 64), pa.array(random.random(rows * 64))),
        "image": pa.Array.from_buffers(pa.binary(), rows, blobs),
    }


# Rows of a shard: at most 100,000, and 64 MB as JSON.
TABLES = {"flights": (flights, 100_000), "wide": (wide, 26_000), "mixed": (mixed, 9_500)}
BIGQUERY = {pa.int64(): "INTEGER", pa.float64(): "FLOAT", pa.string(): "STRING", pa.binary(): "BYTES"}


class StorageRead(grpc.GenericRpcHandler):
    """Gives the same features for every unit, with the unit's own columns; messages as large as the service's."""

    def __init__(self, table: str) -> None:
        make, self.rows = TABLES[table]
        columns = make(self.rows, np.random.default_rng(7))
        self.features = pa.record_batch(columns)
        hashes = pa.array(np.random.default_rng(8).permutation(self.rows) * 2_000_003)
        self.own = {"part": pa.array(["train"] * self.rows), "row_hash": hashes}
        self.message_rows = MESSAGE_BYTES * self.rows // self.features.nbytes

    def schema(self) -> list[dict[str, str]]:
        """Return the columns as a request names them."""
        return [
            {
                "name": field.name,
                "type": BIGQUERY.get(
                    field.type.value_type if pa.types.is_list(field.type) else field.type, "TIMESTAMP"
                ),
                "mode": "REPEATED" if pa.types.is_list(field.type) else "NULLABLE",
            }
            for field in self.features.schema
        ]

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler:
        """Find the method."""
        if details.method == f"{SERVICE}CreateReadSession":
            return grpc.unary_unary_rpc_method_handler(
                self._create, types.CreateReadSessionRequest.deserialize, types.ReadSession.serialize
            )
        return grpc.unary_stream_rpc_method_handler(
            self._read, types.ReadRowsRequest.deserialize, types.ReadRowsResponse.serialize
        )

    def _create(self, request: types.CreateReadSessionRequest, _context: grpc.ServicerContext) -> types.ReadSession:
        restriction = request.read_session.read_options.row_restriction
        (unit,) = UNIT.findall(restriction)
        schema = self._batch(*unit, start=0, count=1).schema.serialize().to_pybytes()
        names = [f"{' '.join(unit)} {index} {request.max_stream_count}" for index in range(request.max_stream_count)]
        return types.ReadSession(
            arrow_schema=types.ArrowSchema(serialized_schema=schema),
            streams=[types.ReadStream(name=name) for name in names],
        )

    def _read(self, request: types.ReadRowsRequest, _context: grpc.ServicerContext) -> Iterator[types.ReadRowsResponse]:
        span, part, shard, index, count = request.read_stream.split()
        starts = list(range(0, self.rows, self.message_rows))[int(index) :: int(count)]
        for start in starts:
            batch = self._batch(span, part, shard, start, self.message_rows)
            rows = types.ArrowRecordBatch(serialized_record_batch=batch.serialize().to_pybytes())
            yield types.ReadRowsResponse(arrow_record_batch=rows, row_count=batch.num_rows)

    def _batch(self, span: str, _part: str, shard: str, start: int, count: int) -> pa.RecordBatch:
        features = self.features.slice(start, count)
        rows = features.num_rows
        day = (datetime.date.fromisoformat(span) - datetime.date(1970, 1, 1)).days
        own = {
            "span": pa.array(np.full(rows, day, np.int32), pa.date32()),
            "shard": pa.array(np.full(rows, int(shard))),
            **{name: column.slice(start, count) for name, column in self.own.items()},
        }
        return pa.record_batch({**dict(zip(features.schema.names, features.columns, strict=True)), **own})


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Cloud Storage for the exporter."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeCloudStorage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project")
    yield
    FakeCloudStorage.objects, FakeCloudStorage.uploads = {}, {}
    server.shutdown()
    server.server_close()


def grown(table: str, shards: int) -> int:
    """Export so many shards; give the bytes that the last line of the job's log says."""
    rows = StorageRead(table)
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.max_send_message_length", -1)])
    server.add_generic_rpc_handlers((rows,))
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=day) for day in range(shards)]
    part = {"part": "train", "rows": rows.rows, "shards": 1}
    spans = [
        {"span": str(day), "fingerprint": "f" * 32, "parts": [part], "action": "export", "because": "new"}
        for day in days
    ]
    request: dict[str, Any] = {
        "schema_version": 1,
        "kind": "export_request",
        "model": "parcels",
        "run_key": "20240110t030000z-0a1b2c3d4e5f",
        "table": "project.dataset.parcels",
        "schema": rows.schema(),
        "schema_hash": "0123456789abcdef",
        "compression": "GZIP",
        "spans_uri": "gs://bucket/spans",
        "spans": spans,
        "quarantined": [],
        "test_start": spans[-1]["span"],
        "manifest_uri": "gs://bucket/manifest.json",
        "format": "tfrecord",
        "layout": {"numeric": [], "rows_per_record": 1},
        "images": [],
        "only": "all",
        "golden": None,
    }
    try:
        ended = subprocess.run(
            [sys.executable, "-c", EXPORT, address],
            input=json.dumps(request).encode(),
            capture_output=True,
            check=False,
            cwd=Path(__file__).parents[3],
        )
    finally:
        server.stop(None)
    assert ended.returncode == 0, ended.stderr.decode()
    *_, last = ended.stdout.decode().splitlines()
    assert f"wrote {rows.rows * shards} rows in {shards} shards" in last
    return int(re.search(r"memory \+(\d+) MB", last)[1]) * 1_000_000


@pytest.mark.parametrize("table", TABLES)
def test_an_export_stays_small(cloud: None, table: str) -> None:
    assert grown(table, 3) < LIMIT_BYTES


@pytest.mark.long
@pytest.mark.parametrize("table", TABLES)
def test_an_export_of_a_large_table_stays_as_small(cloud: None, table: str) -> None:
    assert grown(table, 25) < LIMIT_BYTES
