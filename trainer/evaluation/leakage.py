"""Proof that a champion was not trained on the examples it is judged by.

Comes in: the test split's files, and those of the champion's training files that fingerprints could not clear. Goes
out: nothing, or an error with the keys that stand in both. Only keys are read; the champion's files may be of an older
layout, format or schema.
"""

from __future__ import annotations

import csv
import logging
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tensorflow as tf

from trainer.contract.documents import Champion, EvaluateRequest, Initial, ManifestFile, ManifestSplit
from trainer.errors import DataError
from trainer.input.files import fetch
from trainer.input.records import ROWS
from trainer.input.source import Share
from trainer.storage import Storage

LOGGER = logging.getLogger(__name__)
_SHOWN_KEYS = 5
_BATCH = 1024
_GZIP_SUFFIX = ".gz"
_LAST_RESORT = "or take the alias champion from that version: the floor alone judges the next one"
_OTHER_BEGINNING = "or begin with another version: promote a newer one, or remove training.initial"


def require_no_leakage(request: EvaluateRequest, test: ManifestSplit, storage: Storage, *, compared: bool) -> None:
    """Check that no test example is among the training examples of the champion, or of whose weights were begun with.

    Args:
        request: With the champion's files in `prove_unseen`, and those of `initial`.
        test: The split that is judged by.
        storage: Where all are.
        compared: Whether there is a champion to be judged.

    Raises:
        DataError: Some are; names count, keys and file. Or a file cannot be read.
    """
    if request.champion and compared and request.prove_unseen:
        _require_unseen(request.champion, request.prove_unseen, request.key, test, storage)
    if request.initial and request.initial.prove_unseen:
        _require_unseen(request.initial, request.initial.prove_unseen, request.key, test, storage)


def _require_unseen(
    version: Champion | Initial, files_of: Sequence[ManifestFile], key: str, test: ManifestSplit, storage: Storage
) -> None:
    """Check the files of one version.

    Raises:
        DataError: It was trained on some of the test examples, or a file cannot be read.
    """
    tested = pa.concat_arrays([pa.array([], pa.binary()), *read_keys(test.files, key, storage)])
    leaked: list[bytes] = []
    files: list[str] = []
    for file in files_of:
        try:
            read = list(read_keys([file], key, storage))
        except DataError as error:
            raise _unreadable(version, error) from error
        seen = [key for keys in read for key in pc.filter(keys, pc.is_in(keys, value_set=tested)).to_pylist()]
        leaked += seen
        files += [file.uri] if seen else []
    if leaked:
        raise _seen(version, leaked, files)
    rows = sum(file.rows for file in files_of)
    LOGGER.info(
        "evaluate: none of %s test examples is among %s that version %s was trained on",
        len(tested),
        rows,
        version.version_id,
    )


def _seen(version: Champion | Initial, keys: Sequence[bytes], files: Sequence[str]) -> DataError:
    shown = ", ".join(repr(key.decode(errors="replace")) for key in keys[:_SHOWN_KEYS])
    more = ", …" if len(keys) > _SHOWN_KEYS else ""
    return DataError(
        _where(version),
        f"was trained on {len(keys)} of this run's test examples: keys {shown}{more} stand in {files[0]}",
        "a version that has seen none of them",
        "An example keeps its key and its day: look in the query for an event time that changes after the label is "
        f"known, {_last_resort(version)}",
    )


def _unreadable(version: Champion | Initial, error: DataError) -> DataError:
    return DataError(
        _where(version),
        f"what it was trained on cannot be read: {error.where}: {error.found}",
        error.expected,
        f"Restore the file, {_last_resort(version)}",
    )


def _where(version: Champion | Initial) -> str:
    which = f"version {version.version_id} (run {version.run_key})"
    return f"champion {which}" if isinstance(version, Champion) else f"{which}, which the challenger is or began with"


def _last_resort(version: Champion | Initial) -> str:
    return _LAST_RESORT if isinstance(version, Champion) else _OTHER_BEGINNING


def read_keys(files: Sequence[ManifestFile], key: str, storage: Storage) -> Iterator[pa.Array]:
    """Yield one column of files, a batch at a time, as bytes: whole numbers as text.

    Raises:
        DataError: A file cannot be read, or has no such column.
    """
    for suffix, compression in ((_GZIP_SUFFIX, "GZIP"), ("", "NONE")):
        chosen = tuple(file for file in files if file.uri.endswith(_GZIP_SUFFIX) == bool(suffix))
        with tempfile.TemporaryDirectory(prefix="trainer-keys-") as folder:
            split = ManifestSplit(rows=sum(file.rows for file in chosen), files=chosen)
            shards = fetch(split, compression, storage, Path(folder), Share())
            for shard in shards.files:
                read = _csv_keys if shard.uri.removesuffix(_GZIP_SUFFIX).endswith(".csv") else _record_keys
                try:
                    yield from read(shard.path, shards.compression, key)
                except (tf.errors.OpError, LookupError) as error:
                    raise DataError(shard.uri, f"no key {key!r} to read ({error})", "one in each example") from error


def _record_keys(path: str, compression: str, key: str) -> Iterator[pa.Array]:
    """Read TFRecords, whether an Example holds one row or several."""
    records = tf.data.TFRecordDataset(path, compression)
    first = next(iter(records.take(1)), None)
    if first is None:
        return
    stored = tf.train.Example.FromString(first.numpy()).features.feature
    if key not in stored:
        raise LookupError("there is no such column")
    whole = stored[key].WhichOneof("kind") == "int64_list"
    spec = {
        key: tf.io.RaggedFeature(tf.int64 if whole else tf.string, row_splits_dtype=tf.int64),
        ROWS: tf.io.FixedLenFeature([], tf.int64, default_value=np.iinfo(np.int64).max),
    }
    for batch in records.batch(_BATCH):
        parsed = tf.io.parse_example(batch, spec)
        record = parsed[key].value_rowids().numpy()
        place = np.arange(len(record)) - parsed[key].row_starts().numpy()[record]
        yield _as_bytes(parsed[key].flat_values.numpy()[place < parsed[ROWS].numpy()[record]])


def _csv_keys(path: str, compression: str, key: str) -> Iterator[pa.Array]:
    """Read CSV files with a header."""
    lines = tf.data.TextLineDataset(path, compression)
    for header in lines.take(1):
        names = next(csv.reader([header.numpy().decode()]))
        if key not in names:
            raise LookupError("there is no such column")
        place = names.index(key)
        for batch in lines.skip(1).batch(_BATCH):
            rows = csv.reader(line.decode() for line in batch.numpy())
            yield pa.array([row[place].encode() for row in rows], pa.binary())


def _as_bytes(values: np.ndarray[Any, Any]) -> pa.Array:
    """Return keys as bytes. [n] → [n]."""
    if values.dtype == np.int64:
        return pa.array(values).cast(pa.string()).cast(pa.binary())
    return pa.array(values.tolist(), pa.binary())
