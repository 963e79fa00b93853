"""One contender of `make bench-input`: `python -m bench.input_contender NAME FOLDER` reads once and prints its figures.

In: files that `input_files` wrote. Out: one line of JSON with rows, seconds from the iterator's start to the last
batch, and the seconds until the iterator says that there are no more (the stall). Batches hold 1024 examples for all.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from bench.input import CONTENDERS, Contender
from bench.input_files import Files
from trainer.contract.documents import Column, ManifestFile, ManifestSplit
from trainer.input.csv import CsvLines
from trainer.input.files import fetch
from trainer.input.pipeline import Reading
from trainer.input.records import MISSING, NUMERIC
from trainer.input.source import Share
from trainer.input.splits import FileSplit, Format
from trainer.input.tfrecord import Records
from trainer.storage import Storage

BATCH_ROWS = 1024
Spec = Mapping[str, Any]
_DTYPES = {"FLOAT": tf.float32, "STRING": tf.string}


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What one reading took.

    Attributes:
        rows: Read.
        seconds: From the iterator's start to the last batch.
        stall_s: From there until the iterator ended; None where it was not read to the end.
    """

    rows: int
    seconds: float
    stall_s: float | None


def tutorial(files: Files, spec: Spec) -> tf.data.Dataset:
    """Read as the tutorial does: parse each example, then batch.

    https://www.tensorflow.org/tutorials/load_data/tfrecord#reading_a_tfrecord_file
    """
    records = tf.data.TFRecordDataset(files.paths, files.tensorflow_compression)
    return records.map(lambda record: tf.io.parse_single_example(record, spec)).batch(BATCH_ROWS)


def helper(files: Files, spec: Spec) -> tf.data.Dataset:
    """Read through TensorFlow's own helper."""

    def reader(paths: tf.Tensor) -> tf.data.Dataset:
        return tf.data.TFRecordDataset(paths, files.tensorflow_compression)

    return tf.data.experimental.make_batched_features_dataset(
        files.paths, BATCH_ROWS, spec, reader=reader, num_epochs=1, shuffle=False
    )


def ours(files: Files, spec: Spec, reading: Reading | None = None) -> tf.data.Dataset:
    """Read as a training does, after the files are proven."""
    split = ManifestSplit(rows=files.rows, files=tuple(ManifestFile(**file) for file in files.files))
    shards = fetch(split, files.compression, Storage(), Path(files.paths[0]).parent, Share())
    batches = FileSplit("train", shards, _format(files), reading).batches(spec)
    if files.layout.rows_per_record == 1:
        return batches
    chosen = reading or Reading()
    return batches.rebatch(BATCH_ROWS).prefetch(chosen.prefetch).with_options(chosen.options())


def tuned(files: Files, spec: Spec) -> tf.data.Dataset:
    """Read as a training does with autotune on."""
    return ours(files, spec, Reading(autotune=True))


READERS: Mapping[str, Callable[[Files, Spec], tf.data.Dataset]] = {
    "tutorial": tutorial,
    "helper": helper,
    "autotune": tuned,
    "ours": ours,
}


def read_once(contender: Contender, files: Files) -> Measured:
    """Read to the end, or as far as the contender goes."""
    iterator = iter(READERS[contender.reader](files, _spec(files)))
    rows = 0
    start = last = time.perf_counter()
    for batch in iterator:
        rows += len(next(iter(batch.values())))
        last = time.perf_counter()
        if contender.rows and rows >= contender.rows:
            return Measured(rows=rows, seconds=last - start, stall_s=None)
    return Measured(rows=rows, seconds=last - start, stall_s=time.perf_counter() - last)


def _spec(files: Files) -> dict[str, Any]:
    """Ask for every column; a packed one as the matrix."""
    if files.layout.numeric:
        return {NUMERIC: tf.io.FixedLenFeature([len(files.layout.numeric)], tf.float32)}
    dtypes = {name: _DTYPES.get(type_, tf.int64) for name, type_ in files.columns.items()}
    return {name: tf.io.FixedLenFeature([], dtype, default_value=MISSING[dtype]) for name, dtype in dtypes.items()}


def _format(files: Files) -> Format:
    if files.format == "tfrecord":
        return Records(files.layout)
    return CsvLines([Column(name=name, type=type_, mode="NULLABLE") for name, type_ in files.columns.items()])


def main(name: str, folder: str) -> None:
    """Read once and print."""
    contender = CONTENDERS[name]
    files = Files.load(Path(folder), contender.files)
    print(json.dumps(asdict(read_once(contender, files))))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
