"""A run of the real operators in the cloud in memory under Airflow's own task runner, for the events of its lineage.

`python -m tests.support.scenes.lineage_dag`, in an environment that has the OpenLineage provider; the events go where
Airflow's configuration says. Prints the state of each task. What Vertex AI's jobs would leave is put there by a task.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from airflow.sdk import DAG, chain, task

from retraining.core.documents import KINDS, Plan
from retraining.core.naming import serving, storage
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.evaluation.decision import DecideOperator
from retraining.operators.jobs.evaluation import EvaluateOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_export, request_training
from retraining.operators.planning.run_plan import PlanRunOperator
from retraining.operators.record.run_record import RUN_URI
from tests.support.fakes.cloud import FakeCloud
from tests.support.scenes.deployment import example
from tests.support.scenes.planned_run import FORM, fill

MODEL = "flight_delays"
SOURCE = "local-project.nycflights13.flights"
CLOUD = FakeCloud()


class BrokenOperator(DecideOperator):
    """Its lineage cannot be told: it names steps that are not there, as a fault of ours would."""

    lineage_steps: ClassVar[Any] = "nothing"


@task
def prepare(run_uri: str) -> None:
    """Fill the source and the run table."""
    planned = Plan.parse(CLOUD.artifacts.objects[storage.document_uri(run_uri, "plan")])
    fill(CLOUD, planned)
    CLOUD.warehouse.reads[planned.query.path] = (SOURCE,)
    CLOUD.warehouse.schemas[SOURCE] = [{"name": "origin", "type": "STRING", "mode": "REQUIRED"}]


@task
def jobs(run_uri: str) -> None:
    """Leave what the checks and the jobs of the run would."""
    planned = Plan.parse(CLOUD.artifacts.objects[storage.document_uri(run_uri, "plan")])
    model_uri = serving.trained_model_uri(planned)
    changed: dict[str, dict[str, Any]] = {
        "checks__passed": {},
        "manifest__three_spans": {},
        "report__first_attempt": {"model_uri": model_uri},
        "evaluate_request__first_model": {},
        "evaluation__first_model": {},
        "deployment__champion": {},
    }
    for name, values in changed.items():
        kind = name.split("__")[0]
        found = example(name) | {"model": MODEL, "run_key": planned.run_key} | values
        CLOUD.artifacts.objects[storage.document_uri(run_uri, kind)] = KINDS[kind].parse(json.dumps(found)).to_bytes()
    CLOUD.artifacts.objects[f"{model_uri}/saved_model.pb"] = b""
    CLOUD.model_files.digests[model_uri] = example("report__first_attempt")["model_digest"]


with DAG(f"retrain__{MODEL}", schedule=None, params=FORM) as dag:
    asks = {"cloud": CLOUD.connect}
    chain(
        PlanRunOperator(task_id="plan", model=MODEL, **asks),
        prepare(RUN_URI),
        SnapshotOperator(task_id="snapshot", **asks),
        jobs(RUN_URI),
        VertexJobOperator(task_id="export", job_request=request_export, **asks),
        VertexJobOperator(task_id="train", job_request=request_training, **asks),
        EvaluateOperator(task_id="evaluate", **asks),
        DecideOperator(task_id="decide", **asks),
        BrokenOperator(task_id="broken", **asks),
        RegisterModelOperator(task_id="register", **asks),
        DeployModelOperator(task_id="deploy", **asks),
    )

if __name__ == "__main__":
    done = dag.test()
    print(json.dumps({ti.task_id: ti.state for ti in done.get_task_instances()}))
