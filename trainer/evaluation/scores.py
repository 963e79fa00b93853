"""A model's answers to a split, as a file: written by whichever trainer can ask the model, read by the comparison.

Comes in: keys, labels and answers. Goes out: a Parquet file and what the document `scores` says of it; and the other
way round, held against the examples that the judge has read itself. Nothing here needs TensorFlow.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from trainer.contract.documents import Label, ManifestSplit, ModelScores, RegressionLabel, ScoresFile, Shard
from trainer.contract.reading import read_document
from trainer.errors import DataError
from trainer.objective.labels import class_count
from trainer.objective.metrics import Floats
from trainer.storage import Storage

KEY, LABEL, SCORE = "key", "label", "score"
_SHOWN_KEYS = 3
_WAY_OUT = "Mend the trainer that wrote it (docs/trainer-contract.md), delete the document beside it, clear the task"


@dataclass(frozen=True, kw_only=True)
class Examples:
    """What the judge itself knows of a split.

    Attributes:
        split: Its files.
        keys: Bytes. [n]
        labels: [n]
    """

    split: ManifestSplit
    keys: npt.NDArray[np.object_]
    labels: Floats


def shards_of(split: ManifestSplit) -> tuple[Shard, ...]:
    """Return a split's files as documents of the evaluation name them."""
    return tuple(Shard(uri=file.uri, sha256=file.sha256, rows=file.rows) for file in split.files)


def write_scores(uri: str, examples: Examples, scores: Floats, storage: Storage) -> ScoresFile:
    """Write a model's answers.

    Args:
        uri: Of the Parquet file.
        scores: In the order of the examples. [n] or [n, classes or quantiles]
    """
    answers = pa.array(scores if scores.ndim == 1 else list(scores))
    keys = pa.array(examples.keys, pa.binary()).cast(pa.string())
    file = io.BytesIO()
    pq.write_table(pa.table({KEY: keys, LABEL: pa.array(examples.labels), SCORE: answers}), file)
    content = file.getvalue()
    storage.replace(uri, content)
    sha256 = hashlib.sha256(content).hexdigest()
    return ScoresFile(uri=uri, sha256=sha256, rows=len(scores), shards=shards_of(examples.split))


def read_given_scores(uri: str, model_uri: str, digest: str | None, storage: Storage) -> ModelScores:
    """Return the document that a model's own trainer wrote.

    Args:
        model_uri: Of the model that was to be scored.
        digest: That it must have; None: any.

    Raises:
        DataError: It is about another model.
    """
    document = read_document(ModelScores, uri, storage)
    if document.model_uri.rstrip("/") != model_uri.rstrip("/"):
        raise DataError(uri, f"scores of {document.model_uri}", f"of {model_uri}", _WAY_OUT)
    if digest and not document.skipped and document.model_digest != digest:
        raise DataError(uri, f"scores of a model with SHA-256 {document.model_digest}", f"the report's, {digest}")
    return document


def align_scores(where: str, file: ScoresFile | None, examples: Examples, label: Label, storage: Storage) -> Floats:
    """Return a model's answers in the order of the examples. [n] or [n, classes or quantiles].

    Args:
        where: What messages call it.
        file: That holds them; None: the document names none.
        label: What the answers are about.

    Raises:
        DataError: They are of other files or other examples, some are missing, or one is no answer.
    """
    if file is None:
        raise DataError(where, "no file of this split", "one for every split of the request", _WAY_OUT)
    where = f"{where}, {file.uri}"
    _require_shards(where, file, examples)
    table = _read_table(where, file, label, storage)
    keys = table[KEY].combine_chunks().cast(pa.binary())
    truth = pa.array(examples.keys, pa.binary())
    place = pc.index_in(truth, value_set=keys)
    if place.null_count:
        raise _wrong_keys(where, "are not scored", truth.filter(pc.is_null(place)), place.null_count)
    unknown = pc.invert(pc.is_in(keys, value_set=truth))
    if (count := pc.sum(unknown).as_py() or 0) or len(keys) != len(truth):
        if count:
            raise _wrong_keys(where, "are no examples of this split", keys.filter(unknown), count)
        raise DataError(where, f"{len(keys)} rows", f"{len(truth)}, each key once", _WAY_OUT)
    order = place.to_numpy(zero_copy_only=False)
    labels: Floats = table[LABEL].to_numpy()[order]
    if (wrong := np.flatnonzero(labels != examples.labels)).size:
        first = wrong[0]
        raise DataError(
            where,
            f"{wrong.size} other labels: {labels[first]:g} of key {examples.keys[first].decode(errors='replace')!r}",
            f"{examples.labels[first]:g}, as in the shards",
            _WAY_OUT,
        )
    scores: Floats = _answers(where, table[SCORE], label)[order]
    _require_answers(where, scores, label)
    return scores


def _require_shards(where: str, file: ScoresFile, examples: Examples) -> None:
    expected = {(shard.uri, shard.sha256) for shard in shards_of(examples.split)}
    if unknown := sorted(expected.symmetric_difference((shard.uri, shard.sha256) for shard in file.shards)):
        uri, sha256 = unknown[0]
        there = "is not among the files that were scored" if unknown[0] in expected else "was scored"
        raise DataError(where, f"{uri} with SHA-256 {sha256} {there}", "the files of the run's manifest", _WAY_OUT)


def _read_table(where: str, file: ScoresFile, label: Label, storage: Storage) -> pa.Table:
    content = storage.read_object(file.uri)
    if content is None:
        raise DataError(where, "there is no such file", "the one that the document names", _WAY_OUT)
    if (digest := hashlib.sha256(content).hexdigest()) != file.sha256:
        raise DataError(where, f"SHA-256 {digest}", f"{file.sha256}, as the document says", _WAY_OUT)
    width = _width(label)
    score = pa.float64() if width is None else pa.list_(pa.float64())
    try:
        table: pa.Table = pq.read_table(pa.BufferReader(content)).select([KEY, LABEL, SCORE])
        cast: pa.Table = table.cast(pa.schema([(KEY, pa.string()), (LABEL, pa.float64()), (SCORE, score)]))
    except (pa.ArrowException, KeyError) as error:
        listed = "double" if width is None else f"lists of {width} doubles"
        raise DataError(
            where, f"cannot be read: {error}", f"Parquet: key (string), label (double), score ({listed})", _WAY_OUT
        ) from error
    return cast


def _width(label: Label) -> int | None:
    """Return how many numbers an answer has; None: one, by itself."""
    if isinstance(label, RegressionLabel):
        return len(label.quantiles) or None
    return None if label.kind == "binary" else class_count(label)


def _answers(where: str, column: pa.ChunkedArray, label: Label) -> Floats:
    width, rows = _width(label), column.combine_chunks()
    if rows.null_count:
        raise DataError(where, f"{rows.null_count} rows have no score", "one in each row", _WAY_OUT)
    if width is None:
        return np.asarray(rows.to_numpy(zero_copy_only=False), np.float64)
    lengths = pc.list_value_length(rows).to_numpy()
    if (lengths != width).any():
        raise DataError(where, f"an answer of {lengths[lengths != width][0]} numbers", f"{width}", _WAY_OUT)
    return np.asarray(rows.flatten().to_numpy(zero_copy_only=False), np.float64).reshape(-1, width)


def _require_answers(where: str, scores: Floats, label: Label) -> None:
    if wrong := int((~np.isfinite(scores)).sum()):
        raise DataError(where, f"{wrong} scores are not finite", "finite answers", _WAY_OUT)
    if not isinstance(label, RegressionLabel) and (outside := (scores < 0) | (scores > 1)).any():
        raise DataError(where, f"a score of {scores[outside][0]:g}", "probabilities, from 0 to 1", _WAY_OUT)


def _wrong_keys(where: str, problem: str, keys: pa.Array, count: int) -> DataError:
    shown = ", ".join(repr(key.decode(errors="replace")) for key in keys[:_SHOWN_KEYS].to_pylist())
    more = ", …" if count > _SHOWN_KEYS else ""
    return DataError(where, f"{count} keys {problem}: {shown}{more}", "each example of the split, once", _WAY_OUT)
