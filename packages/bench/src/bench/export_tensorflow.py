"""What people write first, as contenders of `make bench-export`: the tutorial's loop, and protobuf by hand.

Like all contenders they start from Arrow, which they turn into dictionaries as BigQuery's client does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pyarrow as pa
import tensorflow as tf

from bench.export_tables import read_batches, without_times

Row = Mapping[str, Any]


def int64_feature(values: Sequence[Any]) -> tf.train.Feature:
    """As in the tutorial."""
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def float_feature(values: Sequence[Any]) -> tf.train.Feature:
    """As in the tutorial."""
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def bytes_feature(values: Sequence[Any]) -> tf.train.Feature:
    """As in the tutorial."""
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def text_feature(values: Sequence[Any]) -> tf.train.Feature:
    """Encode text first."""
    return bytes_feature([value.encode() for value in values])


FEATURES: dict[type, Callable[[Sequence[Any]], tf.train.Feature]] = {
    int: int64_feature,
    float: float_feature,
    bytes: bytes_feature,
    str: text_feature,
}
_LISTS = {int: "int64_list", float: "float_list", bytes: "bytes_list", str: "bytes_list"}
_KINDS: list[tuple[Callable[[pa.DataType], bool], type]] = [
    (pa.types.is_floating, float),
    (pa.types.is_string, str),
    (pa.types.is_binary, bytes),
    (pa.types.is_integer, int),
]


def rows_of(path: Path, rows: int) -> Iterator[dict[str, Any]]:
    """Yield the first rows of an Arrow file."""
    for batch in read_batches(path, rows):
        yield from without_times(batch).to_pylist()


def kinds(path: Path) -> dict[str, type]:
    """Return each column's Python type."""
    schema = without_times(next(read_batches(path, 1))).schema
    types = {field.name: getattr(field.type, "value_type", field.type) for field in schema}
    return {name: next(kind for test, kind in _KINDS if test(type_)) for name, type_ in types.items()}


def writer(path: Path, compression: str) -> tf.io.TFRecordWriter:
    """Open TensorFlow's own writer, with zlib's default level."""
    return tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression.replace("none", "")))


class Tutorial:
    """An Example per row, a Feature per value, TFRecordWriter.

    https://www.tensorflow.org/tutorials/load_data/tfrecord#writing_a_tfrecord_file

    Args:
        path: Of the Arrow file.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._rows = path, rows
        self._features = {name: FEATURES[kind] for name, kind in kinds(path).items()}

    def write(self, path: Path, compression: str) -> None:
        """Write one file."""
        with writer(path, compression) as file:
            for row in rows_of(self._path, self._rows):
                file.write(self._serialise(row))

    def _serialise(self, row: Row) -> bytes:
        feature = {
            name: self._features[name](value if isinstance(value, list) else [value])
            for name, value in row.items()
            if value is not None
        }
        serialised: bytes = tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()
        return serialised


class ByHand:
    """One Example for all rows, its lists filled anew: what remains when nothing is constructed.

    Args:
        path: Of the Arrow file.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._rows = path, rows
        self._kinds = kinds(path)

    def write(self, path: Path, compression: str) -> None:
        """Write one file."""
        example = tf.train.Example()
        lists = {
            name: getattr(example.features.feature[name], _LISTS[kind]).value for name, kind in self._kinds.items()
        }
        text = {name for name, kind in self._kinds.items() if kind is str}
        with writer(path, compression) as file:
            for row in rows_of(self._path, self._rows):
                for name, value in row.items():
                    if value is None:
                        del lists[name][:]
                    elif name in text:
                        lists[name][:] = (value.encode(),)
                    else:
                        lists[name][:] = value if isinstance(value, list) else (value,)
                file.write(example.SerializeToString())
