"""Shards into tensors: proven, whole, shared by replicas, and named when they are wrong."""

from __future__ import annotations

import dataclasses
import gzip
import shutil
import struct
from pathlib import Path

import google_crc32c
import pytest
import tensorflow as tf

from tests.support.refusals import refuses
from trainer.contract.documents import ShardLayout
from trainer.errors import DataError
from trainer.input import open_source
from trainer.input.files import Shard, Shards, fetch
from trainer.input.pipeline import Reading
from trainer.input.source import Share
from trainer.input.splits import FileSplit
from trainer.input.tfrecord import Records
from trainer.storage import Storage

SPEC = {
    "distance": tf.io.FixedLenFeature([], tf.int64, default_value=-1),
    "parcel_id": tf.io.FixedLenFeature([], tf.string),
}


@pytest.fixture
def split(exported, tmp_path: Path):
    """The training split, its files copied so that a test may break them."""
    found = exported.manifest().splits["train"]
    files = []
    for index, file in enumerate(found.files):
        path = tmp_path / f"{index}.tfrecord.gz"
        shutil.copy(file.uri, path)
        files.append(dataclasses.replace(file, uri=str(path)))
    return dataclasses.replace(found, files=tuple(files))


def fetched(split, tmp_path: Path, share: Share | None = None) -> Shards:
    return fetch(split, "GZIP", Storage(), tmp_path / "copies", share or Share())


def ids(dataset: tf.data.Dataset) -> list[bytes]:
    return [value for batch in dataset for value in batch["parcel_id"].numpy()]


def test_every_example_is_read_once(split, tmp_path: Path) -> None:
    opened = FileSplit("train", fetched(split, tmp_path), Records())
    found = ids(opened.batches(SPEC))
    assert len(found) == len(set(found)) == opened.rows == split.rows
    assert found == ids(opened.batches(SPEC))
    assert found != ids(opened.batches(SPEC, 3))
    assert ids(opened.batches(SPEC, 3)) == ids(opened.batches(SPEC, 3))
    assert sorted(found) == sorted(ids(opened.batches(SPEC, 3)))


def test_the_order_does_not_depend_on_threads_or_autotune(split, tmp_path: Path) -> None:
    shards = fetched(split, tmp_path)
    orders = [
        ids(FileSplit("train", shards, Records(), reading).batches(SPEC, 3))
        for reading in (Reading(threads=2), Reading(threads=7), Reading(autotune=True))
    ]
    assert orders[0] == orders[1] == orders[2]


@pytest.mark.parametrize("count", [2, 3, 50], ids=["two", "three", "more than files"])
def test_shares_of_replicas_are_disjoint_and_whole(split, tmp_path: Path, count: int) -> None:
    splits = [
        FileSplit("train", fetched(split, tmp_path, Share(index=index, count=count)), Records())
        for index in range(count)
    ]
    found = [ids(part.batches(SPEC)) for part in splits]
    assert [len(part) for part in found] == [part.rows for part in splits]
    together = [value for part in found for value in part]
    assert len(together) == len(set(together)) == split.rows


def test_files_belong_to_replicas_by_their_number(split, tmp_path: Path) -> None:
    shards = fetched(split, tmp_path, Share(index=1, count=3))
    assert [file.uri for file in shards.files] == [file.uri for file in split.files[1::3]]
    assert shards.within is None


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        pytest.param(lambda path: path.unlink(), "is missing", id="missing"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-10]), r"\d+ bytes", id="cut"),
        pytest.param(lambda path: path.write_bytes(flipped(path.read_bytes())), "the file is corrupt", id="flipped"),
    ],
)
def test_a_shard_that_is_not_the_manifests_is_named(split, tmp_path: Path, harm, words: str) -> None:
    path = Path(split.files[2].uri)
    harm(path)
    with pytest.raises(DataError, match=words) as caught:
        fetched(split, tmp_path)
    assert str(path) in str(caught.value)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


class Bucket(Storage):
    """Knows sizes; nothing can be downloaded from it."""

    def __init__(self, sizes: dict[str, int]) -> None:
        super().__init__()
        self._sizes = sizes

    def size(self, uri: str) -> int | None:
        """Return it."""
        return self._sizes.get(uri)

    def download(self, uri: str, path: Path) -> bool:
        """Refuse."""
        raise AssertionError(f"{uri} was copied to {path}")


def on_storage(split):
    files = [dataclasses.replace(file, uri=f"gs://b/{index}") for index, file in enumerate(split.files)]
    return dataclasses.replace(split, files=tuple(files)), {file.uri: file.bytes for file in files}


def test_files_that_other_machines_read_too_stay_where_they_are(split, tmp_path: Path) -> None:
    """Workers of a parameter-server training have another disk than the chief, who makes their pipelines."""
    split, sizes = on_storage(split)
    shards = fetch(split, "GZIP", Bucket(sizes), tmp_path, Share(), in_place=True)
    assert shards.paths == list(sizes)
    assert not list(tmp_path.glob("**/0000*"))


def test_a_file_in_place_is_as_long_as_the_manifest_says(split, tmp_path: Path) -> None:
    split, sizes = on_storage(split)
    sizes["gs://b/1"] += 1
    with pytest.raises(DataError, match=f"gs://b/1: {sizes['gs://b/1']} bytes"):
        fetch(split, "GZIP", Bucket(sizes), tmp_path, Share(), in_place=True)


def test_a_file_with_other_rows_than_the_manifest_says_is_named(split, tmp_path: Path) -> None:
    shards = fetched(split, tmp_path)
    wrong = dataclasses.replace(shards.files[1], rows=shards.files[1].rows + 3)
    opened = FileSplit("train", dataclasses.replace(shards, files=(shards.files[0], wrong)), Records())
    found = len(ids(opened.batches(SPEC)))
    with pytest.raises(DataError, match=rf"1\.tfrecord\.gz: {wrong.rows - 3} examples\. Expected {wrong.rows}, "):
        opened.require_rows(found)


def test_fewer_examples_than_the_files_hold_is_an_error(split, tmp_path: Path) -> None:
    opened = FileSplit("train", fetched(split, tmp_path), Records())
    with pytest.raises(DataError, match=f"{opened.rows - 1} examples"):
        opened.require_rows(opened.rows - 1)


def test_files_without_rows_are_not_opened(split, tmp_path: Path) -> None:
    empty = dataclasses.replace(split.files[0], rows=0, uri="/nowhere")
    shards = fetched(dataclasses.replace(split, files=(empty, *split.files)), tmp_path)
    assert len(shards.paths) == len(split.files)


def test_a_split_without_examples_is_an_error_where_some_are_needed(exported) -> None:
    manifest = exported.manifest()
    empty = {"train": dataclasses.replace(manifest.splits["train"], rows=0, files=())}
    with open_source(manifest, empty, Storage()) as source:
        with refuses(DataError, where="manifest of run", found="split train"):
            source.open_split("train")
        assert ids(source.open_split("train", may_be_empty=True).batches(SPEC)) == []


# --- what TensorFlow cannot read: the file is what the manifest proves, or was read where it is


def framed(data: bytes) -> bytes:
    """A TFRecord."""
    head = struct.pack("<Q", len(data))
    return head + masked(head) + data + masked(data)


def masked(content: bytes) -> bytes:
    crc = google_crc32c.value(content)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


def example(distance: object = 5, parcel_id: bytes = b"p") -> bytes:
    """An example of two columns; `distance` may be of another type or absent."""
    feature = {"parcel_id": tf.train.Feature(bytes_list=tf.train.BytesList(value=[parcel_id]))}
    if isinstance(distance, float):
        feature["distance"] = tf.train.Feature(float_list=tf.train.FloatList(value=[distance]))
    elif isinstance(distance, int):
        feature["distance"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[distance]))
    elif isinstance(distance, list):
        feature["distance"] = tf.train.Feature(int64_list=tf.train.Int64List(value=distance))
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


GOOD = framed(example())
WITHOUT_ID = tf.train.Example(
    features=tf.train.Features(feature={"distance": tf.train.Feature(int64_list=tf.train.Int64List(value=[1]))})
).SerializeToString()
AT_2 = rf"bad\.tfrecord, record 2 \(counted from 0; at byte {2 * len(GOOD)} uncompressed\)"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param(
            GOOD * 2 + GOOD[:-6] + b"x" + GOOD[-5:] + GOOD, rf"{AT_2}: its data has the CRC32C [0-9a-f]{{8}}", id="data"
        ),
        pytest.param(GOOD * 2 + b"\xff" + GOOD[1:] + GOOD, rf"{AT_2}: its length has the CRC32C", id="length"),
        pytest.param(GOOD * 2 + GOOD[:20], rf"{AT_2}: the file ends inside it: 8 of \d+ bytes", id="cut in the data"),
        pytest.param(GOOD * 2 + GOOD[:5], rf"{AT_2}: the file ends inside it: 5 of 12 bytes", id="cut in the head"),
        pytest.param(GOOD * 2 + framed(b"\xff\xff"), rf"{AT_2}: is not a tf\.train\.Example", id="not an example"),
        pytest.param(
            GOOD * 2 + framed(example(1.5)),
            rf"{AT_2}, column 'distance': float_list of 1 value\. Expected int64_list of 1 value",
            id="other type",
        ),
        pytest.param(
            GOOD * 2 + framed(example([1, 2])),
            rf"{AT_2}, column 'distance': int64_list of 2 values\. Expected int64_list of 1 value",
            id="an array",
        ),
        pytest.param(
            GOOD * 2 + framed(WITHOUT_ID), rf"{AT_2}, column 'parcel_id': is absent\. Expected bytes_list", id="absent"
        ),
    ],
)
def test_a_record_that_cannot_be_read_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.tfrecord"
    path.write_bytes(content)
    other = tmp_path / "good.tfrecord"
    other.write_bytes(GOOD)
    files = (Shard(uri=str(other), path=str(other), rows=1), Shard(uri=str(path), path=str(path), rows=4))
    with pytest.raises(DataError, match=words):
        read_whole(FileSplit("train", Shards(files=files, compression=""), Records()))


@pytest.mark.parametrize("members", [1, 2], ids=["one member", "two members"])
def test_a_gzip_stream_that_is_cut_off_is_named(tmp_path: Path, members: int) -> None:
    records = [framed(example(index, b"parcel-%d" % index)) for index in range(500)]
    half = gzip.compress(b"".join(records[:250]))
    content = half + gzip.compress(b"".join(records[250:])) if members == 2 else gzip.compress(b"".join(records))
    path = tmp_path / "bad.tfrecord.gz"
    path.write_bytes(content[:-200])
    shards = Shards(files=(Shard(uri="gs://bucket/bad.tfrecord.gz", path=str(path), rows=500),), compression="GZIP")
    opened = FileSplit("train", shards, Records())
    with pytest.raises(DataError, match=r"^gs://bucket/bad\.tfrecord\.gz, record \d+ .*the gzip stream is cut off"):
        read_whole(opened)


def test_a_whole_file_of_several_gzip_members_is_read(tmp_path: Path) -> None:
    path = tmp_path / "good.tfrecord.gz"
    path.write_bytes(gzip.compress(GOOD * 3) + gzip.compress(GOOD * 2))
    shard = Shard(uri=str(path), path=str(path), rows=5)
    read_whole(FileSplit("train", Shards(files=(shard,), compression="GZIP"), Records()))
    assert Records().count_rows(shard, "GZIP") == 5


def read_whole(opened: FileSplit) -> None:
    """Read as a training does: what cannot be read, and what is missing, is an error."""
    with opened.reading(SPEC):
        found = len(ids(opened.batches(SPEC)))
    opened.require_rows(found)


def test_a_file_that_goes_while_it_is_read_is_named(tmp_path: Path) -> None:
    shards = Shards(files=(Shard(uri="gs://b/x", path=str(tmp_path / "gone"), rows=1),), compression="")
    opened = FileSplit("train", shards, Records(ShardLayout()))
    with pytest.raises(DataError, match="gs://b/x: is missing"):
        read_whole(opened)
