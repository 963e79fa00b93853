"""Flights, and what a run of them holds: for the trainer's tests of labels, each of which brings its own columns."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tests.trainer.conftest import RUN_KEY, Run

COUNT, ROWS_PER_DAY = 600, 100
FEATURES: list[dict[str, Any]] = [
    {"name": "distance", "kind": "numeric", "normalize": True, "missing": "mean"},
    {"name": "carrier", "kind": "categorical", "embedding_dim": 2},
]
SCHEMA = [
    {"name": "flight_id", "type": "STRING", "mode": "REQUIRED"},
    {"name": "distance", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "carrier", "type": "STRING", "mode": "NULLABLE"},
]


def draw_features() -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    """Return the source of all chance, distances and which carriers are slow. [COUNT]."""
    random = np.random.default_rng(4)
    return random, random.uniform(100, 3000, COUNT), random.random(COUNT) < 0.5


def make_table(random: np.random.Generator, distance: np.ndarray, slow: np.ndarray, **labels: Any) -> pa.Table:
    """Return a run table: six days of these flights with labels of the test's own."""
    columns = {
        "flight_id": [f"flight-{index}" for index in range(COUNT)],
        "distance": distance,
        "carrier": np.where(slow, "slow", "fast").tolist(),
        **labels,
    }
    return pa.table(columns | place_rows(random, COUNT, ROWS_PER_DAY))


def place_rows(random: np.random.Generator, count: int, rows_per_day: int) -> dict[str, Any]:
    """Return the columns of a run table that say where each row goes."""
    first = datetime.date(2024, 1, 1)
    return {
        "span": [first + datetime.timedelta(days=index // rows_per_day) for index in range(count)],
        "part": np.where(random.random(count) < 0.2, "validation", "train").tolist(),
        "shard": (np.arange(count) % 2).astype(np.int64),
        "row_hash": random.permutation(count).astype(np.int64) * 7919,
    }


def label_statistics(values: np.ndarray, trained: np.ndarray) -> dict[str, Any]:
    """Return what BigQuery would have counted of a label that is a number."""
    numbers = {
        "min": values.min(),
        "max": values.max(),
        "mean": values.mean(),
        "stddev": values.std(),
        "quantiles": np.quantile(values, np.linspace(0, 1, 21)).tolist(),
        "trained_mean": trained.mean(),
        "trained_stddev": trained.std(),
    }
    return {"mean": None, "nulls": 0, "numbers": numbers}


def write_statistics(run: Run, name: str, **labels: Mapping[str, Any]) -> None:
    """Write the statistics of a run: those of its features, and of its labels, of which one is `label`."""
    numeric = {"kind": "numeric", "nulls": 0, "min": 100, "max": 3000, "mean": 1500, "stddev": 800, "quantiles": []}
    top = [{"value": value, "count": 1} for value in ("fast", "slow")]
    features = {"distance": numeric, "carrier": {"kind": "categorical", "nulls": 0, "distinct": 2, "top": top}}
    split = {"rows": 1, "features": features, **labels}
    document = {
        "schema_version": 1,
        "kind": "statistics",
        "model": "flights",
        "run_key": RUN_KEY,
        "table": "project.dataset.flights",
        "keys": {"distinct": 1, "nulls": 0},
        "window": {"start": "2024-01-01", "end": "2024-01-07", "test_start": "2024-01-05"},
        "splits": dict.fromkeys(("train", "validation", "test"), split),
    }
    (run.path / name).write_text(json.dumps(document))
