"""The export's layouts come back as the same columns: packed numbers, several rows per record, images, arrays."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from tests.support.refusals import refuses
from trainer.contract.documents import ImageColumn, ShardLayout
from trainer.errors import DataError, RequestError
from trainer.input.files import Shard, Shards
from trainer.input.images import ImageFeature
from trainer.input.records import NUMERIC, ROWS, RecordParser
from trainer.input.source import Share
from trainer.input.splits import FileSplit
from trainer.input.tfrecord import Records

LEAST = np.iinfo(np.int64).min
NAN = float("nan")
SPEC = {
    "weight": tf.io.FixedLenFeature([], tf.float32, default_value=NAN),
    "distance": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
    "carrier": tf.io.FixedLenFeature([], tf.string, default_value=""),
    "late": tf.io.FixedLenFeature([], tf.int64, default_value=LEAST),
}
ROWS_OF = [
    {"weight": 1.5, "distance": 7, "carrier": b"AA", "late": 1},
    {"weight": None, "distance": None, "carrier": None, "late": 0},
    {"weight": -3.25, "distance": -9, "carrier": "Ünter".encode(), "late": 1},
    {"weight": 0.0, "distance": 0, "carrier": b"DL", "late": 0},
    {"weight": float("inf"), "distance": 1 << 20, "carrier": b"UA", "late": 1},
]
NULLS = {"weight": NAN, "distance": LEAST, "carrier": b"", "late": LEAST}
LAYOUTS = {
    "columns": ShardLayout(),
    "vector": ShardLayout(numeric=("distance", "weight")),
    "pre-batched": ShardLayout(rows_per_record=2),
    "vector, pre-batched": ShardLayout(numeric=("distance", "weight"), rows_per_record=2),
    "one record": ShardLayout(numeric=("weight",), rows_per_record=100),
}


def feature(values: list) -> tf.train.Feature:
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def encode(rows: list[dict], layout: ShardLayout) -> list[bytes]:
    """Write rows as the export documents its layouts, one value at a time."""
    size = layout.rows_per_record
    records = []
    for start in range(0, len(rows), size):
        real = rows[start : start + size]
        padded = [*real, *[dict.fromkeys(rows[0])] * (size - len(real))]
        features = {}
        for name in rows[0]:
            if name not in layout.numeric:
                values = [NULLS[name] if row[name] is None else row[name] for row in padded]
                if size > 1 or real[0][name] is not None:
                    features[name] = feature(values)
        if layout.numeric:
            packed = [NAN if row[name] is None else float(row[name]) for row in padded for name in layout.numeric]
            features[NUMERIC] = feature(packed)
        if size > 1:
            features[ROWS] = feature([len(real)])
        records.append(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    return records


def write(path: Path, records: list[bytes]) -> str:
    with tf.io.TFRecordWriter(str(path)) as writer:
        for record in records:
            writer.write(record)
    return str(path)


def opened(path: str, rows: int, layout: ShardLayout, within: Share | None = None) -> FileSplit:
    shards = Shards(files=(Shard(uri=path, path=path, rows=rows),), compression="", within=within)
    return FileSplit("train", shards, Records(layout))


def columns_of(split: FileSplit, spec) -> dict[str, np.ndarray]:
    with split.reading(spec):
        batches = [{name: values.numpy() for name, values in batch.items()} for batch in split.batches(spec)]
    return {name: np.concatenate([batch[name] for batch in batches]) for name in spec}


def assert_rows(found: dict[str, np.ndarray], rows: list[dict]) -> None:
    for name in SPEC:
        expected = [NULLS[name] if row[name] is None else row[name] for row in rows]
        np.testing.assert_array_equal(found[name], np.array(expected, found[name].dtype))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_layout_gives_the_same_columns(tmp_path: Path, layout: ShardLayout) -> None:
    path = write(tmp_path / "a", encode(ROWS_OF, layout))
    split = opened(path, len(ROWS_OF), layout)
    found = columns_of(split, SPEC)
    assert found["distance"].dtype == np.int64
    assert_rows(found, ROWS_OF)
    split.require_rows(len(found["late"]))


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_shares_of_one_file_are_whole_rows(tmp_path: Path, layout: ShardLayout) -> None:
    path = write(tmp_path / "a", encode(ROWS_OF, layout))
    parts = [opened(path, len(ROWS_OF), layout, Share(index=index, count=2)) for index in range(2)]
    found = [columns_of(part, SPEC)["late"] if part.rows else [] for part in parts]
    assert [len(part) for part in found] == [part.rows for part in parts]
    assert sum(part.rows for part in parts) == len(ROWS_OF)


def test_the_packed_matrix_can_be_asked_for_as_it_is(tmp_path: Path) -> None:
    layout = ShardLayout(numeric=("distance", "weight"), rows_per_record=2)
    path = write(tmp_path / "a", encode(ROWS_OF, layout))
    spec = {NUMERIC: tf.io.FixedLenFeature([2], tf.float32), "late": SPEC["late"]}
    found = columns_of(opened(path, len(ROWS_OF), layout), spec)
    np.testing.assert_array_equal(found[NUMERIC][0], [7, 1.5])
    assert found[NUMERIC].shape == (5, 2)
    assert np.isnan(found[NUMERIC][1]).all()


@pytest.mark.parametrize("layout", [LAYOUTS["vector"], LAYOUTS["pre-batched"]], ids=["vector", "pre-batched"])
def test_a_columns_own_default_stands_for_what_is_missing(tmp_path: Path, layout: ShardLayout) -> None:
    path = write(tmp_path / "a", encode(ROWS_OF, layout))
    spec = {
        "weight": tf.io.FixedLenFeature([], tf.float32, default_value=-1.0),
        "distance": tf.io.FixedLenFeature([], tf.int64, default_value=-1),
    }
    found = columns_of(opened(path, len(ROWS_OF), layout), spec)
    assert (found["weight"][1], found["distance"][1]) == (-1, -1)


def test_files_of_another_layout_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "a", encode(ROWS_OF, ShardLayout()))
    split = opened(path, len(ROWS_OF), LAYOUTS["vector, pre-batched"])
    with refuses(DataError, where="column '_numeric'", found="absent", expected="float_list"):
        columns_of(split, SPEC)


def test_the_rows_of_a_prebatched_file_are_counted(tmp_path: Path) -> None:
    layout = LAYOUTS["pre-batched"]
    path = write(tmp_path / "a", encode(ROWS_OF, layout))
    split = opened(path, len(ROWS_OF) + 2, layout)
    with refuses(DataError, found="5 examples", expected="7"):
        split.require_rows(len(columns_of(split, SPEC)["late"]))


# --- arrays

ARRAYS = [[1, 2, 3], [], [4]]


def array_file(tmp_path: Path) -> FileSplit:
    records = []
    for values in ARRAYS:
        numbers = tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        records.append(tf.train.Example(features=tf.train.Features(feature={"stops": numbers})).SerializeToString())
    return opened(write(tmp_path / "a", records), len(ARRAYS), ShardLayout())


def test_an_array_comes_ragged_or_padded_as_asked(tmp_path: Path) -> None:
    split = array_file(tmp_path)
    (ragged,) = split.batches({"stops": tf.io.RaggedFeature(tf.int64)})
    assert ragged["stops"].to_list() == ARRAYS
    padded_spec = {"stops": tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True, default_value=-1)}
    (padded,) = split.batches(padded_spec)
    assert padded["stops"].numpy().tolist() == [[1, 2, 3], [-1, -1, -1], [4, -1, -1]]


def test_an_array_of_another_length_than_asked_is_named(tmp_path: Path) -> None:
    spec = {"stops": tf.io.FixedLenFeature([3], tf.int64)}
    with refuses(DataError, where="'stops'", found="0 values", expected="3 values"):
        columns_of(array_file(tmp_path), spec)


def test_arrays_in_records_of_several_rows_are_refused() -> None:
    with pytest.raises(RequestError, match="column 'stops': is REPEATED"):
        RecordParser({"stops": tf.io.RaggedFeature(tf.int64)}, ShardLayout(rows_per_record=2))


# --- images


def pixels(channels: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (3, 4, 5, channels), np.uint8)


def stored_image(image: np.ndarray, encoding: str) -> bytes:
    if encoding == "raw":
        return image.tobytes()
    content = io.BytesIO()
    Image.fromarray(image if image.shape[2] == 3 else image[:, :, 0]).save(content, encoding)
    return content.getvalue()


def image_file(tmp_path: Path, contents: list[bytes | None], layout: ShardLayout) -> FileSplit:
    NULLS["picture"] = b""
    rows = [{"picture": content} for content in contents]
    return opened(write(tmp_path / "a", encode(rows, layout)), len(contents), layout)


@pytest.mark.parametrize("layout", [LAYOUTS["columns"], LAYOUTS["pre-batched"]], ids=["columns", "pre-batched"])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("encoding", ["raw", "png"])
def test_an_image_comes_back_as_its_pixels(tmp_path: Path, encoding: str, channels: int, layout: ShardLayout) -> None:
    images = pixels(channels)
    asked = ImageFeature.of(ImageColumn(name="picture", height=4, width=5, channels=channels, encoding=encoding))
    split = image_file(tmp_path, [*(stored_image(image, encoding) for image in images), None], layout)
    found = columns_of(split, {"picture": asked})["picture"]
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found[:3], images)
    assert found.shape == (4, 4, 5, channels)
    assert not found[3].any()  # a missing one


def test_a_jpeg_comes_back_nearly() -> None:
    image = np.full((1, 8, 8, 3), 200, np.uint8)
    found = ImageFeature(8, 8, 3, "jpeg").decode(tf.constant([stored_image(image[0], "jpeg")])).numpy()
    assert np.abs(found.astype(int) - image).max() <= 3


def test_pixels_as_floats_are_between_0_and_1() -> None:
    feature = ImageFeature(1, 2, 1, dtype=tf.float32)
    assert feature.decode(tf.constant([b"\x00\xff"])).numpy().reshape(-1).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("encoding", ["raw", "png"])
def test_an_image_of_another_size_is_an_error(tmp_path: Path, encoding: str) -> None:
    asked = {"picture": ImageFeature(4, 4, 3, encoding)}
    split = image_file(tmp_path, [stored_image(pixels(3)[0], encoding)], ShardLayout())
    with refuses(DataError, where="split train", found="cannot be read"):
        columns_of(split, asked)
