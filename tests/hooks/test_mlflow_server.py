"""Runs in MLflow's own server, read back by MLflow's own client: `make test-mlflow`."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from retraining.core.report.tracking.tracked_run import MLFLOW, Status, TrackedRun
from retraining.hooks.trackers import Trackers
from tests.core.report.tracking.test_tracked_run import WHOLE, tracked
from tests.support.fakes.settings import SETTINGS
from tests.support.mlflow_server import connection
from tests.support.ports import free_port
from tests.support.product import REPOSITORY

pytestmark = pytest.mark.long

PYTHON = REPOSITORY / ".venv/mlflow/bin/python"
RUN = tracked(*WHOLE)
STARTS_S = 180
READ = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(sys.argv[1])
(experiment,) = client.search_experiments(filter_string=f"name = '{sys.argv[2]}'")
found = []
for run in client.search_runs([experiment.experiment_id]):
    curves = {name: [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, name)]
              for name in run.data.metrics}
    found.append({"name": run.info.run_name, "status": run.info.status, "params": run.data.params,
                  "metrics": run.data.metrics, "tags": run.data.tags, "curves": curves})
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a database."""
    if not PYTHON.exists():
        pytest.skip("MLflow's environment is missing: run `make test-mlflow`")
    folder: Path = tmp_path_factory.mktemp("mlflow")
    port = free_port()
    command = [PYTHON, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", port, "--workers", 1]
    command += ["--backend-store-uri", f"sqlite:///{folder}/runs.sqlite", "--artifacts-destination", folder / "files"]
    environ = {**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", "PATH": f"{PYTHON.parent}:{os.environ['PATH']}"}
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(list(map(str, command)), cwd=folder, env=environ, stdout=log, stderr=log)
        try:
            _wait(server, f"http://127.0.0.1:{port}", folder / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait(timeout=60)


def _wait(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + STARTS_S
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        try:
            if requests.get(f"{address}/health", timeout=5).ok:
                return
        except requests.ConnectionError:
            time.sleep(0.2)
    pytest.fail(f"no server within {STARTS_S} s: {log.read_text()}")


@pytest.fixture
def run(address: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> TrackedRun:
    """A run of a model of this test's own, and a connection to the server."""
    monkeypatch.setenv("AIRFLOW_CONN_MLFLOW_DEFAULT", connection(int(address.rpartition(":")[2])))
    return dataclasses.replace(RUN, model=request.node.name[5:45])


def show(run: TrackedRun) -> str:
    """Track it, as a task does."""
    return Trackers(SETTINGS, lambda: pytest.fail("nobody asks Google")).track(MLFLOW, run)


def read(address: str, run: TrackedRun) -> list[dict[str, Any]]:
    """The model's runs, by MLflow's own client."""
    command = [str(PYTHON), "-c", READ, address, f"{SETTINGS.environment}/{run.model}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_mlflow_reads_what_was_tracked(address: str, run: TrackedRun) -> None:
    """Parameters, metrics, each epoch, tags, status."""
    show(run)
    (found,) = read(address, run)
    assert (found["name"], found["status"]) == (run.run_key, "FINISHED")
    assert found["params"] == {name: str(value) for name, value in run.parameters.items()}
    assert run.metrics.items() <= found["metrics"].items()
    for name, values in run.curves.items():
        assert found["curves"][name] == [[epoch, value] for epoch, value in enumerate(values, start=1)]
    assert run.tags.items() <= found["tags"].items()


def test_a_run_that_changed_is_as_it_is_now(address: str, run: TrackedRun) -> None:
    """Also a number that became smaller."""
    failed = dataclasses.replace(run, status=Status.FAILED, parameters={}, curves={}, metrics={"usd": 9.0})
    first = show(failed)
    assert read(address, run)[0]["status"] == "FAILED"
    assert show(run) == show(run) == first
    (found,) = read(address, run)
    assert (found["status"], found["metrics"]["usd"]) == ("FINISHED", run.metrics["usd"])


def test_of_many_at_once_one_stays(address: str, run: TrackedRun) -> None:
    """And it is whole."""
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: show(run), range(4)))
    (found,) = read(address, run)
    assert (found["status"], found["tags"]["retraining.digest"]) == ("FINISHED", run.digest)


def test_a_long_training_with_many_hyperparameters_is_taken_whole(address: str, run: TrackedRun) -> None:
    """In parts of what one request may have."""
    long = dataclasses.replace(
        run,
        parameters={f"training.hyperparameters.p{number}": "x" * 900 for number in range(250)},
        curves={f"epoch/{name}": tuple(map(float, range(700))) for name in "abc"},
    )
    show(long)
    (found,) = read(address, long)
    assert len(found["params"]) == 250
    assert {name: len(found["curves"][name]) for name in long.curves} == dict.fromkeys(long.curves, 700)
