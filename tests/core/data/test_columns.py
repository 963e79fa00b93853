"""The query's own columns: flattened, named, and refused where TFRecords cannot hold them."""

from __future__ import annotations

from pathlib import Path

import pytest

from retraining.core import documents
from retraining.core.data import columns
from retraining.core.errors import DataError
from tests.support.refusals import refuses
from tests.support.small_model import SCHEMA, make_spec

REPOSITORY = Path(__file__).parents[3]


def test_the_schema_is_the_querys_own_with_the_apis_type_names():
    own = columns.own_columns(SCHEMA)
    assert [column.name for column in own] == ["id", "at", "carrier", "distance", "late"]
    assert own[3] == documents.Column(name="distance", type="INTEGER", mode="NULLABLE")


def test_a_struct_becomes_its_leaves():
    schema = [
        {
            "name": "address",
            "type": "RECORD",
            "mode": "NULLABLE",
            "fields": [
                {"name": "city", "type": "STRING", "mode": "NULLABLE", "fields": []},
                {"name": "geo", "type": "STRUCT", "fields": [{"name": "lat", "type": "FLOAT64", "mode": "REQUIRED"}]},
            ],
        },
        {
            "name": "stops",
            "type": "RECORD",
            "mode": "REPEATED",
            "fields": [{"name": "minute", "type": "INT64", "mode": "NULLABLE"}],
        },
    ]
    assert [(column.name, column.type, column.mode) for column in columns.own_columns(schema)] == [
        ("address.city", "STRING", "NULLABLE"),
        ("address.geo.lat", "FLOAT", "REQUIRED"),
        ("stops.minute", "INTEGER", "REPEATED"),
    ]


def test_an_array_inside_an_array_is_refused():
    inner = {"name": "gates", "type": "INT64", "mode": "REPEATED"}
    with refuses(DataError, where="a/b.sql", found="stops.gates", way_out="UNNEST"):
        columns.own_columns([{"name": "stops", "type": "RECORD", "mode": "REPEATED", "fields": [inner]}], "a/b.sql")


@pytest.mark.parametrize("name", ["split", "Span", "shards"])
def test_a_column_the_run_table_needs_itself_is_refused(name):
    with pytest.raises(DataError, match="Rename it with AS"):
        columns.own_columns([*SCHEMA, {"name": name, "type": "STRING"}])


def test_leaves_with_one_name_are_refused():
    struct = {"name": "a", "type": "RECORD", "fields": [{"name": "b", "type": "INT64"}, {"name": "b", "type": "INT64"}]}
    with pytest.raises(DataError, match=r"column a\.b stands twice"):
        columns.own_columns([struct])


def test_letters_beyond_ascii_are_names():
    own = columns.own_columns([{"name": "größe", "type": "FLOAT64"}, {"name": "価格", "type": "NUMERIC"}])
    assert [column.name for column in own] == ["größe", "価格"]


def test_types_without_mapping_are_all_named_with_their_ways_out():
    schema = [
        {"name": "took", "type": "INTERVAL"},
        {"name": "valid", "type": "RANGE"},
        {"name": "id", "type": "STRING"},
    ]
    with refuses(DataError, found="took (INTERVAL), valid (RANGE)", way_out=("CAST(x AS STRING)", "RANGE_START")):
        columns.own_columns(schema)


def test_ten_thousand_columns_are_refused_with_the_limit():
    schema = [{"name": f"c{number}", "type": "FLOAT64"} for number in range(9_997)]
    assert len(columns.own_columns(schema[:-1])) == 9_996
    with refuses(DataError, found="9,997", expected="at most 9,996", way_out="ARRAY<FLOAT64>"):
        columns.own_columns(schema)


def test_the_schema_hash_follows_names_types_modes_and_order_and_what_the_export_makes_of_them():
    spec = make_spec()
    own = columns.own_columns(SCHEMA)
    hashed = columns.schema_hash(own, spec)
    assert len(hashed) == 16
    assert hashed == columns.schema_hash(list(own), spec)
    assert hashed != columns.schema_hash(own[::-1], spec)
    assert hashed != columns.schema_hash(own[:-1], spec)
    packed = make_spec(data={**spec.data.model_dump(mode="json"), "layout": {"numeric": "vector"}})
    assert hashed != columns.schema_hash(own, packed)
