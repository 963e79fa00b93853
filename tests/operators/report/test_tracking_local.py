"""A run's end on the local cloud, with both trackers, read back by Google's SDK; and the day after."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud import aiplatform

from retraining.core.documents import KINDS
from retraining.core.naming import storage
from retraining.core.report.tracking.mlflow import DIGEST_TAG
from retraining.core.report.tracking.vertex import experiment_id
from retraining.hooks.cloud import Cloud
from retraining.operators.report import tracking
from retraining.operators.report.page import ReportOperator
from retraining.operators.report.tracking import TrackRunsOperator, tracked_run
from tests.support.fakes.settings import PLACES
from tests.support.mlflow_server import MlflowServer, connection, mlflow_server
from tests.support.scenes.deployment import example

KEY = "20131118t030000z-0a1b2c3d4e5f"
LEFT = ("report", "evaluation", "decision", "registration", "deployment", "timings")


@pytest.fixture
def server(local_cloud: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[MlflowServer]:
    """MLflow, and Google's SDK pointed at the local cloud; the environment has both trackers."""
    aiplatform.init(project=local_cloud.project, location=local_cloud.region)
    monkeypatch.setenv("RETRAINING_TRACKING", "vertex,mlflow")
    with mlflow_server() as made:
        monkeypatch.setenv("AIRFLOW_CONN_MLFLOW_DEFAULT", connection(made.port))
        yield made


class Ended:
    """A run that came to its end, of a model of its own.

    Args:
        run: The DAG run, of that model.
    """

    def __init__(self, model: str, run: Any) -> None:
        self.cloud, self.model, self.run = Cloud(), model, run
        self.folder = storage.run_uri(self.cloud.settings.bucket, model, KEY)
        self.experiment = experiment_id(self.cloud.environment.label, model)
        same = {"model": model, "run_key": KEY, "run_uri": self.folder}
        places = {name: getattr(self.cloud.settings, name) for name in PLACES}
        for kind in ("plan", *LEFT):
            values = example(kind)
            changed = {**values, **same, **(places if kind == "plan" else {})}
            document = KINDS[kind].parse(json.dumps({name: changed[name] for name in values}))
            self.cloud.artifacts.write_once(storage.document_uri(self.folder, kind), document.to_bytes())

    def report(self) -> None:
        """Run the task `report`."""
        self.run.execute(ReportOperator(task_id="report", run_uri=self.folder))
        assert self.cloud.artifacts.exists(storage.report_page_uri(self.folder))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What the SDK shows."""
        found: list[dict[str, Any]] = aiplatform.get_experiment_df(self.experiment).to_dict("records")
        return found


@pytest.fixture
def ended(server: MlflowServer, make_run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ended:
    """A run, whose model has a file."""
    model = f"m_{uuid.uuid4().hex[:8]}"
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / f"{model}.yaml").write_text(f"name: {model}\n")
    monkeypatch.setattr(tracking, "include_path", lambda: tmp_path)
    return Ended(model, make_run(dag_id=f"retrain__{model}"))


def test_a_run_is_in_both_once_and_as_its_documents_say(ended: Ended, server: MlflowServer) -> None:
    """However often its report is made."""
    for _ in range(2):
        ended.report()
    run = tracked_run(ended.cloud.artifacts, ended.folder)
    assert run is not None
    (row,) = ended.rows
    assert (row["run_name"], row["state"]) == (KEY, "COMPLETE")
    assert {name: row[f"metric.{name}"] for name in run.metrics} == run.metrics
    assert {name: row[f"param.{name}"] for name in run.parameters} == run.parameters
    (stored,) = server.of_key(KEY)
    assert {"key": DIGEST_TAG, "value": run.digest} in stored["data"]["tags"]


@pytest.mark.parametrize("call", ["CreateContext", "AddContextChildren"])
def test_what_was_cut_off_is_ended_by_maintain(
    ended: Ended, server: MlflowServer, add_fault: Callable[..., Any], call: str
) -> None:
    """The report is green without a tracker; the day after there is nothing left to tell."""
    add_fault(f"MetadataService.{call}", "error", code="PERMISSION_DENIED", count=1)
    ended.report()
    told = TrackRunsOperator(task_id="track")
    assert ended.run.execute(told) == {"vertex": 1, "mlflow": 0}
    assert [row["run_name"] for row in ended.rows] == [KEY]
    assert ended.run.execute(told) == {"vertex": 0, "mlflow": 0}
    assert len(server.of_key(KEY)) == 1
