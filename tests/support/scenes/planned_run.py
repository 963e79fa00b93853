"""A run of the flights model in the cloud in memory, from its form to a run table of three days."""

from __future__ import annotations

from typing import Any

from retraining.core.documents import Plan
from retraining.core.naming import bigquery
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.operators.airflow.params import retrain_params
from retraining.operators.planning.run_plan import PlanRunOperator
from tests.support.fakes.cloud import FakeCloud

SPEC = load_spec(include_path() / "models" / "flight_delays.yaml")
FORM = {name: param.value for name, param in retrain_params(SPEC).items()}


def plan(cloud: FakeCloud, run: Any) -> dict[str, Any]:
    """Run the plan task."""
    return run.execute(PlanRunOperator(task_id="plan", model="flight_delays", cloud=cloud.connect))


def stored_plan(cloud: FakeCloud, result: dict[str, Any]) -> Plan:
    """The plan that a run stored."""
    return Plan.parse(cloud.artifacts.objects[result["plan_uri"]])


def fill(cloud: FakeCloud, planned: Plan) -> None:
    """Give the warehouse a run table of three days."""
    columns = [*SPEC.feature_names, SPEC.label.name, SPEC.data.key, SPEC.data.event_time, "span", "part"]
    kinds = {feature.name: "STRING" if feature.kind == "categorical" else "FLOAT" for feature in SPEC.features}
    cloud.warehouse.schemas[bigquery.run_table(planned)] = [
        {"name": name, "type": kinds.get(name, "STRING"), "mode": "NULLABLE"} for name in columns
    ]
    cloud.warehouse.rows["left out"] = [{"future": 0, "latest": None, "undated": 0}]
    cloud.warehouse.rows["fingerprint"] = [
        {"span": day, "part": "train", "row_count": 5, "bit_xor": "1", "hash_sum": "2", "shards": 1}
        for day in ("2013-11-16", "2013-11-17", "2013-11-18")
    ]
