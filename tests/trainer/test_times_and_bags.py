"""A model of times and bags, whole: columns exported, trained on, stored, judged, and asked as serving asks."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.flights import place_rows
from tests.support.refusals import refuses
from trainer.contract.documents import Evaluation, Report
from trainer.errors import RequestError
from trainer.evaluation.job import evaluate
from trainer.input import open_source

SCHEMA = [
    {"name": "order_id", "type": "STRING", "mode": "REQUIRED"},
    {"name": "sent_at", "type": "TIMESTAMP", "mode": "NULLABLE"},
    {"name": "day", "type": "DATE", "mode": "NULLABLE"},
    {"name": "tags", "type": "STRING", "mode": "NULLABLE"},
    {"name": "late", "type": "INTEGER", "mode": "NULLABLE"},
]
TIMES = [
    {"name": "sent_at", "kind": "time", "parts": ["hour", "days"]},
    {"name": "day", "kind": "time", "parts": ["weekday", "month"]},
]
TAGS = {"name": "tags", "kind": "bag", "of": "values", "delimiter": ";", "hash_buckets": 50, "length": 4}
FEATURES = [*TIMES, TAGS]
UTC = datetime.UTC


def make_rows(days: int = 6, rows_per_day: int = 100) -> pa.Table:
    """Orders; late is what was sent before noon, or is heavy."""
    random = np.random.default_rng(4)
    count = days * rows_per_day
    seconds = random.integers(0, 400 * 86_400, count)
    sent = [datetime.datetime(2023, 1, 1, tzinfo=UTC) + datetime.timedelta(seconds=int(each)) for each in seconds]
    tags = [random.choice(["light", "heavy", "blue", "red"], random.integers(0, 4)).tolist() for _ in range(count)]
    late = [when.hour < 12 or "heavy" in some for when, some in zip(sent, tags, strict=True)]
    return pa.table(
        {
            "order_id": [f"order-{index}" for index in range(count)],
            "sent_at": pa.array([when if at % 50 else None for at, when in enumerate(sent)], pa.timestamp("us", "UTC")),
            "day": pa.array([when.date() for when in sent], pa.date32()),
            "tags": [";".join(some) for some in tags],
            "late": np.array(late).astype(np.int64),
            **place_rows(random, count, rows_per_day),
        }
    )


@pytest.fixture(scope="module")
def orders(exported, tmp_path_factory: pytest.TempPathFactory):
    """An exported run of orders."""
    run = type(exported)(path=tmp_path_factory.mktemp("orders"), rows=make_rows())
    run.export(schema=SCHEMA, model="orders")
    time = {"kind": "time", "nulls": 0, "min": 19_358.0, "max": 19_758.0, "mean": 19_558.0, "stddev": 115.0}
    found = {
        "sent_at": {**time, "nulls": 9},
        "day": time,
        "tags": {"kind": "bag", "nulls": 0, "min_length": 0, "max_length": 30, "mean_length": 9.0},
    }
    split = {"rows": 1, "features": found, "label": {"mean": 0.5, "nulls": 0, "counts": None, "outside": None}}
    events = {"first_event": "2024-01-01T00:00:00Z", "last_event": "2024-01-06T00:00:00Z"}
    document = {
        "schema_version": 1,
        "kind": "statistics",
        "model": "orders",
        "run_key": run.export_json()["run_key"],
        "table": "project.dataset.orders",
        "keys": {"distinct": 1, "nulls": 0, "in_two_parts": 0, "also_tested": 0},
        "days": [],
        "quarantined": [],
        "window": {"start": "2024-01-01", "end": "2024-01-07", "test_start": "2024-01-05"},
        "splits": {name: {**split, **events} for name in ("train", "validation", "test")},
    }
    (run.path / "statistics.json").write_text(json.dumps(document))
    return run


def start(run, out: Path, features: list[dict[str, Any]], **changes: Any) -> Report:
    """Train in this process."""
    training = {"model": "wide_deep", "epochs": 12, "batch_size": 32, "hyperparameters": {"learning_rate": 0.02}}
    label = {"name": "late", "kind": "binary"}
    request = run.train_request_in(
        out, training=training, model="orders", features=features, key="order_id", label=label, **changes
    )
    return run.train(request)


def judge(run, out: Path, challenger: str, champion: str, features: list[dict[str, Any]], **changes: Any) -> Evaluation:
    """Evaluate in this process."""
    wanted = {"model": "orders", "features": features, "key": "order_id", "slices": [], **changes}
    label = {"name": "late", "kind": "binary"}
    request = run.evaluate_request(
        challenger, champion, **{**wanted, "label": label, "evaluation_uri": str(out / "evaluation.json")}
    )
    manifest = run.manifest()
    with open_source(manifest, manifest.splits, run.storage) as source:
        return evaluate(request, manifest, source, run.storage)


@pytest.fixture(scope="module")
def trained(orders, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return start(orders, tmp_path_factory.mktemp("trained"), FEATURES)


@pytest.fixture(scope="module")
def without_tags(orders, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A champion that knows the times alone."""
    return start(orders, tmp_path_factory.mktemp("without"), TIMES)


def test_requests_are_whole_microseconds_and_texts(trained: Report, orders) -> None:
    """Of a DATE those of its midnight; what smoke requests hold are the table's own values."""
    assert trained.signature.inputs == {"sent_at": "int64", "day": "int64", "tags": "string"}
    rows = {int(row["sent_at"].timestamp() * 1_000_000): row for row in orders.rows.to_pylist() if row["sent_at"]}
    assert len(trained.golden) == 5
    for asked in trained.golden:
        row = rows[asked.instance["sent_at"]]
        midnight = datetime.datetime.combine(row["day"], datetime.time(), UTC)
        assert asked.instance["day"] == int(midnight.timestamp() * 1_000_000)
        assert asked.instance["tags"] == row["tags"]


def test_it_learns_both_and_is_judged_as_it_is_served(
    trained: Report, without_tags: Report, orders, tmp_path: Path
) -> None:
    """Beside a champion that lacks one; a session answers alike, to missing times and to the last one too."""
    found = judge(orders, tmp_path, trained.model_uri, without_tags.model_uri, FEATURES, show_rows=True)
    assert found.challenger.metrics.auc > 0.97
    assert found.champion.metrics.auc < found.challenger.metrics.auc - 0.05
    assert (found.serving.signature, found.serving.problem, found.serving.unanswered) == ((), None, ())
    assert found.serving.together.max_error < 1e-5
    assert found.serving.inputs >= 6
    assert set(found.worst[0].values) == {"sent_at", "day", "tags"}


@pytest.mark.parametrize(
    ("feature", "found", "expected"),
    [
        pytest.param({**TIMES[0], "name": "tags"}, "column of type STRING", "TIMESTAMP", id="time-of-a-text"),
        pytest.param({**TAGS, "name": "day"}, "column of type DATE", "STRING", id="bag-of-a-date"),
        pytest.param({"name": "day", "kind": "numeric"}, "column of type DATE", "INTEGER", id="number-of-a-date"),
    ],
)
def test_columns_of_other_types_are_refused(orders, tmp_path: Path, feature, found: str, expected: str) -> None:
    with refuses(RequestError, where=f"feature {feature['name']!r}", found=found, expected=expected):
        start(orders, tmp_path, [feature])
