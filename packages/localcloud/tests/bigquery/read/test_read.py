"""The Storage Read API through the real client: offsets, restrictions, streams, estimates."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest
from google.api_core import exceptions
from google.cloud import bigquery, bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types
from google.cloud.bigquery_storage_v1.services.big_query_read import BigQueryReadClient

ROWS = 150_000


@pytest.fixture(scope="module")
def table(local_cloud) -> str:
    """A table of ROWS rows in insertion order, as a resource name."""
    client = bigquery.Client(project=local_cloud.project)
    client.create_dataset("reading", exists_ok=True)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE reading.numbers AS SELECT n, CONCAT('row ', CAST(n AS STRING)) AS words,"
        " IF(MOD(n, 3) = 0, NULL, n / 2) AS half, DATE_ADD(DATE '2013-01-01', INTERVAL MOD(n, 5) DAY) AS span"
        f" FROM UNNEST(GENERATE_ARRAY(0, {ROWS - 1})) AS n"
    )
    return f"projects/{local_cloud.project}/datasets/reading/tables/numbers"


@pytest.fixture(scope="module")
def reader(table):
    """The real client."""
    return bigquery_storage_v1.BigQueryReadClient()


def open_session(reader, table, *, streams=1, **options):
    session = types.ReadSession(
        table=table,
        data_format=options.pop("data_format", types.DataFormat.ARROW),
        read_options=types.ReadSession.TableReadOptions(**options),
    )
    parent = "/".join(table.split("/")[:2])
    return reader.create_read_session(parent=parent, read_session=session, max_stream_count=streams)


def test_session_says_what_it_holds(reader, table):
    """Row count, expiry and schema are filled in."""
    session = open_session(reader, table, selected_fields=["words", "n"])
    assert session.estimated_row_count == ROWS
    assert session.estimated_total_bytes_scanned > ROWS * 8
    assert session.expire_time is not None
    assert pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema)).names == ["n", "words"]


@pytest.mark.parametrize("offset", [0, 1, 65_535, 65_536, 100_001, ROWS - 1, ROWS])
def test_offset_is_honoured(reader, table, offset):
    """A stream that is resumed goes on where it was left: no row twice, none lost."""
    session = open_session(reader, table, selected_fields=["n"])
    rows = reader.read_rows(session.streams[0].name, offset=offset).to_arrow(session) if offset < ROWS else None
    numbers = rows["n"].to_pylist() if rows is not None else list(reader.read_rows(session.streams[0].name, ROWS))
    assert numbers == list(range(offset, ROWS))


def test_offset_beyond_the_stream_is_refused(reader, table):
    """OUT_OF_RANGE, as the service says."""
    session = open_session(reader, table, selected_fields=["n"])
    with pytest.raises(exceptions.OutOfRange, match="outside of the stream"):
        list(reader.read_rows(session.streams[0].name, offset=ROWS + 1))


def test_streams_cut_the_rows_without_overlap(reader, table):
    """Every row comes exactly once over all streams, twice the same way."""
    session = open_session(reader, table, streams=3, selected_fields=["n", "words", "half"])
    assert len(session.streams) == 3
    first = [reader.read_rows(each.name).to_arrow(session)["n"].to_pylist() for each in session.streams]
    again = [reader.read_rows(each.name).to_arrow(session)["n"].to_pylist() for each in session.streams]
    assert first == again
    assert sorted(itertools.chain(*first)) == list(range(ROWS))


def test_small_tables_have_one_stream_and_empty_ones_none(reader, table):
    """As in the service, more streams than sense are not given."""
    assert len(open_session(reader, table, streams=8, row_restriction="n < 10").streams) == 1
    assert len(open_session(reader, table, streams=8, row_restriction="n < 0").streams) == 0


@pytest.mark.parametrize(
    ("restriction", "expected"),
    [
        ("n < 3", 3),
        ("n < 3 OR n = 100", 4),
        ("words = 'row 7'", 1),
        ("words IN ('row 7', 'CALL', 'SELECT')", 1),
        ("half IS NULL", ROWS // 3),
        ('span = "2013-01-02" AND n < 10', 2),
        ("span = DATE '2013-01-02' AND n < 10", 2),
        ("n BETWEEN 5 AND 9 AND words LIKE 'row%'", 5),
        ("ABS(MOD(FARM_FINGERPRINT(words), 2)) < 2", ROWS),
        ("CAST('NaN' AS FLOAT64) > half", 0),
        ("n > 2 AND CAST(n / 2 AS INT64) = 2", 2),
    ],
)
def test_row_restriction_selects(reader, table, restriction, expected):
    """A valid restriction gives its rows and no others."""
    assert open_session(reader, table, row_restriction=restriction).estimated_row_count == expected


@pytest.mark.parametrize(
    "restriction",
    [
        "n <",
        "nope = 1",
        "n = 1; DROP TABLE x",
        "n IN (SELECT 1)",
        "1 = 1 LIMIT 3",
        "1=1 UNION ALL SELECT 1",
        "COUNT(*) > 1",
        "'x'",
        "n = @p",
        "FOO(n) = 1",
        "n = 'x' ORDER BY n",
        "-- n",
        "INSTR(words, 'a', -1) = 1",
    ],
)
def test_bad_row_restriction_is_refused(reader, table, restriction):
    """A malformed restriction is INVALID_ARGUMENT; it never gives all rows."""
    with pytest.raises(exceptions.InvalidArgument):
        open_session(reader, table, row_restriction=restriction)


def test_unknown_fields_tables_and_streams_are_refused(reader, table):
    """Each with its own status."""
    for field in ("nope", "n.nope", "words.", ""):
        with pytest.raises(exceptions.InvalidArgument, match="do not exist"):
            open_session(reader, table, selected_fields=[field])
    with pytest.raises(exceptions.NotFound, match="Table"):
        open_session(reader, table + "_missing")
    with pytest.raises(exceptions.NotFound, match="stream"):
        list(reader.read_rows("projects/p/locations/us/sessions/none/streams/0"))
    with pytest.raises(exceptions.InvalidArgument, match="form projects/"):
        open_session(reader, "projects/local-project/nonsense")


def test_what_is_not_offered_is_refused_by_name(reader, table):
    """What the service itself sets is not looked at."""
    parent = "/".join(table.split("/")[:2])
    options = {"arrow_serialization_options": {"picos_timestamp_precision": 3}}
    for name, asked in (
        ("read_options.sample_percentage", {"read_options": {"sample_percentage": 5}}),
        ("read_options.response_compression_codec", {"read_options": {"response_compression_codec": 2}}),
        ("read_options.arrow_serialization_options.picos_timestamp_precision", {"read_options": options}),
        ("table_modifiers.snapshot_time", {"table_modifiers": {"snapshot_time": {"seconds": 1}}}),
    ):
        with pytest.raises(exceptions.MethodNotImplemented, match=f"does not offer read_session.{name}:"):
            reader.create_read_session(parent=parent, read_session={"table": table, **asked})
    given = {"table": table, "data_format": "ARROW", "name": "mine", "trace_id": "x", "estimated_row_count": 1}
    session = reader.create_read_session(parent=parent, read_session=given)
    assert (session.name != "mine", session.estimated_row_count) == (True, ROWS)
    request = {"read_stream": session.streams[0].name, "arrow_serialization_options": {"buffer_compression": 1}}
    with pytest.raises(
        exceptions.MethodNotImplemented, match="does not offer arrow_serialization_options: its session"
    ):
        list(BigQueryReadClient.read_rows(reader, request=request))  # Google's own wrapper asks for the stream alone


def test_session_is_a_snapshot(reader, table, local_cloud):
    """Rows written after the session was made are not in it."""
    client = bigquery.Client(project=local_cloud.project)
    client.query_and_wait("CREATE OR REPLACE TABLE reading.growing AS SELECT 1 AS n")
    session = open_session(reader, table.replace("numbers", "growing"))
    client.query_and_wait("INSERT INTO reading.growing (n) VALUES (2)")
    assert reader.read_rows(session.streams[0].name).to_arrow(session)["n"].to_pylist() == [1]


@pytest.mark.parametrize("codec", ["LZ4_FRAME", "ZSTD"])
def test_arrow_buffers_are_compressed_on_demand(reader, table, codec):
    """A compressed session gives the same rows in fewer bytes."""
    options = types.ArrowSerializationOptions(
        buffer_compression=types.ArrowSerializationOptions.CompressionCodec[codec]
    )
    session = open_session(reader, table, arrow_serialization_options=options)
    plain = open_session(reader, table)
    messages = list(reader.read_rows(session.streams[0].name))
    size = sum(len(each.arrow_record_batch.serialized_record_batch) for each in messages)
    plain_size = sum(
        len(each.arrow_record_batch.serialized_record_batch) for each in reader.read_rows(plain.streams[0].name)
    )
    assert size < plain_size / 2
    assert reader.read_rows(session.streams[0].name).to_arrow(session).num_rows == ROWS


def test_wide_rows_come_in_small_messages(reader, table, local_cloud):
    """No message is much above 8 MiB, however wide the rows are."""
    client = bigquery.Client(project=local_cloud.project)
    client.query_and_wait(
        "CREATE OR REPLACE TABLE reading.wide AS"
        " SELECT n, REPEAT('x', 4000) AS text FROM UNNEST(GENERATE_ARRAY(1, 20000)) n"
    )
    session = open_session(reader, table.replace("numbers", "wide"))
    messages = list(reader.read_rows(session.streams[0].name))
    assert max(len(each.arrow_record_batch.serialized_record_batch) for each in messages) < 12 * 1024 * 1024
    assert sum(each.row_count for each in messages) == 20_000
    assert messages[-1].stats.progress.at_response_end == 1.0


def test_split_stream(reader, table):
    """Both halves together are the stream."""
    session = open_session(reader, table, selected_fields=["n"])
    halves = reader.split_read_stream({"name": session.streams[0].name, "fraction": 0.25})
    first = reader.read_rows(halves.primary_stream.name).to_arrow(session)["n"].to_pylist()
    second = reader.read_rows(halves.remainder_stream.name).to_arrow(session)["n"].to_pylist()
    assert first + second == list(range(ROWS))
    assert len(first) == ROWS // 4


def test_avro(reader, table):
    """Rows can be read as Avro too."""
    session = open_session(reader, table, data_format=types.DataFormat.AVRO, row_restriction="n < 5")
    assert session.avro_schema.schema
    assert sum(each.row_count for each in reader.read_rows(session.streams[0].name)) == 5
