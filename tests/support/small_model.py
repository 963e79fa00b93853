"""Values the core's tests start from: a small model, its plan, and documents that fit it."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import Any

import yaml

from retraining.core import documents, settings
from retraining.core.checks.dataset import check_data
from retraining.core.checks.history import NO_HISTORY, History
from retraining.core.data import snapshot, statistics
from retraining.core.planning import plan, windows
from retraining.core.spec.model import ModelSpec

SPEC_YAML = """
name: late
description: Will it be late?
schedule: "0 3 * * *"
data:
  query: late/examples.sql
  key: id
  event_time: at
  window_days: 10
  test_days: 2
  checks: {min_rows: 100, max_null_fraction: {distance: 0.1}, label_rate: [0.1, 0.5]}
features:
  - {name: carrier, kind: categorical, embedding_dim: 4}
  - {name: distance, kind: numeric}
label: {name: late, kind: binary}
training: {model: wide_deep, hyperparameters: {learning_rate: 0.01, hidden_units: [16, 8]}}
evaluation: {metric: auc, min_value: 0.6, slices: [carrier], promote: {min_examples: 10}}
"""
SQL = (
    "SELECT id, at, carrier, distance, late FROM source.rows "
    "WHERE at >= @window_start AND at < LEAST(@window_end, @as_of);"
)
AS_OF = datetime(2013, 11, 20, 3, tzinfo=UTC)
ENVIRON = {
    "RETRAINING_PROJECT": "my-project",
    "RETRAINING_REGION": "us-central1",
    "RETRAINING_BUCKET": "my-retraining",
    "RETRAINING_DATASET": "retraining",
    "RETRAINING_TRAINER_IMAGE": "us-central1-docker.pkg.dev/my-project/retraining/trainer:0.1.0",
}
SCHEMA = [
    {"name": "id", "type": "STRING", "mode": "NULLABLE"},
    {"name": "at", "type": "TIMESTAMP", "mode": "NULLABLE"},
    {"name": "carrier", "type": "STRING", "mode": "NULLABLE"},
    {"name": "distance", "type": "INT64", "mode": "NULLABLE"},
    {"name": "late", "type": "INTEGER"},
    {"name": "span", "type": "DATE"},
    {"name": "part", "type": "STRING"},
    {"name": "row_hash", "type": "INTEGER"},
    {"name": "shard", "type": "INTEGER"},
]


def spec_values(**changes: Any) -> dict[str, Any]:
    """The small model as plain values; `changes` replace whole sections."""
    return {**yaml.safe_load(SPEC_YAML), **changes}


def make_spec(**changes: Any) -> ModelSpec:
    """The small model."""
    return ModelSpec.model_validate(spec_values(**changes))


def make_plan(spec: ModelSpec | None = None, **changes: Any) -> documents.Plan:
    """A live, scheduled run of the small model; `changes` replace what was asked, or arguments of `build_plan`."""
    asked: dict[str, Any] = {
        "as_of": windows.AsOf(value=AS_OF, source="logical_date"),
        "mode": "live",
        "trigger": documents.Trigger(kind="scheduled", reason="cron 0 3 * * *"),
        "overrides": {},
        "dag_id": "retrain__late",
        "dag_run_id": "scheduled__2013-11-20T03:00:00+00:00",
    }
    fields = {field.name for field in dataclasses.fields(plan.AskedRun)}
    asked |= {name: changes.pop(name) for name in fields & set(changes)}
    own = plan.OwnFiles(assertions=changes.pop("assertions", {}), gates=changes.pop("gates", {}))
    given: dict[str, Any] = {
        "own": own,
        "spec": spec or make_spec(),
        "sql": SQL,
        "settings": settings.load(ENVIRON),
        **changes,
    }
    return plan.build_plan(plan.AskedRun(**asked), **given)


def fingerprint_rows(*days: str, rows: int = 90) -> list[dict[str, Any]]:
    """Rows of the fingerprint query: two parts per day."""
    return [
        {"span": day, "part": part, "row_count": count, "bit_xor": f"{index}", "hash_sum": f"{count}7", "shards": 1}
        for index, day in enumerate(days)
        for part, count in (("train", rows), ("validation", rows // 9))
    ]


def make_snapshot(the_plan: documents.Plan, **changes: Any) -> documents.Snapshot:
    """A snapshot of three days, none of them stored."""
    arguments: dict[str, Any] = {
        "plan": the_plan,
        "schema": SCHEMA,
        "fingerprint_rows": fingerprint_rows("2013-11-10", "2013-11-16", "2013-11-17"),
        "stored": {},
        "bytes_processed": 12345,
    }
    return snapshot.build_snapshot(**{**arguments, **changes})


DAYS = {"train": "2013-11-10", "validation": "2013-11-10", "test": "2013-11-17"}


def seconds(time: str) -> float:
    """Seconds since 1970 of a time in UTC without its zone."""
    return datetime.fromisoformat(f"{time}+00:00").timestamp()


def day_rows(
    split: str, day: str, count: int, *, rate: float | None = 0.2, nulls: int = 0, outside: int = 0
) -> list[dict[str, Any]]:
    """Rows of the statistics query about one day; `outside` numbers of `distance` are."""
    first, last = seconds(f"{day}T00:00:00"), seconds(f"{day}T23:59:59")
    return [
        fact("day", split, day=day, row_count=count, nulls=0, low=first, high=last),
        fact("day_label", day=day, row_count=count, mean=rate, outside=0),
        fact("watched", feature="id", day=day, row_count=count, nulls=0, outside=0),
        fact("watched", feature="distance", day=day, row_count=count, nulls=nulls, outside=outside, low=0.0, high=20.0),
    ]


def statistics_rows(
    *, rows: dict[str, int] | None = None, rate: float = 0.2, nulls: int = 0, carriers: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """Rows of the statistics query for the small model; the first one is about the keys."""
    rows = {"train": 80, "validation": 10, "test": 30} if rows is None else rows
    carriers = carriers or {"UA": 0.75, "AA": 0.25}
    total = sum(rows.values())
    result = [fact("keys", row_count=total, distinct_count=total, nulls=0, outside=0, also_tested=0)]
    for split, count in rows.items():
        day, positive = DAYS[split], round(count * rate)
        if split != "validation":  # which shares its days with train
            result += day_rows(split, day, count, rate=rate, nulls=nulls)
        else:
            result += day_rows(split, day, count, rate=rate)[:1]
        result += [
            fact("label", split, value="1", row_count=positive),
            fact("label", split, value="0", row_count=count - positive),
        ]
        result.append(
            fact(
                "numeric",
                split,
                "distance",
                row_count=count,
                nulls=nulls,
                low=0.0,
                high=20.0,
                mean=10.0,
                deviation=3.0,
                quantiles=[float(value) for value in range(21)],
            )
        )
        result += [
            fact("category", split, "carrier", row_count=int(count * share), value=value, distinct_count=len(carriers))
            for value, share in carriers.items()
        ]
    return result


def make_statistics(the_plan: documents.Plan, **changes: Any) -> documents.Statistics:
    """Statistics in which every check passes; `changes` as `statistics_rows` takes them."""
    return statistics.build_statistics(the_plan, make_snapshot(the_plan), statistics_rows(**changes))


def check_small_data(
    the_plan: documents.Plan,
    taken: documents.Snapshot,
    counted: documents.Statistics,
    history: History = NO_HISTORY,
) -> documents.Checks:
    """Return all findings but that the test rows are too few to judge by, as those of these small tables are."""
    checks = check_data(the_plan, taken, counted, history)
    return checks.model_copy(
        update={"findings": tuple(item for item in checks.findings if item.check != "min_evidence")}
    )


FACT = (
    "row_count",
    "nulls",
    "low",
    "high",
    "mean",
    "deviation",
    "quantiles",
    "distinct_count",
    "value",
    "outside",
    "also_tested",
    "correlation",
)


def fact(section: str, split: str = "", feature: str = "", **values: Any) -> dict[str, Any]:
    """A row of the statistics query."""
    return {"section": section, "split": split, "day": "", "feature": feature, **dict.fromkeys(FACT), **values}
