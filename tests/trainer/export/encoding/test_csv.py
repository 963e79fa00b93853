"""CSV shards: what Arrow reads back is what went in, and the same rows give the same bytes."""

from __future__ import annotations

import datetime
import decimal
import io
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

from tests.support.refusals import refuses
from trainer.contract.documents import Column, ExportRequest, ImageColumn, ShardLayout
from trainer.errors import DataError, RequestError
from trainer.export.encoding.csv import CsvFormat

MICRO = datetime.timedelta(microseconds=1)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
TEXT = st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8)
INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False)


def make_format(columns: dict[str, tuple[str, str]], **changes: Any) -> CsvFormat:
    """Make the format of a request with these columns: name to type and mode."""
    request = ExportRequest(
        model="parcels",
        run_key="run",
        table="p.d.t",
        columns=tuple(Column(name=name, type=type_, mode=mode) for name, (type_, mode) in columns.items()),
        schema_hash="0123456789abcdef",
        compression="NONE",
        spans_uri="/spans",
        spans=(),
        test_start="2024-01-01",
        manifest_uri="/manifest.json",
        format="csv",
        **changes,
    )
    return CsvFormat(request, ".csv")


def written(batch: pa.RecordBatch) -> bytes:
    """Write a whole file."""
    made = make_format(dict.fromkeys(batch.schema.names, ("STRING", "NULLABLE")))
    return b"".join([made.head(), *made.encode(batch)])


@settings(deadline=None)
@given(st.lists(st.tuples(st.none() | TEXT, st.none() | INTS, st.none() | FLOATS), max_size=40))
def test_what_is_read_back_is_what_was_written(rows: list[tuple[str | None, int | None, float | None]]) -> None:
    """Text and its absence, every whole number, every double to its last bit."""
    schema = pa.schema({"text": pa.string(), "int ü": pa.int64(), "float": pa.float64()})
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    batch = pa.record_batch(
        [pa.array(list(values), type_) for values, type_ in zip(columns, schema.types, strict=True)], schema=schema
    )
    options = csv.ConvertOptions(
        column_types=schema, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
    )
    found = csv.read_csv(io.BytesIO(written(batch)), convert_options=options)
    assert found.equals(pa.Table.from_batches([batch]))


def test_values_are_those_of_records() -> None:
    moment = datetime.datetime(2024, 2, 29, 12, 30, 0, 7, tzinfo=datetime.UTC)
    batch = pa.record_batch(
        {
            "flag": pa.array([True, False, None]),
            "day": pa.array([moment.date(), datetime.date(1969, 12, 31), None]),
            "moment": pa.array([moment, EPOCH - MICRO, None], pa.timestamp("us", tz="UTC")),
            "time": pa.array([moment.time(), datetime.time(0), None], pa.time64("us")),
            "number": pa.array([decimal.Decimal("1.5"), decimal.Decimal(-3), None], pa.decimal128(38, 9)),
            "float": pa.array([float("nan"), float("-inf"), 0.1]),
        }
    )
    days, micros = (moment - EPOCH).days, (moment - EPOCH) // MICRO
    assert written(batch).decode().splitlines() == [
        '"flag","day","moment","time","number","float"',
        f"1,{days},{micros},{12 * 3600_000_000 + 30 * 60_000_000 + 7},1.500000000,nan",
        "0,-1,-1,0,-3.000000000,-inf",
        ",,,,,0.1",
    ]


def test_lines_do_not_depend_on_how_rows_are_cut() -> None:
    batch = pa.record_batch({"x": pa.array(range(50_000)), "text": pa.array([f'row "{n}"' for n in range(50_000)])})
    made = make_format({"x": ("INTEGER", "NULLABLE"), "text": ("STRING", "NULLABLE")})
    whole = b"".join(made.encode(batch))
    parts = [batch.slice(start, 777) for start in range(0, 50_000, 777)]
    assert b"".join(b"".join(made.encode(part)) for part in parts) == whole
    assert b"".join(made.row_bytes(batch)) == whole
    assert len(made.row_bytes(batch)) == 50_000


def test_a_shard_without_rows_has_a_header() -> None:
    made = make_format({"b": ("INTEGER", "NULLABLE"), 'a "quoted", name': ("STRING", "NULLABLE")})
    assert made.head() == b'"b","a ""quoted"", name"\n'


@pytest.mark.parametrize("text", ["two\nlines", "carriage\rreturn"])
def test_a_line_break_is_refused_with_its_column(text: str) -> None:
    batch = pa.record_batch({"fine": pa.array(["x", None]), "note": pa.array([None, text])})
    with pytest.raises(DataError, match="column note: a line break"):
        written(batch)


def test_what_has_no_form_is_refused_with_all_names() -> None:
    columns = {"x": ("INTEGER", "NULLABLE"), "list": ("FLOAT", "REPEATED"), "blob": ("BYTES", "NULLABLE")}
    with refuses(RequestError, found=("list (REPEATED FLOAT)", "blob (NULLABLE BYTES)")):
        make_format(columns)


@pytest.mark.parametrize(
    "changes",
    [
        {"layout": ShardLayout(numeric=("x",))},
        {"layout": ShardLayout(rows_per_record=8)},
        {"images": (ImageColumn(name="x", height=8, width=8, channels=1, encoding="raw"),)},
    ],
    ids=["vector", "grouped", "images"],
)
def test_options_of_records_are_refused(changes: dict[str, Any]) -> None:
    with refuses(RequestError, found="csv"):
        make_format({"x": ("INTEGER", "NULLABLE")}, **changes)
