"""The older Storage Read API, call by call; tensorflow-io's own client is in tests/trainer/input/test_bigquery.py."""

from __future__ import annotations

import itertools

import grpc
import pyarrow as pa
import pytest
from google.cloud import bigquery
from google.protobuf import empty_pb2

from localcloud.bigquery.read.v1beta1_messages import MESSAGES
from localcloud.state import State

ROWS = 300_000  # half of them, chosen, take more than a megabyte: enough for two streams
_SERVICE = "/google.cloud.bigquery.storage.v1beta1.BigQueryStorage/"
_ANSWERS = {
    "CreateReadSession": "ReadSession",
    "BatchCreateReadSessionStreams": "BatchCreateReadSessionStreamsResponse",
    "SplitReadStream": "SplitReadStreamResponse",
    "ReadRows": "ReadRowsResponse",
}
ARROW = 3


@pytest.fixture(scope="module")
def call(local_cloud):
    """Calls a method with the fields of its request."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("older", exists_ok=True)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE older.numbers AS SELECT n, n * 2 AS twice"
        f" FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
    )
    path = State(local_cloud.state_path).socket_path("bigquery_grpc")
    who = [("authorization", local_cloud.headers["Authorization"])]
    with grpc.insecure_channel(f"unix:{path}", options=[("grpc.max_receive_message_length", -1)]) as channel:

        def do(method: str, **fields):
            request = MESSAGES[f"{method}Request"](**fields)
            parse = MESSAGES[_ANSWERS[method]].FromString if method in _ANSWERS else empty_pb2.Empty.FromString
            kind = channel.unary_stream if method == "ReadRows" else channel.unary_unary
            return kind(_SERVICE + method, type(request).SerializeToString, parse)(request, metadata=who)

        yield do


def open_session(call, local_cloud, *, streams: int, restriction: str):
    return call(
        "CreateReadSession",
        parent=f"projects/{local_cloud.project}",
        table_reference={"project_id": local_cloud.project, "dataset_id": "older", "table_id": "numbers"},
        requested_streams=streams,
        format=ARROW,
        read_options={"selected_fields": ["n"], "row_restriction": restriction},
    )


@pytest.fixture
def session(call, local_cloud):
    """A session of two streams."""
    return open_session(call, local_cloud, streams=2, restriction="MOD(n, 2) = 0")


def numbers(call, session, stream: str, offset: int = 0) -> list[int]:
    schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
    found = []
    for response in call("ReadRows", read_position={"stream": {"name": stream}, "offset": offset}):
        content = pa.py_buffer(response.arrow_record_batch.serialized_record_batch)
        batch = pa.ipc.read_record_batch(content, schema)
        assert response.row_count == response.arrow_record_batch.row_count == batch.num_rows
        found += batch.column("n").to_pylist()
    return found


def refusal(do) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        do()
    return caught.value.code()


def test_the_streams_of_a_session_hold_its_rows(call, session):
    """Chosen columns, restricted rows, from any offset."""
    assert session.table_reference.table_id == "numbers"
    assert session.expire_time.seconds > 0
    first, second = (stream.name for stream in session.streams)
    found = numbers(call, session, first) + numbers(call, session, second)
    assert sorted(found) == list(range(0, ROWS, 2))
    assert numbers(call, session, first, offset=70_000) == numbers(call, session, first)[70_000:]


def test_a_small_table_comes_in_several_streams_where_a_test_asks_for_them(call, local_cloud, add_fault):
    """Ten rows in as many streams as were asked for, or as the fault says; then in one again."""
    target = "BigQueryRead.CreateReadSession *.older.numbers"
    add_fault(target, "split")
    add_fault(target, "split", streams=3)
    for count in (4, 3, 1):
        small = open_session(call, local_cloud, streams=4, restriction="n < 10")
        assert len(small.streams) == count
        found = [numbers(call, small, stream.name) for stream in small.streams]
        assert all(found)
        assert sorted(itertools.chain(*found)) == list(range(10))


def test_progress_goes_from_nothing_to_all(call, session):
    """The last response has consumed the stream."""
    statuses = [answer.status for answer in call("ReadRows", read_position={"stream": session.streams[0]})]
    assert statuses[0].progress.at_response_start == 0
    assert statuses[-1].progress.at_response_end == statuses[-1].fraction_consumed == 1
    assert statuses[0].estimated_row_count == pytest.approx(ROWS / 4, rel=0.5)


def test_a_split_stream_is_two_back_to_back(call, session):
    """The same two when asked again, and the original can still be read."""
    original = session.streams[0]
    split = call("SplitReadStream", original_stream=original, fraction=0.25)
    assert call("SplitReadStream", original_stream=original, fraction=0.25) == split
    parts = [numbers(call, session, part.name) for part in (split.primary_stream, split.remainder_stream)]
    whole = numbers(call, session, original.name)
    assert parts[0] + parts[1] == whole
    assert len(parts[0]) == pytest.approx(len(whole) / 4, rel=0.01)


def test_added_streams_have_no_rows(call, session):
    """Every row of a balanced session is assigned when it is made."""
    added = call("BatchCreateReadSessionStreams", session={"name": session.name}, requested_streams=2)
    assert [numbers(call, session, stream.name) for stream in added.streams] == [[], []]
    assert refusal(lambda: call("BatchCreateReadSessionStreams", session={"name": session.name})) == (
        grpc.StatusCode.INVALID_ARGUMENT
    )


def test_the_last_live_stream_cannot_be_finalized(call, session):
    """What a finalized one holds can still be read."""
    first, second = session.streams
    call("FinalizeStream", stream=first)
    assert numbers(call, session, first.name)
    assert refusal(lambda: call("FinalizeStream", stream=second)) == grpc.StatusCode.FAILED_PRECONDITION


def test_unknown_names_and_formats_are_refused(call, session, local_cloud):
    """As v1 refuses them."""
    gone = {"name": f"{session.name}x"}
    assert refusal(lambda: call("BatchCreateReadSessionStreams", session=gone, requested_streams=1)) == (
        grpc.StatusCode.NOT_FOUND
    )
    assert refusal(lambda: list(call("ReadRows", read_position={"stream": gone}))) == grpc.StatusCode.NOT_FOUND
    table = {"project_id": local_cloud.project, "dataset_id": "older", "table_id": "gone"}
    parent = f"projects/{local_cloud.project}"
    assert refusal(lambda: call("CreateReadSession", parent=parent, table_reference=table)) == grpc.StatusCode.NOT_FOUND
    assert refusal(lambda: call("CreateReadSession", parent=parent, table_reference=table, format=7)) == (
        grpc.StatusCode.INVALID_ARGUMENT
    )
