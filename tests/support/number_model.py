"""A model whose label is a number, with what a run of it holds: for the core's tests."""

from __future__ import annotations

import json
import math
from typing import Any

from retraining.core import documents
from retraining.core.checks import dataset
from retraining.core.data import statistics
from retraining.core.promotion import gates
from tests.support.contracts import EXAMPLES
from tests.support.small_model import day_rows, fact, make_snapshot, make_spec

LABEL = {"name": "departures", "kind": "regression"}
QUANTILES = {**LABEL, "loss": "quantile", "quantiles": [0.1, 0.5, 0.9]}
TABLE = "my-project.retraining.requests_hourly"
EVALUATION = {
    "metric": "mae",
    "max_value": 3.0,
    "slices": ["origin"],
    "baselines": {"same_hour_last_week": "departures_last_week"},
    "promote": {"min_examples": 10, "max_slice_loss": 1.0},
}
SCHEMA = [
    {"name": name, "type": type_, "mode": "NULLABLE"}
    for name, type_ in (
        ("id", "STRING"),
        ("at", "TIMESTAMP"),
        ("origin", "STRING"),
        ("departures", "INTEGER"),
        ("departures_last_week", "FLOAT"),
    )
]


def make_hourly(**changes: Any):
    values: dict[str, Any] = {
        "name": "hourly",
        "data": {"query": "h.sql", "key": "id", "event_time": "at", "window_days": 10, "test_days": 2},
        "features": [{"name": "origin", "kind": "categorical"}],
        "label": LABEL,
        "training": {"model": "dense"},
        "evaluation": EVALUATION,
    }
    values["data"]["checks"] = {"min_rows": 10, **changes.pop("checks", {})}
    return make_spec(**{**values, **changes})


def taken(plan, schema: list[dict[str, str]] = SCHEMA):
    return make_snapshot(plan, schema=schema)


def rows(outside: int = 0, constant: tuple[str, ...] = (), means: tuple[float, ...] = (20, 21), log1p: bool = False):
    """Rows of the statistics query: 60 examples in each split, on two days."""
    found = [fact("keys", row_count=180, distinct_count=180, nulls=0, outside=0, also_tested=0)]
    for split, day in (("train", "2013-11-10"), ("validation", "2013-11-10"), ("test", "2013-11-17")):
        found.append(day_rows(split, day, 60)[0])
        found.append(fact("category", split, "origin", row_count=40, distinct_count=2, value="JFK"))
        found.append(fact("category", split, "origin", row_count=20, distinct_count=2, value="EWR"))
        spread = 0.0 if split in constant else 8.0
        right = {"low": 20 - spread, "high": 20 + spread, "mean": 20.0, "deviation": spread / 2}
        found.append(fact("label", split, value="right", row_count=60 - outside, quantiles=[20.0] * 21, **right))
        if outside:
            found.append(fact("label", split, value=None, row_count=outside, low=-3.0, high=math.inf))
        if log1p:
            found.append(fact("label", split, value="log1p", row_count=60, mean=3.0, deviation=0.4))
    for index, mean in enumerate(means):
        day = f"2013-11-{10 + 7 * index // max(len(means) - 1, 1):02d}"
        found.append(fact("day_label", day=day, row_count=60, mean=mean, deviation=5.0, outside=outside))
    return found


def judge(plan, **given: Any):
    snapshot = taken(plan)
    found = statistics.build_statistics(plan, snapshot, rows(**given))
    return found, dataset.check_data(plan, snapshot, found)


CHAMPION = gates.champion_of(
    version_name="projects/p/locations/r/models/hourly@3",
    version_id="3",
    model_uri="gs://my-retraining/hourly/runs/20131119t030000z-0123456789ab/training/model",
    run_key="20131119t030000z-0123456789ab",
)


def evaluation(plan, **changes: Any) -> documents.Evaluation:
    stored = json.loads((EXAMPLES / "evaluation__numbers.json").read_text())
    return documents.Evaluation.parse(json.dumps({**stored, "model": plan.model, "run_key": plan.run_key, **changes}))
