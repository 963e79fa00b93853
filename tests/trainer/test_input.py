"""Shards into tensors: proven, whole, and in an order that seed and epoch decide."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from trainer.errors import DataError
from trainer.input.files import Shards, fetch
from trainer.input.pipeline import blocks, epochs
from trainer.input.source import Share
from trainer.input.tfrecord import RecordSplit
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
    opened = RecordSplit("train", fetched(split, tmp_path))
    found = ids(opened.batches(SPEC))
    assert len(found) == len(set(found)) == opened.rows == split.rows
    assert found == ids(opened.batches(SPEC))
    assert found != ids(opened.batches(SPEC, 3))
    assert ids(opened.batches(SPEC, 3)) == ids(opened.batches(SPEC, 3))
    assert sorted(found) == sorted(ids(opened.batches(SPEC, 3)))


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        pytest.param(lambda path: path.unlink(), "is missing", id="missing"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-10]), r"\d+ bytes", id="cut"),
        pytest.param(lambda path: path.write_bytes(flipped(path.read_bytes())), "the file is corrupt", id="flipped"),
    ],
)
def test_a_harmed_shard_is_named(split, tmp_path: Path, harm, words: str) -> None:
    path = Path(split.files[2].uri)
    harm(path)
    with pytest.raises(DataError, match=words) as caught:
        fetched(split, tmp_path)
    assert str(path) in str(caught.value)


def flipped(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


def test_fewer_examples_than_the_manifest_says_is_an_error(split, tmp_path: Path) -> None:
    opened = RecordSplit("train", fetched(split, tmp_path))
    with pytest.raises(DataError, match=f"{opened.rows - 1} examples"):
        opened.require_rows(opened.rows - 1)


def test_files_without_rows_are_not_opened(split, tmp_path: Path) -> None:
    empty = dataclasses.replace(split.files[0], rows=0, uri="/nowhere")
    shards = fetched(dataclasses.replace(split, files=(empty, *split.files)), tmp_path)
    assert len(shards.paths) == len(split.files)


def numbered(count: int) -> tf.data.Dataset:
    parsed = tf.data.Dataset.range(count).batch(100).map(lambda number: {"x": number})
    return blocks(parsed, lambda batch: (batch["x"], batch["x"] * 2), count)


def order_of(dataset: tf.data.Dataset) -> np.ndarray:
    return np.concatenate([x.numpy() for x, _ in dataset])


def test_an_epochs_order_is_decided_by_seed_and_number() -> None:
    source = numbered(1000)
    both = order_of(epochs(source, first=0, last=2, batch_size=64, seed=5))
    assert sorted(both[:1000]) == list(range(1000))
    assert sorted(both[1000:]) == list(range(1000))
    assert not np.array_equal(both[:1000], both[1000:])
    resumed = order_of(epochs(source, first=1, last=2, batch_size=64, seed=5))
    assert np.array_equal(resumed, both[1000:])
    assert not np.array_equal(order_of(epochs(source, first=0, last=1, batch_size=64, seed=6)), both[:1000])


def test_features_and_labels_stay_together_and_batches_end_with_the_epoch() -> None:
    sizes = []
    for x, y in epochs(numbered(1000), first=0, last=2, batch_size=64, seed=5):
        assert np.array_equal(x.numpy() * 2, y.numpy())
        sizes.append(len(x))
    assert sizes == ([64] * 15 + [40]) * 2
