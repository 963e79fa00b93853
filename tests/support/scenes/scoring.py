"""A champion that may score a table of flights, in the cloud of memory, and the runs of its `score__` DAG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from retraining.core.documents import Plan, Report, ScoringPlan
from retraining.core.jobs.job import JobType
from retraining.core.naming import storage
from retraining.core.settings import include_path
from retraining.core.spec.files import load_spec
from retraining.operators.airflow.params import score_params
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.scoring import scoring_plan
from retraining.operators.scoring.destination import CleanUpScoringOperator, WriteAnswersOperator
from retraining.operators.scoring.prediction import PredictOperator, SnapshotInstancesOperator
from retraining.operators.scoring.scoring_plan import PlanScoringOperator
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.deployment import Scene
from tests.support.scenes.scored_tables import ScoredTables

MODEL = "flight_delays"
SPEC = load_spec(include_path() / "models" / f"{MODEL}.yaml")
QUERY = "flight_delays/tomorrow.sql"
DESTINATION = "local-project.retraining.flight_delay_scores"
ROWS = 12


def columns(**types: str) -> list[dict[str, Any]]:
    """Columns of a table, as BigQuery's API gives them."""
    return [{"name": name, "type": type_, "mode": "NULLABLE", "fields": []} for name, type_ in types.items()]


def change_section(monkeypatch: pytest.MonkeyPatch, folder: Path, **keys: Any) -> None:
    """Let the model's file have other keys in its section `scoring`, as `plan` reads it."""
    for path in include_path().iterdir():
        if path.name != "models":
            (folder / path.name).symlink_to(path)
    values = yaml.safe_load((include_path() / "models" / f"{MODEL}.yaml").read_text())
    values["scoring"] = {key: value for key, value in (values["scoring"] | keys).items() if value is not None}
    (folder / "models").mkdir()
    (folder / "models" / f"{MODEL}.yaml").write_text(yaml.safe_dump(values))
    monkeypatch.setattr(scoring_plan, "include_path", lambda: folder)


class ScoringScene:
    """The cloud, with a champion whose run left its documents, and one run of the DAG after the other.

    Args:
        make_run: Makes DAG runs.
    """

    def __init__(self, make_run: Any) -> None:
        self.cloud = FakeCloud()
        self.make_run = make_run
        trained = Scene(self.cloud)
        features = [feature.model_dump(mode="json") for feature in SPEC.features]
        plan = trained.read("plan")
        trained.change("plan", spec=plan["spec"] | {"features": features})
        inputs = {each.name: "string" if each.kind == "categorical" else "float32" for each in SPEC.features}
        self.sign(trained, inputs)
        self.trained = trained
        self.cloud.registry.add(trained.run_key, "champion")
        warehouse = self.cloud.warehouse
        kinds = {name: "STRING" if kind == "string" else "FLOAT" for name, kind in inputs.items()}
        self.key = plan["spec"]["data"]["key"]
        self.source = columns(**{self.key: "STRING"}, **kinds)
        warehouse.schemas[QUERY] = self.source
        self.tables = ScoredTables(warehouse, DESTINATION)
        warehouse.rows["instances"] = [{"row_count": ROWS, "keys": ROWS, "without_key": 0, "fingerprint": "7"}]
        self.answer()

    def sign(self, trained: Scene, inputs: dict[str, str], **outputs: str) -> None:
        """Let the training report have this signature."""
        trained.change("report", signature={"inputs": inputs, "outputs": outputs or {"score": "float32"}})

    def answer(self, **changes: Any) -> None:
        """Let the job's answers be so."""
        row = {"answers": ROWS, "missing": 0, "missing_keys": [], "unreadable": 0, "example": "0.5"}
        self.cloud.warehouse.rows["answers"] = [row | changes]

    def start(self, run_id: str = "manual__1", **params: Any) -> Any:
        """A run of the DAG, with a form."""
        form = {name: param.value for name, param in score_params(SPEC).items()}
        return self.make_run(run_id=run_id, dag_id=f"score__{MODEL}", params=form | params)

    def task(self, task_id: str) -> Any:
        """One of its tasks."""
        kinds: dict[str, Any] = {
            "snapshot": SnapshotInstancesOperator,
            "predict": PredictOperator,
            "write": WriteAnswersOperator,
            "clean_up": CleanUpScoringOperator,
        }
        if task_id == "plan":
            return PlanScoringOperator(task_id="plan", model=MODEL, cloud=self.cloud.connect)
        if task_id == "cancel_jobs":
            batch = (JobType.BATCH,)
            return CancelJobsOperator(task_id="cancel_jobs", types=batch, run_uri="", cloud=self.cloud.connect)
        return kinds[task_id](task_id=task_id, cloud=self.cloud.connect)

    def execute(self, run: Any, *task_ids: str, **whose: int) -> Any:
        """Run tasks one after the other; the job of `predict` ends well while its task sleeps."""
        result = None
        for task_id in task_ids:
            try:
                result = run.execute(self.task(task_id), **whose)
            except AirflowRescheduleException:
                self.finish()
                result = run.execute(self.task(task_id), **whose)
            if task_id == "snapshot":
                self.cloud.warehouse.schemas[self.plan(run).input_table] = self.source
        return result

    def finish(self) -> None:
        """Let the job end well, with a table of predictions."""
        jobs = self.cloud.jobs
        jobs.end(jobs.newest, seconds=90)
        table = jobs.get(jobs.newest).output_table
        self.cloud.warehouse.schemas[table] = columns(key="STRING", prediction="STRING")

    def plan(self, run: Any) -> ScoringPlan:
        """The plan of a run."""
        uri = storage.document_uri(run.xcoms["plan", "return_value"]["run_uri"], "scoring_plan")
        return ScoringPlan.parse(self.cloud.artifacts.objects[uri])

    @property
    def version_documents(self) -> tuple[str, str]:
        """Addresses of what the version's run says of it."""
        folder = self.trained.folder
        return storage.document_uri(folder, Plan.kind_name()), storage.document_uri(folder, Report.kind_name())
