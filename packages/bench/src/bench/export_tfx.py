"""TFX's ways as contenders of `make bench-export`: tfx_bsl's encoder, and Beam as BigQueryExampleGen uses it.

They run in an environment of their own (`requirements-tfx.txt`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import apache_beam as beam
import numpy as np
import pyarrow as pa
import tensorflow as tf
from apache_beam.options.pipeline_options import PipelineOptions
from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder

from bench.export_tables import read_batches, without_times
from bench.export_tensorflow import FEATURES, kinds, rows_of, writer


class TfxBsl:
    """`RecordBatchToExamplesEncoder` and TFRecordWriter.

    Args:
        path: Of the Arrow file.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._rows = path, rows

    def write(self, path: Path, compression: str) -> None:
        """Write one file."""
        encoder = RecordBatchToExamplesEncoder()
        with writer(path, compression) as file:
            for batch in read_batches(self._path, self._rows):
                for example in encoder.encode(in_lists(without_times(batch))):
                    file.write(example)


def in_lists(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the only columns that tfx_bsl takes: lists of float, int64 and binary."""
    return pa.RecordBatch.from_arrays([_in_list(column) for column in batch.columns], batch.schema.names)


def _in_list(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        return column.cast(pa.list_(_taken(column.type.value_type)))
    values = column.cast(_taken(column.type))
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.cumsum(valid)]).astype(np.int32)
    return pa.ListArray.from_arrays(starts, values.drop_null(), mask=values.is_null())


def _taken(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_floating(type_):
        return pa.float32()
    return pa.binary() if pa.types.is_string(type_) or pa.types.is_binary(type_) else pa.int64()


class Beam:
    """Row dictionaries → Example → Reshuffle → WriteToTFRecord on the DirectRunner.

    As in tfx/extensions/google_cloud_big_query and tfx/components/example_gen; rows come from the Arrow file.

    Args:
        path: Of the Arrow file.
    """

    def __init__(self, path: Path, rows: int) -> None:
        self._path, self._rows = path, rows
        self._kinds = kinds(path)

    def write(self, path: Path, compression: str) -> None:
        """Write one file, by one pipeline, its start included."""
        kinds_of = self._kinds
        suffix = ".gz" if compression == "GZIP" else ""
        with beam.Pipeline(runner="DirectRunner", options=PipelineOptions([])) as pipeline:
            _ = (
                pipeline
                | "Table" >> beam.Create([str(self._path)])
                | "Rows" >> beam.FlatMap(_rows, self._rows)
                | "RowToExample" >> beam.Map(_example, kinds_of)
                | "Serialize" >> beam.Map(tf.train.Example.SerializeToString)
                | "Shuffle" >> beam.transforms.Reshuffle()
                | "Write" >> beam.io.WriteToTFRecord(str(path), file_name_suffix=suffix, num_shards=1)
            )


def _rows(path: str, rows: int) -> Iterator[dict[str, Any]]:
    return rows_of(Path(path), rows)


def _example(row: dict[str, Any], kinds_of: dict[str, type]) -> tf.train.Example:
    feature = {}
    for name, value in row.items():
        if value is None:
            feature[name] = tf.train.Feature()
        else:
            feature[name] = FEATURES[kinds_of[name]](value if isinstance(value, list) else [value])
    return tf.train.Example(features=tf.train.Features(feature=feature))
