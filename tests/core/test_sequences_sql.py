"""The statistics query of sequences, run by the local BigQuery."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from retraining.core import documents, settings
from retraining.core.checks import dataset as checks
from retraining.core.data import columns as columns_of
from retraining.core.data import snapshot, statistics
from retraining.core.naming import bigquery as bigquery_names
from tests.support.small_model import make_plan, make_spec
from tests.support.warehouse import Warehouse

DATASET = "core_sequences"
QUERY = "SELECT id, at, pages, heat, truths, note, late FROM core_sequences.visits"


def rows() -> list[dict[str, Any]]:
    """A hundred visits on four days: up to three pages, every tenth none; two numbers, one NaN in all; notes."""
    made = []
    for index in range(100):
        pages = [] if index % 10 == 9 else ["home", "cart", "help"][: 1 + index % 3]
        heat = [float(index % 4), "NaN" if index == 0 else 10.0]
        at = datetime(2013, 11, 15 + index % 4, tzinfo=UTC)
        made.append(
            {
                "id": f"visit-{index}",
                "at": at.isoformat(),
                "late": index % 2,
                "pages": pages,
                "heat": heat,
                "truths": [True, False, False, False],
                "note": None if index == 7 else "ü" * (1 + index),
            }
        )
    return made


@pytest.fixture(scope="module")
def warehouse(local_cloud):
    """The local BigQuery with the rows in it."""
    found = Warehouse(local_cloud, DATASET)
    scalars, lists = (
        "id:STRING at:TIMESTAMP late:INTEGER note:STRING",
        "pages:STRING:REPEATED heat:FLOAT:REPEATED truths:BOOLEAN:REPEATED",
    )
    found.load(f"{local_cloud.project}.{DATASET}.visits", rows(), f"{scalars} {lists}")
    return found


def test_statistics_of_sequences(warehouse, local_cloud) -> None:
    features = [
        {"name": "pages", "kind": "sequence", "of": "categorical", "length": 2},
        {"name": "heat", "kind": "sequence", "of": "numeric", "length": 8},
        {"name": "truths", "kind": "sequence", "of": "numeric", "length": 8},
        {"name": "note", "kind": "text"},
    ]
    spec = make_spec(
        name="visits",
        data={
            "query": "visits.sql",
            "key": "id",
            "event_time": "at",
            "window_days": 10,
            "test_days": 2,
            "checks": {"min_rows": 10, "max_null_fraction": {"pages": 0.05}},
        },
        features=features,
        label={"name": "late", "kind": "binary"},
        training={"model": "gru"},
        evaluation={"metric": "auc", "min_value": 0.6},
    )
    plan = make_plan(spec, sql=QUERY, settings=settings.load(local_cloud.env))
    warehouse.run(snapshot.render_snapshot_sql(plan))
    schema = warehouse.columns(bigquery_names.run_table(plan))
    taken = documents.Snapshot.model_construct(
        table=bigquery_names.run_table(plan), columns=columns_of.own_columns(schema), left_out=None
    )
    found = statistics.build_statistics(plan, taken, warehouse.run(statistics.render_statistics_sql(plan, taken)))
    splits = found.splits.values()
    pages = [split.features["pages"] for split in splits]
    assert sum(item.nulls for item in pages) == 10
    assert (min(item.min_length for item in pages), {item.max_length for item in pages}) == (1, {3})
    counted: dict[str, int] = {}
    for item in pages:
        assert (item.distinct, item.mean) == (3, None)
        assert [value.count for value in item.top] == sorted((value.count for value in item.top), reverse=True)
        counted = {value.value: counted.get(value.value, 0) + value.count for value in item.top}
    assert counted == {"home": 90, "cart": 60, "help": 30}
    test = found.splits["test"].features["heat"]  # the days of 2 and 3
    assert (test.min_length, test.max_length, test.mean, test.stddev) == (2, 2, 6.25, pytest.approx(3.766, abs=1e-3))
    assert found.splits["test"].features["truths"].mean == 0.25
    notes = [split.features["note"] for split in splits]
    assert sum(item.nulls for item in notes) == 1
    assert (min(item.min_length for item in notes), max(item.max_length for item in notes)) == (1, 100)
    assert {row.features["pages"].nulls for row in found.days} == {0, 5}
    findings = {finding.check: finding for finding in checks.check_data(plan, taken, found).findings}
    assert findings["max_null_fraction"].feature == "pages"
    assert "types" not in findings
