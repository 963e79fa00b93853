"""The evaluation job: challenger and champion score the same examples; nothing is decided here.

Comes in: an evaluate request, a source of examples and stored models. Goes out: `evaluation.json` with metrics, slices,
the interval of the difference, and the digests of the shards that both were judged on.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainer.contract import serialise
from trainer.documents import (
    Column,
    EvaluateRequest,
    Evaluation,
    Judged,
    JudgedShard,
    Manifest,
    ManifestSplit,
    SliceMetrics,
)
from trainer.errors import DataError, RequestError
from trainer.examples import label_type
from trainer.input.source import Source, Split
from trainer.metrics import Floats, bootstrap_difference, measure, measure_baseline
from trainer.models.features import as_number, as_text, parse_feature
from trainer.savedmodel import StoredModel
from trainer.storage import Storage

_TEXT_TYPES = ("STRING", "INTEGER", "BOOLEAN")


@dataclass(frozen=True, kw_only=True)
class Scored:
    """All examples of the split.

    Attributes:
        labels: [n]
        scores: By model, `challenger` first. [n] each
        slices: Text values by column. [n] each
    """

    labels: Floats
    scores: Mapping[str, Floats]
    slices: Mapping[str, npt.NDArray[np.object_]]


def evaluate(
    request: EvaluateRequest,
    manifest: Manifest,
    source: Source,
    storage: Storage,
    say: Callable[[str], None] = print,
) -> Evaluation:
    """Score, measure, and write the evaluation.

    Args:
        request: What to judge.
        manifest: Of the run.
        source: Opens the split.
        storage: Where models are and the evaluation goes.
        say: Takes one line of progress at a time.

    Raises:
        RequestError: No examples, an unknown column, or a model that cannot read these examples.
    """
    split = source.open_split(request.split)
    uris = {"challenger": request.challenger.model_uri}
    if request.champion is not None:
        uris["champion"] = request.champion.model_uri
    models = {name: load_model(uri, storage) for name, uri in uris.items()}
    scored = _score(request, manifest, split, models)
    judged = {name: _judge(request, scored, scores) for name, scores in scored.scores.items()}
    for name, found in judged.items():
        metrics = ", ".join(f"{key} {value:.4f}" for key, value in vars(found.metrics).items() if value is not None)
        say(f"evaluate: {name} on {len(scored.labels)} examples: {metrics}")
    evaluation = Evaluation(
        model=request.model,
        run_key=request.run_key,
        split=request.split,
        rows=len(scored.labels),
        label_rate=float(scored.labels.mean()),
        shards=_judged_shards(manifest.splits[request.split]),
        challenger=judged["challenger"],
        champion=judged.get("champion"),
        baseline=measure_baseline(scored.labels),
        difference=None
        if "champion" not in judged
        else bootstrap_difference(
            scored.labels,
            scored.scores["challenger"],
            scored.scores["champion"],
            metric=request.metric,
            samples=request.bootstrap.samples,
            seed=request.bootstrap.seed,
            confidence=request.bootstrap.confidence,
        ),
    )
    storage.write_once(request.evaluation_uri, serialise(evaluation))
    return evaluation


def _judged_shards(split: ManifestSplit) -> tuple[JudgedShard, ...]:
    return tuple(JudgedShard(uri=file.uri, sha256=file.sha256, rows=file.rows) for file in split.files)


def load_model(uri: str, storage: Storage) -> StoredModel:
    """Fetch and load a stored model.

    Raises:
        DataError: There is none, or it cannot be loaded.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        if not storage.download_folder(uri, path):
            raise DataError(uri, "there is no model", "a SavedModel folder", "Clear the run's train task")
        return StoredModel(path, uri)


def _score(request: EvaluateRequest, manifest: Manifest, split: Split, models: Mapping[str, StoredModel]) -> Scored:
    """Read the split once; every model scores each batch."""
    types = {column.name: column.type for column in manifest.schema if column.mode != "REPEATED"}
    inputs = _inputs(models, manifest.schema)
    label = request.label.name
    label_type(label, manifest)
    _require_slices(request.slices, types)
    names = {*inputs, label, *request.slices}
    parse_spec = {name: parse_feature(types[name]) for name in sorted(names)}
    labels: list[Any] = []
    scores: dict[str, list[Any]] = {name: [] for name in models}
    slices: dict[str, list[Any]] = {name: [] for name in request.slices}
    with split.reading(parse_spec):
        for parsed in split.batches(parse_spec):
            raw = {name: _raw(parsed[name], types[name], dtype) for name, dtype in inputs.items()}
            labels.append(parsed[label].numpy().astype(np.float64))
            for name, model in models.items():
                scores[name].append(model.predict(raw))
            for name, values in slices.items():
                values.append(as_text(parsed[name], types[name]).numpy())
    scored = Scored(
        labels=np.concatenate(labels),
        scores={name: np.concatenate(values) for name, values in scores.items()},
        slices={name: np.concatenate(values) for name, values in slices.items()},
    )
    split.require_rows(len(scored.labels))
    _require_finite(scored, label)
    return scored


def _inputs(models: Mapping[str, StoredModel], schema: Sequence[Column]) -> dict[str, str]:
    """Give every input that any model reads, with its dtype."""
    names = {column.name for column in schema}
    inputs: dict[str, str] = {}
    for model_name, model in models.items():
        for name, dtype in model.signature.inputs.items():
            if name not in names:
                raise DataError(
                    f"{model_name} model",
                    f"reads {name!r}, which these examples do not have",
                    f"columns {', '.join(sorted(names))}",
                    "Keep the column in the query while that model is the champion",
                )
            inputs[name] = dtype
    return inputs


def _raw(values: tf.Tensor, type_: str, dtype: str) -> tf.Tensor:
    return as_text(values, type_) if dtype == "string" else as_number(values)


def _require_slices(columns: Sequence[str], types: Mapping[str, str]) -> None:
    for column in columns:
        if types.get(column) not in _TEXT_TYPES:
            found = f"column of type {types[column]}" if column in types else "there is no such column"
            raise RequestError(f"slice {column!r}", found, f"a column of type {', '.join(_TEXT_TYPES)}")


def _require_finite(scored: Scored, label: str) -> None:
    wrong = int((~np.isin(scored.labels, (0, 1))).sum())
    if wrong:
        raise DataError(
            f"label {label!r}",
            f"{wrong} examples are missing it or have another value",
            "0 or 1",
            "Filter them in the query",
        )
    for name, scores in scored.scores.items():
        if not np.isfinite(scores).all():
            raise DataError(
                f"{name} model", f"{int((~np.isfinite(scores)).sum())} scores are not finite", "probabilities"
            )


def _judge(request: EvaluateRequest, scored: Scored, scores: Floats) -> Judged:
    """Measure one model on all examples and on every slice that is large enough, largest first."""
    slices = []
    for column, values in scored.slices.items():
        distinct, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
        for index in np.argsort(-counts, kind="stable"):
            if counts[index] >= request.min_slice_examples:
                chosen = inverse == index
                metrics = measure(scored.labels[chosen], scores[chosen])
                value = distinct[index].decode(errors="replace")
                slices.append(SliceMetrics(column=column, value=value, rows=int(counts[index]), metrics=metrics))
    return Judged(metrics=measure(scored.labels, scores), slices=tuple(slices))
