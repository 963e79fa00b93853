"""One contender of `make bench-readers`: `python -m bench.reader_contender READER MANIFEST` reads a split once.

In: a manifest that the export wrote, and the run table that it names. Out: one line of JSON with rows, seconds from
opening the split to its last batch, seconds to the first batch, and CPU seconds of this process meanwhile. TensorFlow
is imported before.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf

from trainer.contract.documents import Manifest
from trainer.contract.reading import read_document
from trainer.input import STORAGE_READ, open_source
from trainer.input.records import MISSING
from trainer.storage import Storage

FILES = "tfrecord"
_SPLIT = "train"
_DTYPES = {"STRING": tf.string, "FLOAT": tf.float32, "INTEGER": tf.int64}
"""Of the types that every reader has; tensorflow-io does not read times."""


def read_once(reader: str, manifest_uri: str) -> dict[str, float]:
    """Read every number and text of the training split, as a training would, and throw it away."""
    storage = Storage()
    manifest = read_document(Manifest, manifest_uri, storage)
    split = manifest.splits[_SPLIT]
    if reader != FILES:
        split = dataclasses.replace(split, files=())
    dtypes = {column.name: _DTYPES[column.type] for column in manifest.columns if column.type in _DTYPES}
    spec = {name: tf.io.FixedLenFeature([], dtype, default_value=MISSING[dtype]) for name, dtype in dtypes.items()}
    rows, first = 0, 0.0
    start, cpu = time.perf_counter(), time.process_time()
    chosen = STORAGE_READ if reader == FILES else reader
    with open_source(manifest, {_SPLIT: split}, storage, reader=chosen) as source:
        opened = source.open_split(_SPLIT)
        with opened.reading(spec):
            for batch in opened.batches(spec):
                first = first or time.perf_counter() - start
                rows += len(next(iter(batch.values())))
        opened.require_rows(rows)
    return {
        "rows": rows,
        "seconds": time.perf_counter() - start,
        "first_s": first,
        "cpu_s": time.process_time() - cpu,
    }


if __name__ == "__main__":
    print(json.dumps(read_once(*sys.argv[1:])))
