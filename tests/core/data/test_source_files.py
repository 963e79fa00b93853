"""A user's files: whether they have the columns of the spec, and the job that loads them."""

from __future__ import annotations

import bz2
import gzip
import lzma
from datetime import UTC, datetime

import pytest
from pydantic import ValidationError

from retraining.core.data.source_files import (
    HEADER_BYTES,
    Load,
    column_problem,
    detecting_load,
    parse_header,
    require_columns,
    require_files,
    require_unchanged,
    with_files,
)
from retraining.core.data.span_store import StoredObject
from retraining.core.documents.snapshot import Column
from retraining.core.errors import DataError, JobError
from retraining.core.spec.source_files import SourceFiles
from tests.support.refusals import refuses
from tests.support.small_model import make_spec


def make_files(**values: object) -> SourceFiles:
    """Two columns in CSV files."""
    columns = [{"name": "id", "type": "STRING"}, {"name": "price", "type": "FLOAT64"}]
    return SourceFiles.model_validate({"uris": "gs://shop/*.csv", "format": "csv", "columns": columns, **values})


def stored(uri: str, generation: int = 1) -> StoredObject:
    """A file as a listing has it."""
    return StoredObject(uri=uri, bytes=10, generation=generation, created=datetime(2013, 11, 20, tzinfo=UTC))


@pytest.mark.parametrize(
    ("data", "delimiter", "header"),
    [
        (b"id,price\n1,2\n", ",", ["id", "price"]),
        (b"\xef\xbb\xbfid,price\r\n", ",", ["id", "price"]),
        (b'"id","unit\nprice"\n', ",", ["id", "unit\nprice"]),
        (b"id;price", ";", ["id", "price"]),
        (gzip.compress(b"id,price\n" + b"1,2\n" * 1_000_000)[:5000], ",", ["id", "price"]),
        (b"", ",", None),
        (b"\n", ",", None),
        (b"x" * HEADER_BYTES, ",", None),
        (b"\x1f\x8bno gzip at all", ",", None),
        (bz2.compress(b"id,price\n1,2\n"), ",", None),
        (lzma.compress(b"id,price\n1,2\n"), ",", None),
        ("id,price\n1,2\n".encode("utf-16"), ",", None),
    ],
    ids=[
        "plain",
        "bom",
        "quoted",
        "semicolon",
        "part of gzip",
        "empty",
        "blank",
        "endless",
        "broken",
        "bz2",
        "xz",
        "UTF-16",
    ],
)
def test_a_header_is_read_from_a_files_beginning(data: bytes, delimiter: str, header: list[str] | None) -> None:
    assert parse_header(data, delimiter) == header


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (["id", "price"], None),
        (["ID", "Price"], None),
        (["price", "id"], "columns in another order: price, id"),
        (["id"], "no column 'price'"),
        (["id", "price", "colour"], "a new column 'colour'"),
        (["id", "cost"], "no column 'price' and a new column 'cost'"),
        (["id", "price", "price"], "a column that stands twice"),
    ],
)
def test_columns_are_compared_by_name_and_order(found: list[str], problem: str | None) -> None:
    assert column_problem(found, ["id", "price"]) == problem


def test_the_order_means_nothing_where_columns_have_names() -> None:
    assert column_problem(["price", "id"], ["id", "price"], by_name=True) is None


def test_the_first_wrong_file_is_explained_and_the_others_named() -> None:
    """An empty file has no header either."""
    objects = [stored(f"gs://shop/{name}.csv") for name in "abc"]
    parts = {"gs://shop/a.csv": ["id", "price"], "gs://shop/b.csv": ["price", "id"]}
    message = r"data.files, gs://shop/b.csv: columns in another order: price, id \(and 1 more files: gs://shop/c.csv\)"
    with pytest.raises(DataError, match=message):
        require_columns(make_files(), objects, parts)
    with pytest.raises(DataError, match=r"c\.csv: no header line"):
        require_columns(make_files(), objects[2:], parts)
    with pytest.raises(DataError, match=r"c\.csv: no Parquet file"):
        require_columns(make_files(format="parquet"), objects[2:], parts)


def test_an_address_without_a_file_is_refused() -> None:
    with refuses(DataError, found="gs://shop/b.csv"):
        require_files({"gs://shop/*.csv": [stored("gs://shop/a.csv")], "gs://shop/b.csv": []})


def test_files_written_meanwhile_are_loaded_again() -> None:
    """Each counts once, whichever addresses name it."""
    before = require_files({"gs://shop/*": [stored("gs://shop/a")], "gs://shop/a": [stored("gs://shop/a")]})
    assert (before.count, before.bytes) == (1, 10)
    require_unchanged(before, before)
    with refuses(JobError, found="written while"):
        require_unchanged(before, require_files({"gs://shop/*": [stored("gs://shop/a", 2)]}))


def test_the_load_names_columns_and_skips_headers() -> None:
    """In BigQuery's own words."""
    api = Load(table="my-project.shop.files_x", files=make_files(delimiter=";", null_text="NA")).to_api()
    assert api["schema"]["fields"][1] == {"name": "price", "type": "FLOAT64", "mode": "NULLABLE"}
    assert {api[name] for name in ("sourceFormat", "fieldDelimiter", "nullMarker")} == {"CSV", ";", "NA"}
    assert (api["skipLeadingRows"], api["allowQuotedNewlines"]) == (1, True)
    columns = [{"name": "prices", "type": "ARRAY<FLOAT64>"}]
    listed = Load(table="my-project.shop.files_x", files=make_files(format="parquet", columns=columns)).to_api()
    assert listed["schema"]["fields"] == [{"name": "prices", "type": "FLOAT64", "mode": "REPEATED"}]
    assert listed["parquetOptions"] == {"enableListInference": True}
    assert "skipLeadingRows" not in listed


@pytest.mark.parametrize(
    "values",
    [
        {"format": "tfrecord"},
        {"uris": "gs://shop/*.tfrecord"},
        {"uris": "gs://shop/*.tfrecords.gz", "format": "parquet"},
        {"uris": ["gs://shop/*.parquet", "gs://shop/train.tfrecord-00000-of-00010"], "format": "parquet"},
    ],
    ids=["format", "ending", "gzip", "part"],
)
def test_tfrecord_files_are_refused_with_the_command_that_helps(values: dict[str, object]) -> None:
    """And what it makes of them is taken."""
    with pytest.raises(ValidationError, match="make tfrecords-to-parquet"):
        make_files(**values)
    assert make_files(uris="gs://shop/train.tfrecord-00000-of-00010.parquet", format="parquet")


def test_what_bigquery_finds_in_the_first_file_is_pinned_for_all() -> None:
    """In the spec's words; of an ending that says the format, gzipped or not."""
    found = [stored("gs://shop/a.tsv.gz"), stored("gs://shop/b.tsv.gz")]
    load = detecting_load("gs://shop/*.tsv.gz", found, "my-project.shop.look")
    api = load.to_api()
    assert (api["sourceUris"], api["autodetect"], api["fieldDelimiter"]) == (["gs://shop/a.tsv.gz"], True, "\t")
    columns = [Column(name="id", type="INTEGER", mode="NULLABLE"), Column(name="late", type="BOOLEAN", mode="NULLABLE")]
    files = load.pinned(columns).files
    assert (files.uris, files.format, files.delimiter) == (("gs://shop/*.tsv.gz",), "csv", "\t")
    assert [(column.name, column.type) for column in files.columns] == [("id", "INT64"), ("late", "BOOL")]
    tags = Column(name="tags", type="FLOAT", mode="REPEATED")
    listed = detecting_load("gs://shop/*.parquet", found, "my-project.shop.look").pinned([tags]).files
    assert (listed.format, listed.columns[0].type) == ("parquet", "ARRAY<FLOAT64>")


@pytest.mark.parametrize(
    "column", [Column(name="by", type="RECORD", mode="NULLABLE"), Column(name="a b", type="STRING", mode="NULLABLE")]
)
def test_columns_that_no_spec_can_have_are_not_pinned(column: Column) -> None:
    load = detecting_load("gs://shop/*.jsonl", [stored("gs://shop/a.jsonl")], "my-project.shop.look")
    with pytest.raises(DataError, match=rf"FILES, gs://shop/a\.jsonl: '({column.type}|{column.name})'"):
        load.pinned([column])


def test_a_query_without_files_stays_as_it_is() -> None:
    assert with_files("SELECT 1;", make_spec().data, None) == "SELECT 1"
