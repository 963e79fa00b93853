"""Every type of a column, through a load job, CREATE TABLE … AS SELECT and the Storage Read API, as the service has it.

Arrow's types are those of https://cloud.google.com/bigquery/docs/reference/storage#arrow_schema_details.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.cloud import bigquery, bigquery_storage_v1
from google.cloud.bigquery_storage_v1 import types

UTC = dt.UTC
GEOGRAPHY = {b"ARROW:extension:name": b"google:sqlType:geography", b"ARROW:extension:metadata": b'{"encoding": "WKT"}'}
DATETIME = {b"ARROW:extension:name": b"google:sqlType:datetime"}
JSON = {b"ARROW:extension:name": b"google:sqlType:json"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Case:
    """A type: how SQL and JSON write a value, and what it is on the wire."""

    name: str
    sql: str
    loaded: Any
    arrow: pa.DataType
    value: Any
    metadata: dict[bytes, bytes] | None = None
    mode: str = "NULLABLE"
    fields: tuple[bigquery.SchemaField, ...] = ()


INNER = (bigquery.SchemaField("c", "FLOAT"), bigquery.SchemaField("d", "STRING", "REPEATED"))
STRUCT = (
    bigquery.SchemaField("a", "INTEGER"),
    bigquery.SchemaField("b", "BYTES"),
    bigquery.SchemaField("s", "RECORD", fields=INNER),
)
STRUCT_ARROW = pa.struct(
    [("a", pa.int64()), ("b", pa.binary()), ("s", pa.struct([("c", pa.float64()), ("d", pa.list_(pa.string()))]))]
)
STRUCT_SQL = "STRUCT(1 AS a, b'\\x00\\xff' AS b, STRUCT(2.5 AS c, ['x'] AS d) AS s)"
STRUCT_LOADED = {"a": 1, "b": "AP8=", "s": {"c": 2.5, "d": ["x"]}}
STRUCT_VALUE = {"a": 1, "b": b"\x00\xff", "s": {"c": 2.5, "d": ["x"]}}
MOMENT = dt.datetime(2013, 1, 2, 3, 4, 5, 678901)
CASES = [
    Case(name="BOOLEAN", sql="TRUE", loaded=True, arrow=pa.bool_(), value=True),
    Case(name="INTEGER", sql="9223372036854775807", loaded=str(2**63 - 1), arrow=pa.int64(), value=2**63 - 1),
    Case(name="FLOAT", sql="1.5", loaded=1.5, arrow=pa.float64(), value=1.5),
    Case(
        name="NUMERIC",
        sql="NUMERIC '12345678901234567890123456789.123456789'",
        loaded="12345678901234567890123456789.123456789",
        arrow=pa.decimal128(38, 9),
        value=Decimal("12345678901234567890123456789.123456789"),
    ),
    Case(
        name="BIGNUMERIC",
        sql="BIGNUMERIC '-1234567890123456789012345678.0123456789'",
        loaded="-1234567890123456789012345678.0123456789",
        arrow=pa.decimal256(76, 38),
        value=Decimal("-1234567890123456789012345678.0123456789"),
    ),
    Case(name="STRING", sql="'é'", loaded="é", arrow=pa.string(), value="é"),
    Case(
        name="BYTES",
        sql="b'\\x00\\xff'",
        loaded=base64.b64encode(b"\x00\xff").decode(),
        arrow=pa.binary(),
        value=b"\x00\xff",
    ),
    Case(name="DATE", sql="DATE '0001-01-01'", loaded="0001-01-01", arrow=pa.date32(), value=dt.date(1, 1, 1)),
    Case(
        name="DATETIME",
        sql="DATETIME '2013-01-02 03:04:05.678901'",
        loaded="2013-01-02T03:04:05.678901",
        arrow=pa.timestamp("us"),
        value=MOMENT,
        metadata=DATETIME,
    ),
    Case(
        name="TIMESTAMP",
        sql="TIMESTAMP '2013-01-02 03:04:05.678901+00'",
        loaded="2013-01-02T03:04:05.678901Z",
        arrow=pa.timestamp("us", tz="UTC"),
        value=MOMENT.replace(tzinfo=UTC),
    ),
    Case(
        name="TIME",
        sql="TIME '03:04:05.678901'",
        loaded="03:04:05.678901",
        arrow=pa.time64("us"),
        value=MOMENT.time(),
    ),
    Case(
        name="GEOGRAPHY",
        sql="ST_GEOGPOINT(1.5, 2)",
        loaded="POINT(1.5 2)",
        arrow=pa.string(),
        value="POINT(1.5 2)",
        metadata=GEOGRAPHY,
    ),
    Case(
        name="JSON",
        sql='JSON \'{"b": 2, "a": [1, null]}\'',
        loaded={"b": 2, "a": [1, None]},
        arrow=pa.string(),
        value='{"b":2,"a":[1,null]}',
        metadata=JSON,
    ),
    Case(name="RECORD", sql=STRUCT_SQL, loaded=STRUCT_LOADED, arrow=STRUCT_ARROW, value=STRUCT_VALUE, fields=STRUCT),
    Case(name="INTEGER", sql="[1, 2]", loaded=[1, 2], arrow=pa.list_(pa.int64()), value=[1, 2], mode="REPEATED"),
    Case(
        name="BYTES",
        sql="[b'a', b'\\xff']",
        loaded=["YQ==", "/w=="],
        arrow=pa.list_(pa.binary()),
        value=[b"a", b"\xff"],
        mode="REPEATED",
    ),
    Case(
        name="NUMERIC",
        sql="[NUMERIC '1.5']",
        loaded=["1.5"],
        arrow=pa.list_(pa.decimal128(38, 9)),
        value=[Decimal("1.5")],
        mode="REPEATED",
    ),
    Case(
        name="RECORD",
        sql=f"[{STRUCT_SQL}]",
        loaded=[STRUCT_LOADED],
        arrow=pa.list_(STRUCT_ARROW),
        value=[STRUCT_VALUE],
        mode="REPEATED",
        fields=STRUCT,
    ),
]
IDS = [f"{case.name} {case.mode}".lower() for case in CASES]


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """The real client, with a dataset `types`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("types", exists_ok=True)
    return made


@pytest.fixture(scope="module")
def read(client):
    """Read a whole table of `types` as Arrow: `read("name")`, `read("name", selected_fields=[...])`."""
    reader = bigquery_storage_v1.BigQueryReadClient()

    def call(table: str, **options: Any) -> pa.Table:
        session = reader.create_read_session(
            parent=f"projects/{client.project}",
            read_session=types.ReadSession(
                table=f"projects/{client.project}/datasets/types/tables/{table}",
                data_format=types.DataFormat.ARROW,
                read_options=types.ReadSession.TableReadOptions(**options),
            ),
            max_stream_count=1,
        )
        schema = pa.ipc.read_schema(pa.py_buffer(session.arrow_schema.serialized_schema))
        messages = [message for stream in session.streams for message in reader.read_rows(stream.name)]
        batches = [
            pa.ipc.read_record_batch(pa.py_buffer(message.arrow_record_batch.serialized_record_batch), schema)
            for message in messages
        ]
        return pa.Table.from_batches(batches, schema)

    return call


def load(client, name, rows, *fields):
    config = bigquery.LoadJobConfig(schema=list(fields), write_disposition="WRITE_TRUNCATE")
    client.load_table_from_json(rows, f"types.{name}", job_config=config).result(timeout=60)


def described(field: bigquery.SchemaField) -> tuple[Any, ...]:
    return field.name, field.field_type, field.mode, tuple(described(inner) for inner in field.fields)


def expected_field(case: Case) -> tuple[Any, ...]:
    return described(bigquery.SchemaField("x", case.name, case.mode, fields=case.fields))


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_query_result_as_a_table(client, read, case):
    """CREATE TABLE … AS SELECT: schema, Arrow type, extension and value."""
    client.query_and_wait(f"CREATE OR REPLACE TABLE types.made AS SELECT {case.sql} AS x")
    assert described(client.get_table("types.made").schema[0]) == expected_field(case)
    table = read("made")
    assert (table.schema.field("x").type, table.schema.field("x").metadata) == (case.arrow, case.metadata)
    assert table["x"].to_pylist() == [case.value]


@pytest.mark.parametrize("case", CASES, ids=IDS)
def test_loaded_table(client, read, case):
    """A load job of JSON: values are decoded, a missing value is NULL and a missing array an empty one."""
    load(
        client, "loaded", [{"x": case.loaded}, {}], bigquery.SchemaField("x", case.name, case.mode, fields=case.fields)
    )
    assert described(client.get_table("types.loaded").schema[0]) == expected_field(case)
    table = read("loaded")
    assert (table.schema.field("x").type, table.schema.field("x").metadata) == (case.arrow, case.metadata)
    assert table["x"].to_pylist() == [case.value, [] if case.mode == "REPEATED" else None]
    client.query_and_wait("CREATE OR REPLACE TABLE types.copied AS SELECT * FROM types.loaded")
    assert described(client.get_table("types.copied").schema[0]) == expected_field(case)
    assert read("copied").equals(table)
    client.delete_table("types.loaded")


def test_standard_names_are_told_as_legacy_ones(client):
    """tables.get says INTEGER for INT64, as the service does, also in a RECORD."""
    fields = [bigquery.SchemaField("r", "STRUCT", fields=[bigquery.SchemaField("i", "INT64")])]
    client.delete_table("types.named", not_found_ok=True)
    client.create_table(bigquery.Table(f"{client.project}.types.named", fields))
    assert described(client.get_table("types.named").schema[0]) == (
        *("r", "RECORD", "NULLABLE"),
        (("i", "INTEGER", "NULLABLE", ()),),
    )


def test_sum_of_whole_numbers_is_one(client, read):
    """DuckDB's 128 bits stay behind the curtain."""
    client.query_and_wait("CREATE OR REPLACE TABLE types.sums AS SELECT SUM(n) AS x FROM UNNEST([1, 2]) AS n")
    assert client.get_table("types.sums").schema[0].field_type == "INTEGER"
    assert read("sums").schema.field("x").type == pa.int64()


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_floats_that_are_no_numbers(client, read, value):
    client.query_and_wait(f"CREATE OR REPLACE TABLE types.odd AS SELECT CAST('{value}' AS FLOAT64) AS x")
    assert [str(found) for found in read("odd")["x"].to_pylist()] == [value]


def test_parquet_is_loaded_by_name(client, read):
    """Columns of a file may stand in any order; those that are missing are NULL, missing arrays empty."""
    file = io.BytesIO()
    pq.write_table(pa.table({"b": [b"\xff"], "a": [7]}), file)
    fields = [
        bigquery.SchemaField("a", "INTEGER"),
        bigquery.SchemaField("b", "BYTES"),
        bigquery.SchemaField("c", "STRING"),
        bigquery.SchemaField("d", "INTEGER", "REPEATED"),
    ]
    client.delete_table("types.parquet", not_found_ok=True)
    client.create_table(bigquery.Table(f"{client.project}.types.parquet", fields))
    config = bigquery.LoadJobConfig(source_format="PARQUET", write_disposition="WRITE_APPEND")
    client.load_table_from_file(file, "types.parquet", rewind=True, job_config=config).result(timeout=60)
    assert read("parquet").to_pylist() == [{"a": 7, "b": b"\xff", "c": None, "d": []}]


def test_csv_holds_bytes_as_base64(client, read):
    config = bigquery.LoadJobConfig(
        source_format="CSV",
        skip_leading_rows=1,
        schema=[bigquery.SchemaField("a", "INTEGER"), bigquery.SchemaField("b", "BYTES")],
    )
    client.delete_table("types.csv", not_found_ok=True)
    file = io.BytesIO(b"a,b\n1,AP8=\n2,\n")
    client.load_table_from_file(file, "types.csv", job_config=config).result(timeout=60)
    assert read("csv").to_pylist() == [{"a": 1, "b": b"\x00\xff"}, {"a": 2, "b": None}]


def test_nested_fields_are_selected_by_path(client, read):
    """`a.b` gives a RECORD with that field only; order is the table's; also inside arrays."""
    client.query_and_wait(
        "CREATE OR REPLACE TABLE types.nested AS SELECT 1 AS n, STRUCT(2 AS i, 'x' AS j, STRUCT(3 AS k, 4 AS l) AS m)"
        " AS s, [STRUCT(5 AS o, 'y' AS p)] AS r"
    )
    assert read("nested", selected_fields=["r.p", "s.m.l", "s.i"]).to_pylist() == [
        {"s": {"i": 2, "m": {"l": 4}}, "r": [{"p": "y"}]}
    ]
    assert read("nested", selected_fields=["s.m"], row_restriction="s.i = 2 AND s.m.k = 3").to_pylist() == [
        {"s": {"m": {"k": 3, "l": 4}}}
    ]
    assert read("nested", selected_fields=["S.J", "s"]).to_pylist()[0]["s"]["i"] == 2


def test_geography_in_a_query_result(client):
    """WKT, not bytes."""
    (row,) = client.query_and_wait("SELECT ST_GEOGFROMTEXT('POINT(1 2)') AS g, [JSON '1'] AS j")
    assert (row.g.replace("POINT (", "POINT("), row.j) == ("POINT(1 2)", [1])
