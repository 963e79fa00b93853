"""TF Lite models of a run: converted from the stored model, measured on the test split, written beside it.

Comes in: the evaluation's request. Goes out: a line for each form that was asked for, with size, metrics and the
difference to the full model, or why there is none: an optional artifact never fails a run.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from trainer.contract.documents import EvaluateRequest, LiteArtifact, Manifest, ManifestSplit, Quality
from trainer.errors import DataError, StorageError
from trainer.evaluation.lite.convert import WEIGHTS_ONLY
from trainer.evaluation.lite.interpreter import Arrays, LiteModel
from trainer.features.preprocessing import FeatureColumns
from trainer.features.values import parse_feature
from trainer.features.vocabulary import Vocabulary
from trainer.input import open_source
from trainer.input.source import ParseSpec, Split, Tensors
from trainer.objective.labels import label_type, weight_type
from trainer.objective.metrics import Floats
from trainer.objective.quality import measure_by
from trainer.saved_model.model import VOCABULARY_PATH
from trainer.storage import Storage, join_uri

LOGGER = logging.getLogger(__name__)
SAMPLES = 256
"""Examples of the training split that calibrate; TensorFlow's guide asks for 100 to 500."""

STRAYS = 0.01
"""Of the metric: from so far off the full model's, activations in 8 bits are held against those in float32."""

_SAMPLED_FILES = 4
_ROWS_AT_ONCE, _IMAGES_AT_ONCE = 256, 16
_TIMEOUT_S = 900
_SHOWN_CHARACTERS = 400
_FAULTS = (DataError, RuntimeError, ValueError, TypeError, tf.errors.OpError)


@dataclass(frozen=True, kw_only=True)
class Converted:
    """A conversion's outcome.

    Attributes:
        content: Of the file; None: it did not work.
        message: How it was done, or why not.
    """

    content: bytes | None
    message: str


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A form that was tried: what it came to, and its file where there is one."""

    artifact: LiteArtifact
    content: bytes | None


def strays(difference: float | None, full: float | None) -> bool:
    """Return whether a metric is further off the full model's than `STRAYS` of that."""
    return difference is not None and full is not None and abs(difference) > STRAYS * abs(full)


def _nearer(calibrated: Measured, weights: Measured, metric: str) -> Measured:
    """Return the form whose metric is nearer to the full model's; the second one says why it was made."""
    off, other = calibrated.artifact.difference, weights.artifact.difference
    if off is None or other is None or abs(other) >= abs(off):
        return calibrated
    message = f"weights in 8 bits, activations in float32: with these in 8 bits too, {metric} was off by {off:+.4f}"
    return replace(weights, artifact=replace(weights.artifact, message=message))


def make_lite_models(
    request: EvaluateRequest, manifest: Manifest, split: Split, full: Quality, storage: Storage
) -> tuple[LiteArtifact, ...]:
    """Convert, measure and write every form that is asked for.

    Args:
        manifest: Of the run: its training split gives the examples that calibrate.
        full: Quality of the full model on it.
        storage: Where models are.

    Raises:
        StorageError: Storage did not answer.
    """
    if request.lite is None:
        return ()
    artifacts = []
    with tempfile.TemporaryDirectory(prefix="trainer-lite-") as folder:
        columns = FeatureColumns(request.features, manifest.columns, manifest.images)
        place = _Place(Path(folder))
        storage.download_folder(request.challenger.model_uri, place.model)
        vocabulary = place.vocabulary()
        samples = vocabulary.encode(_samples(manifest, columns, storage))
        np.savez(place.samples, **samples)  # type: ignore[arg-type]  # names are columns
        rows = len(next(iter(samples.values())))

        def measured(form: str, converted: Converted) -> Measured:
            artifact = _measured(form, converted, request, manifest, split, columns, full, vocabulary)
            return Measured(artifact=artifact, content=converted.content)

        for form in request.lite.forms:
            found = measured(form, _convert_model(form, place, rows))
            if form == "int8" and strays(found.artifact.difference, getattr(full, request.metric)):
                found = _nearer(found, measured(form, _run_converter(WEIGHTS_ONLY, place)), request.metric)
            artifact = found.artifact
            if found.content is not None and artifact.metrics is not None:
                artifact = _write(artifact, found.content, vocabulary, request.lite.folder_uri, storage)
            severity = logging.WARNING if artifact.metrics is None else logging.INFO
            LOGGER.log(severity, "evaluate: TF Lite %s: %s", form, _line(artifact))
            artifacts.append(artifact)
    return tuple(artifacts)


class _Place:
    """Files of the conversion."""

    def __init__(self, folder: Path) -> None:
        self.model, self.samples, self.output = folder / "model", folder / "samples.npz", folder / "converted.tflite"

    def vocabulary(self) -> Vocabulary:
        """Read the model's; one of an earlier release has none, and reads texts, which cannot be converted."""
        path = self.model / VOCABULARY_PATH
        return Vocabulary.read(path.read_bytes()) if path.exists() else Vocabulary(codes={})


def _write(
    artifact: LiteArtifact, content: bytes, vocabulary: Vocabulary, folder_uri: str, storage: Storage
) -> LiteArtifact:
    """Write the model, and beside it the ids that it wants for texts."""
    uri, vocabulary_uri = join_uri(folder_uri, f"{artifact.form}.tflite"), None
    storage.replace(uri, content)
    if vocabulary.codes:
        vocabulary_uri = join_uri(folder_uri, "vocabulary.json")
        storage.replace(vocabulary_uri, vocabulary.serialise())
    return replace(artifact, uri=uri, vocabulary_uri=vocabulary_uri)


def _samples(manifest: Manifest, columns: FeatureColumns, storage: Storage) -> Arrays:
    """Return some training examples, from files spread over the whole window."""
    sampled = {"train": _few_files(manifest.splits["train"])}
    taken: list[dict[str, Any]] = []
    rows = 0
    with open_source(manifest, sampled, storage) as source:
        for batch in source.open_split("train").batches(columns.parse_spec(), 0):
            raw = columns.raw(batch)
            taken.append({name: values.numpy()[: SAMPLES // _SAMPLED_FILES] for name, values in raw.items()})
            rows += len(next(iter(taken[-1].values())))
            if rows >= SAMPLES:
                break
    return {name: np.concatenate([part[name] for part in taken])[:SAMPLES] for name in taken[0]}


def _few_files(split: ManifestSplit) -> ManifestSplit:
    chosen = [file for file in split.files if file.rows]
    if len(chosen) > _SAMPLED_FILES:
        places = np.linspace(0, len(chosen) - 1, _SAMPLED_FILES).astype(int)
        chosen = [chosen[place] for place in places]
    return ManifestSplit(rows=sum(file.rows for file in chosen), files=tuple(chosen)) if chosen else split


def _convert_model(form: str, place: _Place, rows: int) -> Converted:
    """Convert; int8 without calibration, by so many examples, where that fails."""
    if form == "float16":
        converted = _run_converter(form, place)
        return replace(converted, message="weights in 16 bits") if converted.content else converted
    converted = _run_converter("int8", place)
    if converted.content:
        return replace(converted, message=f"layers in 8 bits, calibrated with {rows} training examples")
    weights = _run_converter(WEIGHTS_ONLY, place)
    if weights.content is None:
        return weights
    return replace(
        weights, message=f"weights in 8 bits, activations in float32: calibration failed ({converted.message})"
    )


def _run_converter(form: str, place: _Place) -> Converted:
    place.output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "trainer.evaluation.lite.convert", form, place.model, place.samples, place.output]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            [str(part) for part in command], env=environment, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return Converted(content=None, message=f"not done after {_TIMEOUT_S} s")
    if done.returncode == 0:
        return Converted(content=place.output.read_bytes(), message="")
    if done.returncode < 0:
        return Converted(content=None, message=f"the converter died of {signal.Signals(-done.returncode).name}")
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return Converted(content=None, message=(lines[-1] if lines else "no reason given")[:_SHOWN_CHARACTERS])


def _measured(
    form: str,
    converted: Converted,
    request: EvaluateRequest,
    manifest: Manifest,
    split: Split,
    columns: FeatureColumns,
    full: Quality,
    vocabulary: Vocabulary,
) -> LiteArtifact:
    """Score the test split and hold the result against the full model's."""
    artifact = LiteArtifact(form=form, message=converted.message)  # type: ignore[arg-type]  # as in the request
    if converted.content is None:
        return artifact
    try:
        labels, scores, weights = _scores(LiteModel(converted.content, vocabulary), request, manifest, split, columns)
    except StorageError:
        raise
    except _FAULTS as error:
        return replace(artifact, message=f"cannot be run: {' '.join(str(error).split())[:_SHOWN_CHARACTERS]}")
    metrics = measure_by(request.label, labels, scores, weights)
    ours, theirs = (getattr(one, request.metric) for one in (metrics, full))
    return replace(
        artifact,
        bytes=len(converted.content),
        sha256=hashlib.sha256(converted.content).hexdigest(),
        metrics=metrics,
        difference=None if ours is None or theirs is None else ours - theirs,
    )


def _scores(
    model: LiteModel, request: EvaluateRequest, manifest: Manifest, split: Split, columns: FeatureColumns
) -> tuple[Floats, Floats, Floats | None]:
    """Score a split. → [n], [n] or [n, classes or quantiles], and weights [n] if examples have them."""
    label, weight = request.label, request.weight
    spec = {**columns.parse_spec(), label.name: parse_feature(label_type(label, manifest))}
    if weight:
        spec[weight] = parse_feature(weight_type(weight, manifest))
    images = any(feature.kind == "image" for feature in request.features)
    numbers: dict[str, list[Floats]] = {name: [] for name in (label.name, weight) if name}
    scores: list[Floats] = []
    for raw, parsed in _batches(split, spec, columns):
        for name, taken in numbers.items():
            taken.append(parsed[name].numpy().astype(np.float64))
        values = numbers[label.name][-1]
        step = _IMAGES_AT_ONCE if images else _ROWS_AT_ONCE
        for start in range(0, len(values), step):
            scores.append(model.predict({name: column[start : start + step] for name, column in raw.items()}))
    answers = np.concatenate(scores)
    if not np.isfinite(answers).all():
        raise DataError(
            "TF Lite model", f"{int((~np.isfinite(answers)).sum())} scores are not finite", "finite answers"
        )
    whole = {name: np.concatenate(taken) for name, taken in numbers.items()}
    return whole[label.name], answers, whole[weight] if weight else None


def _batches(split: Split, spec: ParseSpec, columns: FeatureColumns) -> Iterator[tuple[Arrays, Tensors]]:
    with split.reading(spec):
        for parsed in split.batches(spec):
            yield {name: values.numpy() for name, values in columns.raw(parsed).items()}, parsed


def _line(artifact: LiteArtifact) -> str:
    if artifact.metrics is None:
        return f"none: {artifact.message}"
    difference = "" if artifact.difference is None else f", {artifact.difference:+.4f} to the full model"
    return f"{artifact.bytes} bytes{difference}; {artifact.message}"
