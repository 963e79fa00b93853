"""What `make bench-train` trains on: flights as the exporter writes them, with manifest, statistics and request.

In: a folder and how many rows. Out: the documents of one run, on disk.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench import tables
from bench.input_files import Files, write_set
from trainer.contract import serialise
from trainer.documents import Column, Manifest, ManifestFile, ManifestSplit

RUN_KEY = "20130101t000000z-000000000000"
LABEL = "late"
NUMBERS = ("month", "day", "sched_dep_time", "sched_arr_time", "distance", "hour", "minute")
CATEGORIES = ("carrier", "origin", "dest")
_LATE_MINUTES = 15


def write_run(folder_path: Path, rows: int, validation_rows: int) -> None:
    """Write shards, manifest and statistics."""
    flights = tables.flights(rows + validation_rows)
    late = pc.fill_null(pc.greater(flights["arr_delay"], _LATE_MINUTES), False).cast(pa.int64())
    table = flights.select([*NUMBERS, *CATEGORIES]).append_column(LABEL, late)
    splits = {"train": table.slice(0, rows), "validation": table.slice(rows)}
    for name, part in splits.items():
        write_set(folder_path, name, part)
    written = {name: Files.load(folder_path, name) for name in splits}
    columns = written["train"].columns
    manifest = Manifest(
        model="bench",
        run_key=RUN_KEY,
        schema_hash="0" * 16,
        compression="NONE",
        schema=tuple(Column(name=name, type=type_, mode="NULLABLE") for name, type_ in columns.items()),
        table="bench.bench.bench",
        splits={**{name: _split(files) for name, files in written.items()}, "test": ManifestSplit(rows=0, files=())},
        spans=(),
        exported_rows=0,
        exported_bytes=0,
        seconds=0.0,
    )
    (folder_path / "manifest.json").write_bytes(serialise(manifest))
    (folder_path / "statistics.json").write_text(json.dumps(_statistics(splits["train"])))


def write_request(
    folder_path: Path, name: str, training: Mapping[str, Any], *, hidden_units: Sequence[int], seed: int = 1
) -> Path:
    """Write a train request whose outputs go to a folder of that name; gives its path."""
    out_path = folder_path / name
    out_path.mkdir()
    request = {
        "schema_version": 1,
        "kind": "train_request",
        "model": "bench",
        "run_key": RUN_KEY,
        "manifest_uri": str(folder_path / "manifest.json"),
        "statistics_uri": str(folder_path / "statistics.json"),
        "features": [
            *({"name": column, "kind": "numeric"} for column in NUMBERS),
            *({"name": column, "kind": "categorical"} for column in CATEGORIES),
        ],
        "label": {"name": LABEL, "kind": "binary"},
        "key": "flight",
        "training": {
            "model": "dense",
            "hyperparameters": {"hidden_units": list(hidden_units)},
            "early_stopping_patience": 0,
            "input": "tfrecord",
            **training,
        },
        "seed": seed,
        "model_uri": str(out_path / "model"),
        "report_uri": str(out_path / "report.json"),
        "checkpoint_uri": str(out_path / "checkpoints"),
        "tensorboard_uri": str(out_path / "logs"),
    }
    path = out_path / "request.json"
    path.write_text(json.dumps(request))
    return path


def _split(files: Files) -> ManifestSplit:
    return ManifestSplit(rows=files.rows, files=tuple(ManifestFile(**file) for file in files.files))


def _statistics(train: pa.Table) -> dict[str, Any]:
    features: dict[str, Any] = {}
    for name in NUMBERS:
        low_high = pc.min_max(train[name]).as_py()
        features[name] = {
            "kind": "numeric",
            "nulls": train[name].null_count,
            **low_high,
            "mean": pc.mean(train[name]).as_py(),
            "stddev": pc.stddev(train[name]).as_py(),
            "quantiles": [0.0] * 21,
        }
    for name in CATEGORIES:
        counted = sorted(pc.value_counts(train[name]).to_pylist(), key=lambda item: -item["counts"])
        top = [{"value": item["values"], "count": item["counts"]} for item in counted if item["values"] is not None]
        features[name] = {"kind": "categorical", "nulls": train[name].null_count, "distinct": len(top), "top": top}
    split = {"rows": train.num_rows, "features": features, "label": {"mean": 0.5, "nulls": 0}}
    return {
        "schema_version": 1,
        "kind": "statistics",
        "model": "bench",
        "run_key": RUN_KEY,
        "table": "bench.bench.bench",
        "window": {"start": "2013-01-01", "end": "2013-12-31", "test_start": "2013-12-30"},
        "keys": {"distinct": train.num_rows, "nulls": 0},
        "splits": dict.fromkeys(("train", "validation", "test"), split),
    }
