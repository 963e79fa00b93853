"""The statistics and requests queries of images and several classes, run by the local BigQuery."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core import documents, settings
from retraining.core.data import columns as columns_of
from retraining.core.data import snapshot, statistics
from retraining.core.naming import bigquery as bigquery_names
from tests.support.small_model import make_plan, make_spec
from tests.support.warehouse import Warehouse

DATASET = "core_classes"
QUERY = "SELECT id, at, image, digit FROM core_classes.images"


def rows() -> list[dict[str, Any]]:
    """Two hundred images on four days: classes 0 to 2, three labels that are none, one missing, ten missing images."""
    made = []
    for index in range(200):
        digit: int | None = {0: -1, 1: 17, 2: 3, 3: None}.get(index, index % 3)
        image = None if index % 20 == 5 else base64.b64encode(b"x" * (50 + index)).decode()
        at = datetime(2013, 11, 15 + index % 4, tzinfo=UTC)
        made.append({"id": f"image-{index}", "at": at.isoformat(), "image": image, "digit": digit})
    return made


@pytest.fixture(scope="module")
def warehouse(local_cloud):
    """The local BigQuery with the rows in it."""
    found = Warehouse(local_cloud, DATASET)
    found.load(f"{local_cloud.project}.{DATASET}.images", rows(), "id:STRING at:TIMESTAMP image:BYTES digit:INTEGER")
    return found


@pytest.fixture(scope="module")
def plan(local_cloud):
    """A run over them."""
    spec = make_spec(
        name="images",
        data={"query": "images.sql", "key": "id", "event_time": "at", "window_days": 10, "test_days": 2},
        features=[{"name": "image", "kind": "image", "height": 8, "width": 8, "channels": 1}],
        label={"name": "digit", "kind": "multiclass", "classes": 3},
        training={"model": "cnn"},
        evaluation={"metric": "accuracy", "min_value": 0.9},
    )
    return make_plan(spec, sql=QUERY, settings=settings.load(local_cloud.env))


def test_statistics_of_images_and_classes(warehouse, plan, local_cloud) -> None:
    warehouse.run(snapshot.render_snapshot_sql(plan))
    schema = warehouse.columns(bigquery_names.run_table(plan))
    columns = columns_of.own_columns(schema)
    assert {column.name: column.type for column in columns}["image"] == "BYTES"
    taken = documents.Snapshot.model_construct(table=bigquery_names.run_table(plan), columns=columns, left_out=None)
    counted = warehouse.run(statistics.render_statistics_sql(plan, taken))
    found = statistics.build_statistics(plan, taken, counted, statistics.build_days(plan, counted))
    splits = found.splits.values()
    assert [sum(split.label.counts[index] for split in splits) for index in range(3)] == [65, 66, 65]
    outside = [split.label.outside for split in splits if split.label.outside]
    assert sum(item.rows for item in outside) == 3
    assert (min(item.low for item in outside), max(item.high for item in outside)) == (-1, 17)
    assert sum(split.label.nulls for split in splits) == 1
    assert all(split.label.mean is None for split in splits)
    sizes = [split.features["image"] for split in splits]
    assert sum(item.nulls for item in sizes) == 10
    assert (min(item.min_bytes for item in sizes), max(item.max_bytes for item in sizes)) == (50, 249)
