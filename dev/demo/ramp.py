"""Two nights with a ramp between them: the second one's model takes the traffic in steps.

Comes in: a running system on a bundle with `CANARY`. Goes out: both runs, told as they go. Minutes are real: endpoints
are measured by the minute, and what they measure is known three minutes later.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from demo.customers import Customers, beside, read_instances
from demo.dag_run import DAG_ID, MODEL
from retraining_laptop.airflow_api import AirflowApi
from retraining_laptop.dag_run import Outcome, run_dag
from retraining_laptop.summary import ramp_lines

CANARY = {
    "percent": [10, 100],
    "bake_minutes": 1,
    "min_requests": 20,
    "max_error_increase": 0.05,
    "max_latency_ratio": 20.0,
    "max_answer_shift": 0.3,
}
CUSTOMERS_ASK = 200


def with_canary(spec: dict[str, Any]) -> None:
    """Let new versions of a spec take the traffic in steps, also one that is only about as good as the champion."""
    spec["deployment"]["canary"] = CANARY
    spec["evaluation"]["promote"] |= {"min_gain": -0.05, "max_loss_from_best": 0.05}


def run_ramp(api: AirflowApi, as_of: str, *, project: str, say: Callable[[str], None], timeout_s: float) -> Outcome:
    """Run the night before, then the night of `as_of` while customers ask; tell the steps as they come.

    Args:
        api: Of the system.
        as_of: The logical date of the second night, ISO 8601.
        project: Of the bucket.
        say: Takes one line of progress at a time.
        timeout_s: Seconds until this gives up, each night.
    """
    before = (datetime.fromisoformat(as_of) - timedelta(days=1)).isoformat()
    night: dict[str, Any] = {"project": project, "say": say, "timeout_s": timeout_s, "repeat": False}
    first = run_dag(api, DAG_ID, before, **night)
    if first.state != "success" or not first.documents["deployment"]["deployed"]:
        return first
    plan, deployment = first.documents["plan"], first.documents["deployment"]
    customers = Customers(endpoint_name=deployment["endpoint_name"], instances=read_instances(plan, CUSTOMERS_ASK))
    told: list[str] = []

    def tell_steps() -> None:
        lines = ramp_lines(_read_rollout(plan).get("steps") or [])
        for line in lines[len(told) :]:
            say(line)
        told.extend(lines[len(told) :])

    with customers.asking(), beside(tell_steps, 2.0):
        second = run_dag(api, DAG_ID, as_of, **night)
    counts = Counter(answer.version_id for answer in customers.answers)
    by_version = ", ".join(f"{count:,} by version {name}" for name, count in sorted(counts.items()))
    say(f"customers  {counts.total():,} answers, none of them an error: {by_version}")
    return second


def _read_rollout(plan: dict[str, Any]) -> dict[str, Any]:
    from google.cloud import storage  # after the local cloud's variables are set

    blob = storage.Client(project=plan["project"]).bucket(plan["bucket"]).blob(f"{MODEL}/rollout.json")
    return dict(json.loads(blob.download_as_bytes()))
