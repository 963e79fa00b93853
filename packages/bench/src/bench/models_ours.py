"""The trainer's default on the sets of `make bench-models`: the product's own code, from shards to the stored model.

In: a Parquet file that `models_data` wrote, and a seed. Out: what the stored model answers for the test split, and the
seconds of the training. The request is what a run of `make new-model`'s YAML asks: `wide_deep` or another architecture,
and the recipe for the rest. The trainer runs in this process, on shards that its own exporter wrote.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import tensorflow as tf

from bench.input_files import write_manifest, write_set
from bench.models_sets import Set
from retraining.core.jobs.recipe import recipe_of
from trainer.cluster.replica import Replica
from trainer.contract.documents import Report, TrainRequest
from trainer.contract.reading import parse_document
from trainer.input import open_source
from trainer.saved_model.model import StoredModel
from trainer.storage import Storage
from trainer.telemetry.usage import Clock
from trainer.training.job import train
from trainer.training.training_job import TrainingJob

LABEL, PART = "label", "part"
RUN_KEY = "20131120t030000z-0a1b2c3d4e5f"
_QUANTILES = 21
_TOP = 1000

Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a training came to.

    Attributes:
        answers: For the rows of the test split.
        report: Of the training.
        seconds: From the request to the stored model.
    """

    answers: Floats
    report: Report
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Examples:
    """A set as the trainer reads it: shards, manifest and statistics in a folder.

    Attributes:
        folder_path: Of all of them.
        set_: What it is.
        test: Rows of the test split.
        train: Rows of the training split.
    """

    folder_path: Path
    set_: Set
    test: pa.Table
    train: pa.Table

    @classmethod
    def write(cls, path: Path, set_: Set, folder_path: Path) -> Examples:
        """Write a Parquet file's rows into a new folder."""
        folder_path.mkdir()
        table = _plain(pq.read_table(path), set_)
        parts = {name: table.filter(pc.equal(table[PART], name)).drop_columns([PART]) for name in _PARTS}
        for name in ("train", "validation"):
            write_set(folder_path, name, parts[name])
        write_manifest(folder_path, RUN_KEY, "NONE")
        (folder_path / "statistics.json").write_text(json.dumps(_statistics(parts["train"], set_)))
        return cls(folder_path=folder_path, set_=set_, test=parts["test"], train=parts["train"])

    @property
    def features(self) -> dict[str, str]:
        """Kinds by name, of columns that have a value."""
        names = [name for name in self.train.column_names if name != LABEL]
        return {name: _kind(self.train[name].type) for name in names if self.train[name].null_count < len(self.train)}

    def train_default(
        self, seed: int, model: str = "wide_deep", out: str = "", initial: Path | None = None, **training: object
    ) -> Trained:
        """Train, and ask the stored model.

        Args:
            seed: Of the request.
            model: The architecture.
            out: Folder of the training; by default one by architecture and seed.
            initial: Folder of an earlier training whose weights this one begins with.
            training: Over what the recipe says.
        """
        out_path = self.folder_path / (out or f"training-{model}-{seed}")
        storage, start = Storage(), time.monotonic()
        asked = self._request(out_path, seed, {"model": model, **training})
        asked |= _begin_with(initial) if initial else {}
        out_path.mkdir()
        (out_path / "train_request.json").write_text(json.dumps(asked))
        request = parse_document(TrainRequest, json.dumps(asked).encode(), "train_request")
        job = TrainingJob.from_request(request, storage, Replica(), Clock(start))
        with open_source(job.manifest, job.manifest.splits, storage) as source, _quiet():
            report = train(job, source)
        seconds = time.monotonic() - start
        if report is None:
            raise RuntimeError("the trainer wrote no report: this process is no chief")
        raw = {name: _raw(self.test[name], kind) for name, kind in self.features.items()}
        answers = StoredModel(out_path / "model", request.model_uri).predict(raw)
        tf.keras.backend.clear_session()
        return Trained(answers=answers, report=report, seconds=seconds)

    def _request(self, out_path: Path, seed: int, training: Mapping[str, Any]) -> dict[str, Any]:
        recipe = recipe_of(training["model"], len(self.train))
        classes = int(pc.max(self.train[LABEL]).as_py()) + 1
        label: dict[str, Any] = {"name": LABEL, "kind": self.set_.kind}
        if self.set_.kind == "multiclass":
            label["classes"] = classes
        if self.set_.is_count:
            label["loss"] = "poisson"
        return {
            "schema_version": 1,
            "kind": "train_request",
            "model": "bench",
            "run_key": RUN_KEY,
            "manifest_uri": str(self.folder_path / "manifest.json"),
            "statistics_uri": str(self.folder_path / "statistics.json"),
            "features": [{"name": name, "kind": kind} for name, kind in self.features.items()],
            "label": label,
            "key": "row",
            "training": {**recipe.as_training(), **training},
            "seed": seed,
            "trial_metric": None,
            "priors": [],
            "model_uri": str(out_path / "model"),
            "report_uri": str(out_path / "report.json"),
            "checkpoint_uri": str(out_path / "checkpoints"),
            "tensorboard_uri": str(out_path / "logs"),
        }


def _begin_with(path: Path) -> dict[str, Any]:
    """Return what names an earlier training as the one to begin with."""
    model_digest = json.loads((path / "report.json").read_text())["model_digest"]
    uris = {"model_uri": "model", "request_uri": "train_request.json", "report_uri": "report.json"}
    return {
        "initial": {
            "version_id": "1",
            "run_key": RUN_KEY,
            "model_digest": model_digest,
            **{key: str(path / name) for key, name in uris.items()},
        }
    }


_PARTS = ("train", "validation", "test")


def _plain(table: pa.Table, set_: Set) -> pa.Table:
    """Give columns the types that BigQuery has: texts, floats, and whole numbers for classes."""
    fields = []
    for field in table.schema:
        text = pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
        fields.append(pa.field(field.name, pa.string() if text else pa.float64()))
    plain = table.cast(pa.schema(fields))
    if set_.kind == "regression":
        return plain
    place = plain.column_names.index(LABEL)
    return plain.set_column(place, LABEL, plain[LABEL].cast(pa.int64()))


def _kind(type_: pa.DataType) -> str:
    return "categorical" if pa.types.is_string(type_) else "numeric"


def _raw(column: pa.ChunkedArray, kind: str) -> tf.Tensor:
    """Return a column as a prediction request has it."""
    if kind == "categorical":
        return tf.constant(column.fill_null("").to_pylist())
    return tf.constant(column.to_numpy(), tf.float32)  # NaN for null


def _statistics(train: pa.Table, set_: Set) -> dict[str, Any]:
    """Return what BigQuery would have counted."""
    label = _label_statistics(train[LABEL], set_)
    features = {name: _feature_statistics(train[name]) for name in train.column_names if name != LABEL}
    split = {
        "rows": len(train),
        "first_event": None,
        "last_event": None,
        "features": {name: found for name, found in features.items() if found},
        "label": label,
    }
    return {
        "schema_version": 1,
        "kind": "statistics",
        "model": "bench",
        "run_key": RUN_KEY,
        "table": "bench.bench.bench",
        "window": {"start": "2013-01-01", "end": "2013-12-31", "test_start": "2013-12-30"},
        "keys": {"distinct": len(train), "nulls": 0, "in_two_parts": 0, "also_tested": 0},
        "splits": dict.fromkeys(_PARTS, split),
        "days": [],
        "quarantined": [],
    }


def _feature_statistics(column: pa.ChunkedArray) -> dict[str, Any] | None:
    if column.null_count == len(column):
        return None
    if _kind(column.type) == "categorical":
        counted = sorted(pc.value_counts(column.drop_null()).to_pylist(), key=lambda item: -item["counts"])
        top = [{"value": item["values"], "count": item["counts"]} for item in counted[:_TOP]]
        return {"kind": "categorical", "nulls": column.null_count, "distinct": len(counted), "top": top}
    return {"kind": "numeric", "nulls": column.null_count, **_numbers(column.drop_null().to_numpy())}


def _label_statistics(column: pa.ChunkedArray, set_: Set) -> dict[str, Any]:
    values = column.to_numpy()
    found: dict[str, Any] = {"mean": None, "nulls": 0, "counts": None, "outside": None, "numbers": None}
    if set_.kind == "regression":
        numbers = _numbers(values)
        found["numbers"] = {**numbers, "trained_mean": numbers["mean"], "trained_stddev": numbers["stddev"]}
    elif set_.kind == "multiclass":
        found["counts"] = np.bincount(values).tolist()
    else:
        found["mean"] = float(values.mean())
    return found


def _numbers(values: Floats) -> dict[str, Any]:
    return {
        "min": float(values.min()),
        "max": float(values.max()),
        "mean": float(values.mean()),
        "stddev": float(values.std()),
        "quantiles": np.quantile(values, np.linspace(0, 1, _QUANTILES)).tolist(),
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep the trainer's progress out of the table."""
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
