"""The reader without TensorFlow, against TensorFlow's own: the same rows, and a word about every broken file."""

from __future__ import annotations

import contextlib
import gzip
import math
import random
import time
import tracemalloc
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from trainer_kit.shards import ShardError, masked_crc, parse_example, plain_crc32c, read_records, read_rows

from tests.trainer.conftest import FEATURES, Run, make_rows

INT64 = st.integers(-(2**63), 2**63 - 1)
FEATURE = st.one_of(
    st.lists(st.binary(max_size=20), max_size=4).map(
        lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    ),
    st.lists(st.floats(width=32), max_size=4).map(
        lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values))
    ),
    st.lists(INT64, max_size=4).map(lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values))),
    st.just(tf.train.Feature()),
)
EXAMPLES = st.dictionaries(st.text(max_size=8), FEATURE, max_size=5).map(
    lambda features: tf.train.Example(features=tf.train.Features(feature=features))
)


def by_protobuf(example: tf.train.Example) -> dict[str, list[Any]]:
    """An Example as protobuf's own classes hold it."""
    features = example.features.feature
    return {
        name: list(getattr(feature, feature.WhichOneof("kind")).value) if feature.WhichOneof("kind") else []
        for name, feature in features.items()
    }


def as_text(values: dict[str, Any]) -> str:
    """Values that can be compared: NaN is like itself."""
    return repr({name: list(listed) for name, listed in sorted(values.items())})


@given(EXAMPLES)
def test_an_example_is_parsed_as_protobuf_does(example) -> None:
    """Any names, any values, empty lists and features without a list."""
    assert as_text(parse_example(example.SerializeToString())) == as_text(by_protobuf(example))


@given(st.binary(max_size=60))
def test_any_bytes_are_parsed_or_refused(data) -> None:
    """Nothing but its own error comes out."""
    with contextlib.suppress(ShardError):
        assert isinstance(parse_example(data), dict)


@given(st.binary(max_size=300))
def test_the_checksum_is_crc32c(data) -> None:
    """The one in pure Python too."""
    assert plain_crc32c(data) == google_crc32c.value(data)


@given(st.lists(st.binary(max_size=50), max_size=5), st.sampled_from(["GZIP", "NONE"]))
def test_records_are_those_that_tensorflow_wrote(tmp_path_factory, records, compression) -> None:
    """Also of no record at all."""
    path = tmp_path_factory.mktemp("records") / "shard"
    with tf.io.TFRecordWriter(str(path), "GZIP" if compression == "GZIP" else "") as writer:
        for record in records:
            writer.write(record)
    assert list(read_records(path, compression)) == records


def test_every_wrong_byte_is_found(tmp_path: Path) -> None:
    """Wherever it stands, and wherever the file is cut off."""
    path = tmp_path / "shard"
    with tf.io.TFRecordWriter(str(path)) as writer:
        writer.write(b"one")
        writer.write(b"another")
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(content[:place] + bytes([content[place] ^ 0x10]) + content[place + 1 :])
        with pytest.raises(ShardError, match=r"shard, record [01]: "):
            list(read_records(path, "NONE"))
        if place not in (0, 19):  # between two records nothing is missing
            path.write_bytes(content[:place])
            with pytest.raises(ShardError):
                list(read_records(path, "NONE"))
    path.write_bytes(gzip.compress(content)[:-9])
    with pytest.raises(ShardError, match="record"):
        list(read_records(path, "GZIP"))
    assert masked_crc(b"") == 0xA282EAD8


@pytest.mark.parametrize(
    "layout",
    [
        pytest.param({"numeric": [], "rows_per_record": 1}, id="plain"),
        pytest.param({"numeric": ["distance", "weight", "express"], "rows_per_record": 1}, id="packed"),
        pytest.param({"numeric": ["distance", "weight", "express"], "rows_per_record": 64}, id="several-rows"),
    ],
)
def test_every_layout_gives_the_rows_of_the_table(tmp_path: Path, layout: dict[str, Any]) -> None:
    """What the export wrote, in any of its forms; NULL as None."""
    run = Run(path=tmp_path, rows=make_rows(days=2, rows_per_day=300))
    run.export(layout=layout)
    manifest = run.manifest()
    names = [*(feature["name"] for feature in FEATURES), "parcel_id", "late"]
    rows = [
        row
        for split in manifest.splits.values()
        for file in split.files
        for row in read_rows(Path(file.uri), manifest.compression, names, layout)
    ]
    expected = {row["parcel_id"]: row for row in run.rows.select(names).to_pylist()}
    assert len(rows) == len(expected) == 600
    for row in rows:
        theirs = expected[row["parcel_id"].decode()]
        for name in names:
            ours, wanted = row[name], theirs[name]
            if wanted is None:
                assert ours is None
            elif isinstance(wanted, str):
                assert ours == wanted.encode()
            else:
                assert math.isclose(ours, np.float32(wanted), rel_tol=1e-6)


@pytest.mark.long
def test_its_speed_is_printed(tmp_path: Path, capsys) -> None:
    """Rows per second and core, of rows like the flights'; TensorFlow's are in packages/bench/docs/performance.md."""
    random.seed(1)
    path, count = tmp_path / "shard", 50_000
    with tf.io.TFRecordWriter(str(path), "GZIP") as writer:
        for number in range(count):
            values = {f"number_{place}": random.random() for place in range(10)}
            features = {
                name: tf.train.Feature(float_list=tf.train.FloatList(value=[value])) for name, value in values.items()
            }
            features["key"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[str(number).encode()]))
            features["late"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[number % 2]))
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    started = time.perf_counter()
    rows = sum(1 for _ in read_rows(path, "GZIP", [*values, "key", "late"]))
    rate = rows / (time.perf_counter() - started)
    with capsys.disabled():
        print(f"\nshards without TensorFlow: {rate:,.0f} rows/s of 12 columns on one core")
    assert rows == count
    assert rate > 5_000


@pytest.mark.parametrize("length", [2**40, 2**31 - 1, 2**63])
@pytest.mark.parametrize("compression", ["NONE", "GZIP"])
def test_memory_is_taken_for_what_is_there_not_for_what_is_claimed(tmp_path, length, compression) -> None:
    """A length with a right checksum, and no such data behind it."""
    head = length.to_bytes(8, "little")
    data = head + masked_crc(head).to_bytes(4, "little") + b"few bytes"
    path = tmp_path / "shard"
    path.write_bytes(gzip.compress(data) if compression == "GZIP" else data)
    tracemalloc.start()
    try:
        with pytest.raises(ShardError, match=r"record 0: (it claims|the file ends inside it)"):
            list(read_records(path, compression))
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
