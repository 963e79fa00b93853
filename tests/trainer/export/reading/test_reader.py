"""Reading through Google's own client against a server that honours offsets and breaks midway."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import grpc
import pyarrow as pa
import pytest

from tests.support.refusals import refuses
from tests.support.storage_read import FakeStorageRead, client_of, storage_read
from trainer.errors import OUTAGE_S, RequestError, StorageError, TrainerError
from trainer.export.reading.reader import BigQueryReader
from trainer.export.work import Unit

DAY = datetime.date(2024, 1, 1)
ROWS = pa.table(
    {
        "x": pa.array(range(1000)),
        "place": pa.array([{"lat": number / 2, "name": f"n{number}"} for number in range(1000)]),
        "span": pa.array([DAY] * 1000),
        "part": pa.array(["train", "validation"] * 500),
        "shard": pa.array([0, 0, 1, 1] * 250),
        "row_hash": pa.array(range(1000)),
    }
)
UNITS = [Unit(span="2024-01-01", part="train", shard=0), Unit(span="2024-01-01", part="validation", shard=1)]


@pytest.fixture
def server() -> Iterator[FakeStorageRead]:
    with storage_read(ROWS) as running:
        yield running


@pytest.fixture
def make_reader(server: FakeStorageRead) -> Iterator[Callable[..., BigQueryReader]]:
    with client_of(server) as client:

        def make(waited: list[float] | None = None, columns: Sequence[str] = ("x",)) -> BigQueryReader:
            return BigQueryReader(columns, client, sleep=([] if waited is None else waited).append)

        yield make


TABLE = "project.dataset.parcels"


def read_all(reader: BigQueryReader, units: Sequence[Unit] = UNITS) -> pa.Table:
    """Read one stream to its end."""
    (stream,) = reader.open_streams(TABLE, units, 1)
    return pa.Table.from_batches(stream)


def test_only_the_wanted_columns_and_units_are_asked_for(server: Any, make_reader: Any) -> None:
    table = read_all(make_reader())
    assert table.num_rows == 1000
    assert table.column_names == ["x", "span", "part", "shard", "row_hash"]
    session = server.sessions[0]
    assert session.table == "projects/project/datasets/dataset/tables/parcels"
    assert list(session.read_options.selected_fields) == ["x", "span", "part", "shard", "row_hash"]
    assert session.read_options.row_restriction == (
        "(span = DATE '2024-01-01' AND ((part = 'train' AND shard = 0) OR (part = 'validation' AND shard = 1)))"
    )
    assert server.routes == ["read_stream=streams/0"]


def test_fields_of_a_struct_come_as_columns(server: Any, make_reader: Any) -> None:
    """The whole STRUCT is asked for; what of it is not wanted is left out."""
    table = read_all(make_reader(columns=["place.name", "x", "place.lat"]))
    assert list(server.sessions[0].read_options.selected_fields) == ["place", "x", "span", "part", "shard", "row_hash"]
    assert table.column_names == ["place.name", "x", "place.lat", "span", "part", "shard", "row_hash"]
    assert table["place.name"].to_pylist()[7] == "n7"


def test_the_frozen_set_is_asked_for_its_shards_alone(server: Any, make_reader: Any) -> None:
    table = read_all(make_reader(), [Unit(span="golden", part="golden", shard=0)])
    assert table.column_names == ["x", "shard", "row_hash"]
    assert list(server.sessions[0].read_options.selected_fields) == ["x", "shard", "row_hash"]
    assert server.sessions[0].read_options.row_restriction == "shard = 0"


def test_several_streams_give_all_rows_together(server: Any, make_reader: Any) -> None:
    streams = make_reader().open_streams(TABLE, UNITS, 3)
    assert server.wanted_streams == [3]
    assert sorted(batch.num_rows for stream in streams for batch in stream) == [100] * 10


def test_without_rows_there_is_no_stream(server: Any, make_reader: Any) -> None:
    server.empty = True
    assert make_reader().open_streams(TABLE, UNITS, 1) == []


def test_a_broken_stream_goes_on_at_the_first_missing_row(server: Any, make_reader: Any) -> None:
    server.faults = [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL]
    waited: list[float] = []
    table = read_all(make_reader(waited))
    assert table["x"].to_pylist() == list(range(1000))
    assert server.offsets == [0, 300, 600]
    assert waited == [0.5, 0.5]


def test_a_stream_that_only_breaks_is_given_up_with_the_row(server: Any, make_reader: Any) -> None:
    """After ten minutes without a new one."""
    server.faults = [grpc.StatusCode.UNAVAILABLE] * 50
    waited: list[float] = []
    with refuses(StorageError, where="read stream streams/0", found="row 1000"):
        read_all(make_reader(waited))
    last = waited[len(waited) - 1 - waited[::-1].index(0.5) :]
    assert last[:7] == [0.5, 1, 2, 4, 8, 16, 30]
    assert OUTAGE_S <= sum(last) < OUTAGE_S + max(last)


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (grpc.StatusCode.PERMISSION_DENIED, RequestError, "bigquery.tables.getData"),
        (grpc.StatusCode.DATA_LOSS, StorageError, "broke at row 300: stream broke"),
        (grpc.StatusCode.NOT_FOUND, StorageError, "broke at row 300: stream broke"),
    ],
    ids=["permission", "data-loss", "expired-session"],
)
def test_an_error_that_does_not_pass_is_not_tried_again(
    server: Any, make_reader: Any, code: grpc.StatusCode, error: type[TrainerError], words: str
) -> None:
    server.faults = [code]
    with pytest.raises(TrainerError, match=words) as raised:
        read_all(make_reader())
    assert type(raised.value) is error
    assert server.offsets == [0]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (
            (grpc.StatusCode.NOT_FOUND, "Not found: Table p:d.parcels"),
            ["Not found: Table", "expired: clear the run's snapshot"],
        ),
        ((grpc.StatusCode.INVALID_ARGUMENT, "selected fields x do not exist"), ["fields x", "columns x, span, part"]),
        ((grpc.StatusCode.PERMISSION_DENIED, "Access Denied"), ["Access Denied", "readsessions.create", "Grant them"]),
    ],
    ids=["table", "column", "permission"],
)
def test_what_cannot_be_mended_by_trying_again_is_said_with_the_way_out(
    server: Any, make_reader: Any, fault: tuple[grpc.StatusCode, str], words: list[str]
) -> None:
    server.session_fault = fault
    with pytest.raises(RequestError) as raised:
        make_reader().open_streams(TABLE, UNITS, 1)
    error = raised.value
    assert error.where == TABLE
    assert error.expected
    assert error.way_out
    assert all(word in str(error) for word in words)
    server.session_fault = None  # granted, or the table of a new snapshot
    assert make_reader().open_streams(TABLE, UNITS, 1)


def test_a_reader_that_is_left_early_ends_the_call(server: Any, make_reader: Any) -> None:
    (stream,) = make_reader().open_streams(TABLE, UNITS, 1)
    assert next(stream).num_rows == 100
    stream.close()
    assert next(stream, None) is None
