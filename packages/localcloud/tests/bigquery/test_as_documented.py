"""Answers of BigQuery that its reference describes, and suites of public clients ask for: `make conformance`."""

from __future__ import annotations

import datetime
import decimal
import io
import json
import uuid

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.api_core import exceptions
from google.cloud import bigquery

POINT_WKB = bytes.fromhex("0101000000000000000000f03f0000000000000040")  # POINT(1 2)


@pytest.fixture(scope="module")
def client(local_cloud) -> bigquery.Client:
    """Google's client, unmodified, with a dataset `documented`."""
    made = bigquery.Client(project=local_cloud.project)
    made.create_dataset("documented", exists_ok=True)
    return made


@pytest.fixture
def table(client) -> str:
    """A name that no table has."""
    return f"{client.project}.documented.t{uuid.uuid4().hex}"


def load(client, table, content: bytes, source_format: str, **config):
    """Load bytes, and wait."""
    settings = bigquery.LoadJobConfig(source_format=source_format, **config)
    return client.load_table_from_file(io.BytesIO(content), table, job_config=settings, num_retries=0).result(
        timeout=60
    )


def answers(client, sql: str, *parameters) -> list[tuple]:
    """Return a query's rows."""
    config = bigquery.QueryJobConfig(query_parameters=list(parameters))
    return [tuple(row.values()) for row in client.query_and_wait(sql, job_config=config)]


@pytest.mark.parametrize(
    ("written", "parts"),
    [
        ("P7Y11M9DT4H15M37.123456S", (7, 11, 9, 4, 15, 37123456)),
        ("P-1Y2M-3DT-4H0M0S", (0, -10, -3, -4, 0, 0)),
        ("PT5M", (0, 0, 0, 0, 5, 0)),
        ("1-2 3 4:5:6.5", (1, 2, 3, 4, 5, 6500000)),
        ("-1-2 -3 -4:5:6", (-1, -2, -3, -4, -5, -6000000)),
    ],
)
@pytest.mark.parametrize("source_format", ["NEWLINE_DELIMITED_JSON", "CSV"])
def test_intervals_of_files(client, table, source_format, written, parts):
    """In BigQuery's own form, and in that of ISO 8601."""
    content = json.dumps({"i": written}) if source_format != "CSV" else written
    load(client, table, content.encode(), source_format, schema=[bigquery.SchemaField("i", "INTERVAL")])
    units = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE")
    asked = ", ".join(f"EXTRACT({unit} FROM i)" for unit in units)
    sql = f"SELECT {asked}, EXTRACT(SECOND FROM i) * 1000000 + MOD(EXTRACT(MICROSECOND FROM i), 1000000) FROM `{table}`"
    assert answers(client, sql) == [parts]


@pytest.mark.parametrize("written", ["P", "PT", "five days", "1-2"])
def test_what_is_no_interval(client, table, written):
    """It fails the load by its text."""
    with pytest.raises(exceptions.BadRequest, match=f"Invalid INTERVAL value: {written}"):
        load(
            client,
            table,
            json.dumps({"i": written}).encode(),
            "NEWLINE_DELIMITED_JSON",
            schema=[bigquery.SchemaField("i", "INTERVAL")],
        )


def test_numbers_of_json_files_that_json_does_not_have(client, table):
    """Infinity and NaN, in quotation marks; also in arrays."""
    lines = [{"n": 0, "f": "+inf", "many": ["nan", 1.5, "-Infinity"]}, {"n": 1, "f": 2, "many": []}, {"n": 2, "f": "x"}]
    schema = [
        bigquery.SchemaField("n", "INTEGER"),
        bigquery.SchemaField("f", "FLOAT"),
        bigquery.SchemaField("many", "FLOAT", mode="REPEATED"),
    ]
    good, bad = lines[:2], lines[2:]
    content = "\n".join(map(json.dumps, good)).encode()
    load(client, table, content, "NEWLINE_DELIMITED_JSON", schema=schema)
    found = answers(client, f"SELECT f, many FROM `{table}` ORDER BY n")
    assert (found[0][0], found[1]) == (float("inf"), (2.0, []))
    assert (str(found[0][1][0]), found[0][1][1:]) == ("nan", [1.5, float("-inf")])
    with pytest.raises(exceptions.BadRequest, match="x"):
        load(client, table, json.dumps(bad[0]).encode(), "NEWLINE_DELIMITED_JSON", schema=schema)


@pytest.mark.parametrize("written", ["1381404436", 1381404436, "2013-10-10T11:27:16Z", "2013-10-10 13:27:16+02:00"])
def test_timestamps_of_json_files(client, table, written):
    """A moment, or seconds since 1970, also with microseconds behind the point; alone and in arrays."""
    schema = [bigquery.SchemaField("t", "TIMESTAMP"), bigquery.SchemaField("many", "TIMESTAMP", mode="REPEATED")]
    content = json.dumps({"t": written, "many": [written, "1.000001"]}).encode()
    load(client, table, content, "NEWLINE_DELIMITED_JSON", schema=schema)
    sql = f"SELECT UNIX_MICROS(t), ARRAY(SELECT UNIX_MICROS(m) FROM UNNEST(many) m) FROM `{table}`"
    ((one, many),) = answers(client, sql)
    assert (one, sorted(many)) == (1381404436000000, [1000001, 1381404436000000])


def test_geographies_of_parquet_files(client, table):
    """WKB as bytes, or WKT as text, as GeoPandas and people write them."""
    for kind, values in ((pa.binary(), [POINT_WKB, None]), (pa.string(), ["POINT(1 2)", None])):
        content = io.BytesIO()
        pq.write_table(pa.table({"g": pa.array(values, kind)}), content)
        schema = [bigquery.SchemaField("g", "GEOGRAPHY")]
        load(client, table, content.getvalue(), "PARQUET", schema=schema, write_disposition="WRITE_TRUNCATE")
        found = answers(client, f"SELECT ST_X(g), ST_Y(g) FROM `{table}` ORDER BY 1")
        assert found == [(None, None), (1.0, 2.0)]


def test_a_table_without_columns_takes_those_of_the_file(client, table):
    """A format that says its columns needs no schema, though the table is there and may not be made."""
    client.create_table(bigquery.Table(table))
    content = io.BytesIO()
    pq.write_table(pa.table({"name": ["a"], "n": [1]}), content)
    given = {"create_disposition": "CREATE_NEVER", "write_disposition": "WRITE_EMPTY"}
    load(client, table, content.getvalue(), "PARQUET", **given)
    assert answers(client, f"SELECT * FROM `{table}`") == [("a", 1)]


def test_a_load_describes_the_table_that_it_makes(client, table):
    """Its properties are those of a new table; one that is there keeps its own, and other ones are an error."""
    said = {"destination_table_description": "What it is.", "destination_table_friendly_name": "It"}
    schema = [bigquery.SchemaField("a", "STRING")]
    load(client, table, b"x\n", "CSV", schema=schema, **said)
    made = client.get_table(table)
    assert (made.description, made.friendly_name) == ("What it is.", "It")
    load(client, table, b"y\n", "CSV", schema=schema, **said)
    with pytest.raises(exceptions.BadRequest, match="another description"):
        load(client, table, b"z\n", "CSV", schema=schema, destination_table_description="Something else.")
    assert answers(client, f"SELECT a FROM `{table}` ORDER BY a") == [("x",), ("y",)]


def test_bytes_of_parameters_are_bytes(client, table):
    """Named, positional and in arrays; and they compare as such."""
    named = bigquery.ScalarQueryParameter("b", "BYTES", b"\x00DEAD\xff")
    assert answers(client, "SELECT @b, LENGTH(@b), @b = b'\\x00DEAD\\xff'", named) == [(b"\x00DEAD\xff", 6, True)]
    assert answers(client, "SELECT ?", bigquery.ScalarQueryParameter(None, "BYTES", b"x")) == [(b"x",)]
    many = bigquery.ArrayQueryParameter("many", "BYTES", [b"a", b"\xff"])
    assert answers(client, "SELECT @many", many) == [([b"a", b"\xff"],)]


def test_a_dataset_in_use_is_not_deleted(client):
    """400 `resourceInUse`, which no client takes for a dataset that is gone."""
    name = f"used_{uuid.uuid4().hex[:12]}"
    client.create_dataset(name)
    client.create_table(bigquery.Table(f"{client.project}.{name}.t", schema=[bigquery.SchemaField("a", "STRING")]))
    with pytest.raises(exceptions.BadRequest, match="still in use") as refused:
        client.delete_dataset(name, not_found_ok=True)
    assert refused.value.errors[0]["reason"] == "resourceInUse"
    client.delete_dataset(name, delete_contents=True)
    with pytest.raises(exceptions.NotFound):
        client.delete_dataset(name)


def test_a_layout_is_taken_away(client, table):
    """By null in a patch; a patch that does not name it leaves it."""
    made = bigquery.Table(table, schema=[bigquery.SchemaField("a", "STRING"), bigquery.SchemaField("d", "DATE")])
    made.clustering_fields = ["a"]
    made.time_partitioning = bigquery.TimePartitioning(field="d")
    stored = client.create_table(made)
    stored.description = "Kept."
    stored = client.update_table(stored, ["description"])
    assert (stored.clustering_fields, stored.time_partitioning.field) == (["a"], "d")
    stored.clustering_fields = None
    stored = client.update_table(stored, ["clustering_fields"])
    assert (stored.clustering_fields, stored.time_partitioning.field) == (None, "d")


def test_lengths_of_columns_hold(client, table):
    """STRING(n) in characters, BYTES(n) in bytes, for every way to write; the schema tells them, a copy does not."""
    answers(client, f"CREATE TABLE `{table}` (a STRING(2) NOT NULL, b BYTES(3), c STRING)")
    fields = {field.name: (field.field_type, field.max_length) for field in client.get_table(table).schema}
    assert fields == {"a": ("STRING", 2), "b": ("BYTES", 3), "c": ("STRING", None)}
    answers(client, f"INSERT `{table}` (a, b, c) VALUES ('éé', b'xyz', 'longer')")
    for wrong in (
        f"INSERT `{table}` (a) VALUES ('abc')",
        f"INSERT `{table}` (a, b) VALUES ('a', b'four')",
        f"UPDATE `{table}` SET a = 'abc' WHERE TRUE",
    ):
        with pytest.raises(exceptions.BadRequest, match="longer than the column takes"):
            answers(client, wrong)
    with pytest.raises(exceptions.BadRequest):
        load(client, table, b"abc,,\n", "CSV")
    assert answers(client, f"SELECT a, b, c FROM `{table}`") == [("éé", b"xyz", "longer")]


def test_a_length_in_a_table_of_a_query_is_refused(client, table):
    """By the column's name: it would not hold."""
    with pytest.raises(exceptions.MethodNotImplemented, match=r"A length of a .* in CREATE TABLE AS SELECT"):
        answers(client, f"CREATE TABLE `{table}` (a STRING(2)) AS SELECT 'a' AS a")


@pytest.mark.parametrize("kind", ["BIGNUMERIC(38, 22)", "BIGNUMERIC(40)", "STRUCT<a BIGNUMERIC(3)>"])
def test_digits_of_a_bignumeric_are_refused(client, table, kind):
    """It has 28 digits before the point and 10 behind it, whatever is asked for."""
    with pytest.raises(exceptions.MethodNotImplemented, match="A number of digits of a"):
        answers(client, f"CREATE TABLE `{table}` (a {kind})")


def test_a_backslash_of_like_makes_letters(client):
    """In a pattern that is written, a parameter, or made of columns."""
    given = bigquery.ScalarQueryParameter("p", "STRING", "a\\%b")
    patterns = "x LIKE @p, x LIKE r'a\\_b', x NOT LIKE CONCAT(y, r'\\%', 'b')"
    sql = f"SELECT x, {patterns} FROM UNNEST(['a%b', 'a_b', 'axb']) x, (SELECT 'a' y)"
    found = {row[0]: row[1:] for row in answers(client, sql, given)}
    assert found == {"a%b": (True, False, False), "a_b": (False, True, True), "axb": (False, False, True)}


def test_what_an_altered_table_says(client, table):
    """Its columns as they are now; a description stays."""
    schema = [bigquery.SchemaField("a", "STRING", "REQUIRED", description="First."), bigquery.SchemaField("b", "INT64")]
    client.create_table(bigquery.Table(table, schema=schema))
    for change in ("ADD COLUMN c DATE", "DROP COLUMN b", "ALTER COLUMN a DROP NOT NULL"):
        answers(client, f"ALTER TABLE `{table}` {change}")
    told = [(each.name, each.field_type, each.mode, each.description) for each in client.get_table(table).schema]
    assert told == [("a", "STRING", "NULLABLE", "First."), ("c", "DATE", "NULLABLE", None)]


def test_options_that_a_statement_sets(client, table):
    """https://cloud.google.com/bigquery/docs/reference/standard-sql/data-definition-language: of a table, of a column.

    NULL takes one away, those that are not named stay.
    """
    answers(client, f"CREATE TABLE `{table}` (a INT64, d DATE) PARTITION BY d")
    alter = f"ALTER TABLE `{table}` SET OPTIONS"
    answers(client, f"{alter} (description = 'Rows.', friendly_name = 'r', labels = [('a', 'b'), ('c', '')])")
    answers(client, f"{alter} (expiration_timestamp = TIMESTAMP_ADD(TIMESTAMP '2099-01-01', INTERVAL 1 DAY))")
    answers(client, f"{alter} (friendly_name = NULL, partition_expiration_days = 1.5)")
    answers(client, f"ALTER TABLE `{table}` ALTER COLUMN a SET OPTIONS (description = 'A number.')")
    told = client.get_table(table)
    assert (told.description, told.friendly_name, told.labels) == ("Rows.", None, {"a": "b", "c": ""})
    assert told.expires == datetime.datetime(2099, 1, 2, tzinfo=datetime.UTC)
    assert told.time_partitioning.expiration_ms == 36 * 3600 * 1000
    assert [field.description for field in told.schema] == ["A number.", None]
    answers(client, f"{alter} (expiration_timestamp = NULL, labels = NULL)")
    told = client.get_table(table)
    assert (told.description, told.expires, told.labels) == ("Rows.", None, {})
    answers(client, f"/* by a tool */ ALTER TABLE `{table}` ALTER COLUMN `d` SET OPTIONS (description = 'A day.')")
    assert [field.description for field in client.get_table(table).schema] == ["A number.", "A day."]
    client.query(f"{alter} (description = 'Other.')", job_config=bigquery.QueryJobConfig(dry_run=True))
    assert client.get_table(table).description == "Rows."
    job = client.query(f"/* by a tool */ {alter} ()")  # as dbt writes it
    job.result()
    assert (job.statement_type, job.query.endswith("()")) == ("ALTER_TABLE", True)
    assert client.get_table(table).description == "Rows."


def test_options_of_a_table_of_the_default_dataset_and_in_a_script(client, table):
    """A script may make the table first."""
    _, dataset, name = table.split(".")
    config = bigquery.QueryJobConfig(default_dataset=table.rpartition(".")[0])
    script = f"""
    CREATE TABLE {dataset}.{name} (a INT64);
    ALTER TABLE {dataset}.{name} SET OPTIONS (description = 'Rows.');
    """
    answers(client, script)
    assert client.get_table(table).description == "Rows."
    client.query(f"ALTER TABLE {name} SET OPTIONS (description = 'More.')", job_config=config).result()
    assert client.get_table(table).description == "More."


def test_options_that_cannot_be_set(client, table):
    """By name, and nothing of the statement is done."""
    answers(client, f"CREATE TABLE `{table}` (a INT64)")
    set_ = "SET OPTIONS (description = 'Rows.'"
    for sql, error, words in (
        (
            f"ALTER TABLE `{table}` {set_}, kms_key_name = 'k')",
            exceptions.MethodNotImplemented,
            r"OPTIONS\(kms_key_name",
        ),
        (f"ALTER TABLE `{table}` {set_}, partition_expiration_days = 1)", exceptions.BadRequest, "not partitioned"),
        (f"ALTER TABLE `{table}_gone` {set_})", exceptions.NotFound, "Not found: Table"),
        (f"ALTER TABLE `{table}` ALTER COLUMN b {set_})", exceptions.BadRequest, "Column not found: b"),
        (
            f"ALTER TABLE `{table}` ALTER COLUMN a SET OPTIONS (rounding_mode = 'x')",
            exceptions.MethodNotImplemented,
            "_mode",
        ),
    ):
        with pytest.raises(error, match=words):
            answers(client, sql)
    answers(client, f"ALTER TABLE IF EXISTS `{table}_gone` {set_})")
    assert client.get_table(table).description is None


def test_columns_behind_the_path_of_their_table(client, table):
    """As SQLAlchemy writes them, with and without the project; in changes too."""
    answers(client, f"CREATE TABLE `{table}` AS SELECT 1 AS a, STRUCT(2 AS b) AS s")
    _, dataset, name = table.split(".")
    for path in (f"`{dataset}.{name}`", f"{dataset}.{name}", f"`{table}`"):
        sql = f"SELECT {path}.`a`, {path}.s.b FROM {path} WHERE {path}.a = 1 ORDER BY {path}.a"
        assert answers(client, sql) == [(1, 2)]
    answers(client, f"UPDATE `{dataset}.{name}` SET a = 5 WHERE `{dataset}.{name}`.`a` = 1")
    assert answers(client, f"SELECT a FROM `{table}`") == [(5,)]


def test_numbers_of_parameters_with_an_exponent(client):
    """As Python writes a Decimal."""
    for kind in ("NUMERIC", "BIGNUMERIC"):
        given = bigquery.ScalarQueryParameter("n", kind, decimal.Decimal("4E+8"))
        assert answers(client, "SELECT @n, @n = 400000000", given) == [(decimal.Decimal(400000000), True)]


def test_names_of_parameters_in_any_letters(client):
    """In backticks."""
    assert answers(client, "SELECT @`好`", bigquery.ScalarQueryParameter("好", "INT64", 7)) == [(7,)]


def test_returning_is_no_word_of_dml(client, table):
    """Nothing is written where a statement has it."""
    answers(client, f"CREATE TABLE `{table}` (a INT64)")
    with pytest.raises(exceptions.BadRequest, match="RETURNING"):
        answers(client, f"INSERT `{table}` (a) VALUES (1) RETURNING a")
    assert answers(client, f"SELECT a FROM `{table}`") == []
