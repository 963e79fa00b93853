"""A small run of a model called `parcels`, whole and on local disk: rows, requests, and the exporter's output.

The label depends on distance and carrier, so that a model has something to learn. Rows come from memory; the export
itself is the real one.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.support.job_log import collect_messages
from trainer.cluster.replica import Replica
from trainer.contract.documents import EvaluateRequest, ExportRequest, Manifest, Report, TrainRequest
from trainer.contract.reading import parse_document
from trainer.export.job import Patience, SpanExport
from trainer.export.work import Unit
from trainer.input import open_source
from trainer.storage import Storage
from trainer.telemetry.usage import Clock
from trainer.training.training_job import TrainingJob

RUN_KEY = "20240110t030000z-0a1b2c3d4e5f"
FIRST_DAY = datetime.date(2024, 1, 1)
CARRIERS = ("AA", "DL", "UA", "Ünter")
SCHEMA = [
    {"name": "parcel_id", "type": "STRING", "mode": "REQUIRED"},
    {"name": "carrier", "type": "STRING", "mode": "NULLABLE"},
    {"name": "zone", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "distance", "type": "INTEGER", "mode": "NULLABLE"},
    {"name": "weight", "type": "FLOAT", "mode": "NULLABLE"},
    {"name": "express", "type": "BOOLEAN", "mode": "NULLABLE"},
    {"name": "late", "type": "INTEGER", "mode": "NULLABLE"},
]
LABEL_STATISTICS = {"mean": 0.5, "nulls": 0, "counts": None, "outside": None}
FEATURES = [
    {"name": "carrier", "kind": "categorical", "embedding_dim": 4},
    {"name": "zone", "kind": "categorical", "embedding_dim": 2},
    {"name": "distance", "kind": "numeric", "normalize": True, "missing": "mean"},
    {"name": "weight", "kind": "numeric", "normalize": True, "missing": "zero"},
    {"name": "express", "kind": "numeric", "normalize": False, "missing": "zero"},
]


def make_rows(days: int = 6, rows_per_day: int = 200, seed: int = 0) -> pa.Table:
    """Rows of the run table: a day per span, some values missing."""
    random = np.random.default_rng(seed)
    count = days * rows_per_day
    carrier = random.integers(0, len(CARRIERS), count)
    distance = random.integers(1, 3000, count)
    late = random.random(count) < 1 / (1 + np.exp(-(distance - 1500) / 300 - (carrier == 1) * 2))
    weight = random.normal(10, 4, count)
    missing = random.random((3, count)) < 0.05
    return pa.table(
        {
            "parcel_id": [f"parcel-{index}" for index in range(count)],
            "carrier": pa.array(
                [None if gone else CARRIERS[index] for index, gone in zip(carrier, missing[0], strict=True)]
            ),
            "zone": pa.array(random.integers(1, 5, count)),
            "distance": pa.array(distance, mask=missing[1]),
            "weight": pa.array(weight, mask=missing[2]),
            "express": pa.array(random.random(count) < 0.5),
            "late": pa.array(late.astype(np.int64)),
            "span": pa.array([FIRST_DAY + datetime.timedelta(days=index // rows_per_day) for index in range(count)]),
            "part": pa.array(np.where(random.random(count) < 0.2, "validation", "train").tolist()),
            "shard": pa.array((np.arange(count) % 2).astype(np.int64)),
            "row_hash": pa.array(random.permutation(count).astype(np.int64) * 7919 - 1_000_000),
        }
    )


class MemoryReader:
    """Gives rows from memory, shuffled as a real read session may give them; counts its calls."""

    def __init__(self, rows: pa.Table, seed: int = 0, batch_rows: int = 1000) -> None:
        self.rows, self.calls = rows, 0
        self._random = np.random.default_rng(seed)
        self._batch_rows = batch_rows

    def open_streams(self, _table: str, units: Sequence[Unit], _streams: int) -> list[Iterator[pa.RecordBatch]]:
        """Return the units' rows in another order each time."""
        self.calls += 1
        table = pa.concat_tables([rows_of(self.rows, unit) for unit in units])
        if units[0].span == "golden":
            table = table.drop_columns(["span", "part"])
        shuffled = table.take(self._random.permutation(table.num_rows)).combine_chunks()
        return [iter(shuffled.to_batches(self._batch_rows))] if table.num_rows else []


def rows_of(rows: pa.Table, unit: Unit) -> pa.Table:
    """Return the rows of one unit."""
    chosen = pc.equal(rows["shard"], pa.scalar(unit.shard))
    if unit.span != "golden":
        chosen = pc.and_(chosen, pc.equal(rows["part"], pa.scalar(unit.part)))
        chosen = pc.and_(chosen, pc.equal(rows["span"], pa.scalar(datetime.date.fromisoformat(unit.span))))
    return rows.filter(chosen)


@dataclass
class Run:
    """Documents of one run below a folder."""

    path: Path
    rows: pa.Table
    compression: str = "GZIP"
    shards: int = 2
    storage: Storage = field(default_factory=Storage)

    def uri(self, name: str) -> str:
        """Return an address below the run's folder."""
        return str(self.path / name)

    def export_json(self, **changes: Any) -> dict[str, Any]:
        """Return an export request of all spans."""
        spans = [self._span(day) for day in sorted(set(self.rows["span"].to_pylist()))]
        return {
            "schema_version": 1,
            "kind": "export_request",
            "model": "parcels",
            "run_key": RUN_KEY,
            "table": "project.dataset.parcels",
            "schema": SCHEMA,
            "schema_hash": "0123456789abcdef",
            "compression": self.compression,
            "spans_uri": self.uri("spans"),
            "spans": spans,
            "quarantined": [],
            "test_start": spans[-2]["span"],
            "manifest_uri": self.uri("manifest.json"),
            "format": "tfrecord",
            "layout": {"numeric": [], "rows_per_record": 1},
            "images": [],
            "only": "all",
            "golden": None,
            **changes,
        }

    def export_request(self, **changes: Any) -> ExportRequest:
        """Return it as a document."""
        return parse_document(ExportRequest, json.dumps(self.export_json(**changes)).encode(), "export_request")

    def export(
        self,
        replica: Replica | None = None,
        reader: MemoryReader | None = None,
        patience: Patience | None = None,
        **changes: Any,
    ) -> list[str]:
        """Export for real; gives what it logged."""
        said: list[str] = []
        request = self.export_request(**changes)
        reader = reader or MemoryReader(self.rows)
        with collect_messages(said):
            SpanExport(request, self.storage, reader, replica or Replica(), patience).write_spans()
        return said

    def golden(self, shards: int = 2, action: str = "export") -> dict[str, Any]:
        """Return the work of a frozen set: the same rows, in a table that has neither span nor part."""
        return {
            "table": "project.dataset.golden",
            "fingerprint": "f" * 32,
            "rows": self.rows.num_rows,
            "shards": shards,
            "action": action,
            "because": "new frozen set",
        }

    def manifest(self) -> Manifest:
        """Read the manifest."""
        return parse_document(Manifest, (self.path / "manifest.json").read_bytes(), "manifest")

    def files(self) -> dict[str, bytes]:
        """Return every file of the span store with its bytes."""
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted((self.path / "spans").rglob("*"))
            if path.is_file()
        }

    def write_statistics(self) -> None:
        """Write what BigQuery would have counted."""
        test_start = datetime.date.fromisoformat(self.export_json()["test_start"])
        train = self.rows.filter(
            pc.and_(pc.less(self.rows["span"], pa.scalar(test_start)), pc.equal(self.rows["part"], "train"))
        )
        features = {feature["name"]: _statistics(train[feature["name"]], feature["kind"]) for feature in FEATURES}
        split = {"rows": train.num_rows, "first_event": None, "last_event": None, "features": features}
        split["label"] = LABEL_STATISTICS
        document = {
            "schema_version": 1,
            "kind": "statistics",
            "model": "parcels",
            "run_key": RUN_KEY,
            "table": "project.dataset.parcels",
            "window": {"start": "2024-01-01", "end": "2024-01-07", "test_start": test_start.isoformat()},
            "keys": {"distinct": self.rows.num_rows, "nulls": 0, "in_two_parts": 0, "also_tested": 0},
            "splits": dict.fromkeys(("train", "validation", "test"), split),
            "days": [],
            "quarantined": [],
        }
        (self.path / "statistics.json").write_text(json.dumps(document))

    def train_json(self, out: str = "training", **changes: Any) -> dict[str, Any]:
        """Return a train request; `training` is laid over its defaults."""
        training = {
            "model": "wide_deep",
            "epochs": 3,
            "batch_size": 64,
            "hyperparameters": {"learning_rate": 0.01, "dropout": 0.1, "hidden_units": [16, 8]},
            "early_stopping_patience": 0,
            "input": "tfrecord",
        }
        return {
            "schema_version": 1,
            "kind": "train_request",
            "model": "parcels",
            "run_key": RUN_KEY,
            "manifest_uri": self.uri("manifest.json"),
            "statistics_uri": self.uri("statistics.json"),
            "features": FEATURES,
            "label": {"name": "late", "kind": "binary"},
            "key": "parcel_id",
            "training": {**training, **changes.pop("training", {})},
            "seed": 7,
            "trial_metric": None,
            "priors": [],
            "model_uri": self.uri(f"{out}/model"),
            "report_uri": self.uri(f"{out}/report.json"),
            "checkpoint_uri": self.uri(f"{out}/checkpoints"),
            "tensorboard_uri": self.uri(f"{out}/logs"),
            **changes,
        }

    def train_request(self, out: str = "training", **changes: Any) -> TrainRequest:
        """Return it as a document."""
        return parse_document(TrainRequest, json.dumps(self.train_json(out, **changes)).encode(), "train_request")

    def train_request_in(self, folder: Path, **changes: Any) -> TrainRequest:
        """Return one whose outputs go into a folder of its own."""
        uris = {"model_uri": "model", "report_uri": "report.json"}
        uris |= {"checkpoint_uri": "checkpoints", "tensorboard_uri": "logs"}
        return self.train_request(**{field: str(folder / name) for field, name in uris.items()}, **changes)

    def train(
        self,
        request: TrainRequest,
        said: list[str] | None = None,
        *,
        storage: Storage | None = None,
        replica: Replica | None = None,
    ) -> Report:
        """Train in this process."""
        from trainer.training.job import train

        job = self.job(request, storage, replica)
        lines = said if said is not None else []
        with collect_messages(lines), open_source(job.manifest, job.manifest.splits, self.storage) as source:
            report = train(job, source)
        assert report is not None
        return report

    def job(self, request: TrainRequest, storage: Storage | None = None, replica: Replica | None = None) -> TrainingJob:
        """Return a training of this run."""
        clock = Clock(time.monotonic())
        return TrainingJob.from_request(request, storage or self.storage, replica or Replica(), clock)

    def evaluate_json(self, challenger: str, champion: str | None, **changes: Any) -> dict[str, Any]:
        """Return an evaluate request."""
        version = {"version_name": "m@1", "version_id": "1", "run_key": RUN_KEY, "as_of": "2024-01-09T03:00:00Z"}
        return {
            "schema_version": 1,
            "kind": "evaluate_request",
            "model": "parcels",
            "run_key": RUN_KEY,
            "manifest_uri": self.uri("manifest.json"),
            "split": "test",
            "features": FEATURES,
            "label": {"name": "late", "kind": "binary"},
            "key": "parcel_id",
            "challenger": {"model_uri": challenger},
            "champion": None if champion is None else {"model_uri": champion, **version},
            "champion_skipped": None if champion else "there is none",
            "golden": False,
            "prove_unseen": [],
            "slices": ["carrier", "express"],
            "min_slice_examples": 80,
            "metric": "auc",
            "bootstrap": {"samples": 200, "seed": 3, "confidence": 0.9},
            "evaluation_uri": self.uri("evaluation.json"),
            **changes,
        }

    def evaluate_request(self, challenger: str, champion: str | None, **changes: Any) -> EvaluateRequest:
        """Return it as a document."""
        content = json.dumps(self.evaluate_json(challenger, champion, **changes)).encode()
        return parse_document(EvaluateRequest, content, "evaluate_request")

    def write(self, name: str, document: dict[str, Any]) -> str:
        """Write a request; gives its path."""
        path = self.path / name
        path.write_text(json.dumps(document))
        return str(path)

    def _span(self, day: datetime.date) -> dict[str, Any]:
        rows = self.rows.filter(pc.equal(self.rows["span"], pa.scalar(day)))
        parts = []
        for part in ("train", "validation"):
            count = pc.sum(pc.equal(rows["part"], part)).as_py()
            parts.append({"part": part, "rows": count, "shards": self.shards})
        fingerprint = hashlib.sha256(f"{day} {rows.to_pylist()}".encode()).hexdigest()[:32]
        return {
            "span": day.isoformat(),
            "fingerprint": fingerprint,
            "parts": parts,
            "action": "export",
            "because": "new span",
        }


def _statistics(column: pa.ChunkedArray, kind: str) -> dict[str, Any]:
    if kind == "numeric":
        values = column.cast(pa.float64()) if not pa.types.is_boolean(column.type) else column.cast(pa.int64())
        return {
            "kind": kind,
            "nulls": column.null_count,
            "min": float(pc.min(values).as_py()),
            "max": float(pc.max(values).as_py()),
            "mean": pc.mean(values).as_py(),
            "stddev": pc.stddev(values).as_py(),
            "quantiles": np.quantile(values.drop_null().to_numpy(), np.linspace(0, 1, 21)).tolist(),
        }
    counted = [item for item in pc.value_counts(column).to_pylist() if item["values"] is not None]
    counted.sort(key=lambda item: (-item["counts"], str(item["values"])))
    top = [{"value": str(item["values"]), "count": item["counts"]} for item in counted]
    return {"kind": kind, "nulls": column.null_count, "distinct": len(top), "top": top}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run whose rows are there and nothing is exported."""
    return Run(path=tmp_path, rows=make_rows())


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """An exported run with statistics. Do not change it: write results below a folder of your own."""
    made = Run(path=tmp_path_factory.mktemp("exported"), rows=make_rows())
    made.export()
    made.write_statistics()
    return made


@pytest.fixture
def memory_reader() -> type[MemoryReader]:
    """The class of readers from memory."""
    return MemoryReader
