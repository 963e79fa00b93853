"""What a training asks the run table for: the split's days, its share, and columns that the client can read."""

from __future__ import annotations

import dataclasses

import pyarrow as pa
import pytest
import tensorflow as tf

from tests.support.refusals import refuses
from trainer.contract.documents import Column, Manifest, ManifestSplit
from trainer.errors import DataError, RequestError
from trainer.input.arrow import ArrowColumns
from trainer.input.images import ImageFeature
from trainer.input.io_columns import IoColumns
from trainer.input.source import Share
from trainer.input.tables import scalar_columns, span_restriction

INTEGER = tf.io.FixedLenFeature([], tf.int64, default_value=-1)
FLOAT = tf.io.FixedLenFeature([], tf.float32, default_value=float("nan"))


@pytest.fixture
def manifest(exported) -> Manifest:
    """Of a run whose training splits are in the table only: four days, then two test days."""
    found = exported.manifest()
    splits = {
        name: ManifestSplit(rows=split.rows, files=split.files if name == "test" else ())
        for name, split in found.splits.items()
    }
    schema = (
        *found.columns,
        Column(name="price", type="NUMERIC", mode="NULLABLE"),
        Column(name="stops", type="INTEGER", mode="REPEATED"),
        Column(name="place.city", type="STRING", mode="NULLABLE"),
        Column(name="picture", type="BYTES", mode="NULLABLE"),
        Column(name="place", type="STRUCT", mode="NULLABLE"),
    )
    return dataclasses.replace(found, splits=splits, columns=schema)


def test_a_split_is_its_part_of_the_days_before_the_test(manifest: Manifest) -> None:
    days = ", ".join(f"DATE '2024-01-0{day}'" for day in (1, 2, 3, 4))
    assert span_restriction(manifest, "train", Share()) == f"part = 'train' AND span IN ({days})"


def test_quarantined_days_are_left_out(manifest: Manifest) -> None:
    without = dataclasses.replace(manifest, quarantined=("2024-01-02",))
    assert "2024-01-02" not in span_restriction(without, "validation", Share())


def test_a_share_is_cut_by_the_rows_hash(manifest: Manifest) -> None:
    shared = span_restriction(manifest, "train", Share(index=1, count=3))
    assert shared.endswith(" AND MOD(MOD(row_hash, 3) + 3, 3) = 1")


def test_a_split_without_days_is_refused(manifest: Manifest) -> None:
    with refuses(DataError, found=("split train", "no days")):
        span_restriction(dataclasses.replace(manifest, spans=()), "train", Share())
    odd = dataclasses.replace(manifest.spans[0], span="not a day")
    with pytest.raises(DataError, match="'not a day'"):
        span_restriction(dataclasses.replace(manifest, spans=(odd,)), "train", Share())


@pytest.mark.parametrize(
    ("name", "feature", "words"),
    [
        pytest.param("place", FLOAT, "is STRUCT in the run table", id="whole-struct"),
        pytest.param("gone", FLOAT, "is not in the run table", id="missing"),
        pytest.param("stops", FLOAT, "is REPEATED", id="array"),
        pytest.param("place.city", FLOAT, "is a field of a STRUCT", id="struct"),
        pytest.param("picture", ImageFeature(8, 8, 1), "is an image, which the export resizes", id="image"),
    ],
)
def test_columns_that_cannot_be_read_are_refused_by_name(manifest, name: str, feature, words: str) -> None:
    with pytest.raises(RequestError, match=rf"column '{name}': {words}.*training\.input to tfrecord"):
        scalar_columns({name: feature}, manifest)


def test_tensorflow_io_reads_fewer_types(manifest) -> None:
    assert scalar_columns({"price": FLOAT}, manifest)["price"].type == "NUMERIC"
    with refuses(RequestError, where="column 'price'", found="NUMERIC"):
        IoColumns({"price": FLOAT}, manifest)


@pytest.mark.parametrize("columns", [ArrowColumns, IoColumns])
def test_another_type_in_the_table_is_named(manifest: Manifest, columns: type) -> None:
    def require(schema: pa.Schema) -> None:
        wanted = columns({"distance": INTEGER, "weight": FLOAT}, manifest)
        given = (schema, "p.d.t") if columns is ArrowColumns else (schema.serialize().to_pybytes(),)
        wanted.require_types(*given)

    require(pa.schema([("distance", pa.int64()), ("weight", pa.float64())]))
    with refuses(DataError, where="column 'distance'", found="string", expected="int64"):
        require(pa.schema([("distance", pa.string()), ("weight", pa.float64())]))
