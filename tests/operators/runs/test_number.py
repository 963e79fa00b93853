"""A night of a label that is a number, from its YAML to the endpoint, and a look of its monitor at the answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors
from google.cloud import aiplatform_v1

from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.hooks.cloud import Cloud
from retraining.operators.monitoring import measurement, watch
from retraining.operators.planning import run_plan
from tests.support.airflow_release import DownstreamTasksSkipped
from tests.support.scenes.asked_endpoint import predict, retire
from tests.support.scenes.whole_run import documents, load_dags, run_whole

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "regression"
NIGHT = datetime(2013, 11, 20, 3, tzinfo=UTC)
FLIGHT = {
    "distance": 1400,
    "departure_minute": 600,
    "origin": "JFK",
    "dest": "MIA",
    "carrier": "AA",
    "air_time_last_week": 160,
}


@pytest.fixture(scope="module")
def spec(local_cloud, tmp_path_factory: pytest.TempPathFactory):
    """The example's spec, with the demo's flights in BigQuery."""
    local_cloud.seed()
    include = tmp_path_factory.mktemp("include")
    for path in (*include_path().iterdir(), *EXAMPLE.iterdir()):
        if path.name not in ("models", "sql") or path.parent == EXAMPLE:
            (include / path.name).symlink_to(path)
    spec = load_spec(include / "models" / "air_time.yaml")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RETRAINING_WATCH_S", "60")
        patch.setattr(run_plan, "include_path", lambda: include)
        for module in (watch, measurement):
            patch.setattr(module, "include_path", lambda: include)
        yield spec


@pytest.fixture(scope="module")
def night(spec, make_run) -> Iterator[dict[str, Any]]:
    """The documents of a night."""
    found = run_whole(spec, make_run(run_id="manual__20131120", logical_date=NIGHT))
    assert found["decision"]["verdict"] == "promote", found["decision"]["words"]
    yield found
    retire(found["deployment"]["endpoint_name"])


def test_the_first_champion_beats_last_weeks_flights_and_answers_in_minutes(night) -> None:
    assert "beats the baselines (mean, median, same_route_last_week)" in night["decision"]["words"]
    numbers = night["statistics"]["splits"]["train"]["label"]["numbers"]
    assert 20 <= numbers["min"] < numbers["mean"] < numbers["max"]
    assert "Predicted against actual" in night["page"]
    assert "column air_time_last_week" in night["page"]
    ((low, median, high),) = predict(night["deployment"]["endpoint_name"], [FLIGHT])
    assert low < median < high
    assert numbers["min"] < median < numbers["max"]


def jobs() -> int:
    """How many custom jobs were ever paid for."""
    settings = Cloud().settings
    endpoint = f"{settings.region}-aiplatform.googleapis.com"
    client = aiplatform_v1.JobServiceClient(client_options={"api_endpoint": endpoint})
    return len(list(client.list_custom_jobs(parent=f"projects/{settings.project}/locations/{settings.region}")))


def test_the_same_rows_once_more_are_nothing_new_and_pay_nothing(spec, night, make_run) -> None:
    """Six hours later the run ends behind the look at its data; its page names the run that it would repeat."""
    before = jobs()
    run = make_run(run_id="manual__again", logical_date=NIGHT + timedelta(hours=6))
    with pytest.raises(DownstreamTasksSkipped):
        run_whole(spec, run)
    run.execute(load_dags("retrain").retrain_dag(spec).get_task("report"))
    found = documents(run.xcoms["plan", "return_value"]["run_uri"])
    assert found["checks"]["repeats"]["run_key"] == night["plan"]["run_key"]
    assert "manifest" not in found
    assert "Nothing new" in found["page"]
    assert f"Nothing new since run {night['plan']['run_key']}" in found["page"]
    assert jobs() == before


def test_the_monitor_holds_answers_against_those_to_the_test_days(spec, night, make_run) -> None:
    """Three hundred times the same answer is not what the champion gave to its test days."""
    for _ in range(10):  # one request with all of them would be a giant batch
        predict(night["deployment"]["endpoint_name"], [FLIGHT] * 30)
    dag = load_dags("monitor").monitor_dag(spec)
    deadline, rows, attempt = time.monotonic() + 30, 0, 0
    while rows < 300:  # answers reach the log within a second
        assert time.monotonic() < deadline
        attempt += 1
        now = datetime.now(UTC) + timedelta(seconds=1)
        params = {**dag.params.dump(), "as_of": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        run = make_run(run_id=f"manual__{attempt}", params=params, run_after=now, outlet_events=OutletEventAccessors())
        run.dag_id = dag.dag_id
        measured = run.execute(dag.get_task("measure"))
        rows = measured["rows"]
    assert "air_time" in measured["drifted"]
