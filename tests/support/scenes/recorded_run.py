"""A night on the cloud in memory whose jobs leave at once what they are asked for, and whose tasks can be cleared."""

from __future__ import annotations

import itertools
import json
from typing import Any

from retraining.core.documents import KINDS
from retraining.core.naming import storage, vertex
from retraining.operators.data.checks import CheckDataOperator
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.evaluation.decision import DecideOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_evaluation, request_export
from retraining.operators.jobs.training import TrainOperator
from retraining.operators.planning.run_plan import PlanRunOperator
from retraining.operators.record.run_record import Record
from tests.support.airflow_release import AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.job_results import result_of
from tests.support.scenes.planned_run import fill, plan, stored_plan

TASKS = {
    "plan": lambda cloud: PlanRunOperator(task_id="plan", model="flight_delays", cloud=cloud),
    "snapshot": lambda cloud: SnapshotOperator(task_id="snapshot", cloud=cloud),
    "check_data": lambda cloud: CheckDataOperator(task_id="check_data", cloud=cloud),
    "export": lambda cloud: VertexJobOperator(
        task_id="export", job_request=request_export, chain_task="export", cloud=cloud
    ),
    "train": lambda cloud: TrainOperator(task_id="train", cloud=cloud),
    "evaluate": lambda cloud: VertexJobOperator(
        task_id="evaluate", job_request=request_evaluation, chain_task="evaluate", cloud=cloud
    ),
    "decide": lambda cloud: DecideOperator(task_id="decide", cloud=cloud),
    "register": lambda cloud: RegisterModelOperator(task_id="register", cloud=cloud),
    "deploy": lambda cloud: DeployModelOperator(task_id="deploy", cloud=cloud),
}
WRITERS = {
    "plan": "plan",
    "snapshot": "snapshot",
    "manifest": "export",
    "report": "train",
    "evaluate_request": "evaluate",
    "evaluation": "evaluate",
    "decision": "decide",
    "registration": "register",
    "deployment": "deploy",
}
"""Documents that later tasks read, and who writes them."""
ROUNDS = 20


class RecordedRun:
    """A run that its tasks can be cleared of.

    Args:
        cloud: Without a champion.
        run: The DAG run.
    """

    def __init__(self, cloud: FakeCloud, run: Any) -> None:
        self.cloud, self._run = cloud, run
        self._generation = itertools.count()
        planned = stored_plan(cloud, plan(cloud, run))
        self.folder = planned.run_uri
        self._same = {"model": planned.model, "run_key": planned.run_key}
        fill(cloud, planned)
        for example in ("statistics__two_features", "checks__passed"):  # the numbers of another model do as well
            self.put(example)
        cloud.jobs.after_create = self._end_job

    def uri(self, kind: str) -> str:
        """Address of a document."""
        return storage.document_uri(self.folder, kind)

    def put(self, example: str, **changes: Any) -> None:
        """Store an example as a document of this run."""
        kind = example.split("__")[0]
        values = json.loads((EXAMPLES / f"{example}.json").read_text()) | self._same | changes
        self.cloud.artifacts.objects[self.uri(kind)] = KINDS[kind].parse(json.dumps(values)).to_bytes()

    def delete(self, kind: str) -> None:
        """What a person does in the bucket."""
        del self.cloud.artifacts.objects[self.uri(kind)]

    def clear(self, first: str = "plan") -> None:
        """Clear a task and what follows it: each runs again to its end."""
        order = list(TASKS)
        self.run_tasks(*order[order.index(first) :])

    def run_tasks(self, *names: str) -> None:
        """Run some tasks, each to its end."""
        generation = next(self._generation)
        for name in names:
            self.run_task(name, generation)

    def run_task(self, name: str, generation: int = 0) -> None:
        """Run one task to its end."""
        for _ in range(ROUNDS):
            try:
                self._run.execute(TASKS[name](self.cloud.connect), max_tries=generation)
                return
            except AirflowRescheduleException:
                continue
        raise AssertionError(f"{name} did not end")

    def documents(self) -> set[str]:
        """Kinds of the documents that can be read."""
        record = Record(self.cloud.artifacts, self.folder)
        return {kind for kind in WRITERS if record.find_document(KINDS[kind]) is not None}

    def _end_job(self) -> None:
        name = self.cloud.jobs.newest
        self.leave(self.cloud.jobs.jobs[name].labels[vertex.TASK_LABEL])
        self.cloud.jobs.end(name)

    def leave(self, task: str) -> None:
        """What a machine leaves for the request of a task."""
        objects = self.cloud.artifacts.objects
        uri, result = result_of(objects[self.uri(f"{task}_request")])
        objects.setdefault(uri, KINDS[result["kind"]].parse(json.dumps(result)).to_bytes())
        if task == "export":
            for file in itertools.chain(*(split["files"] for split in result["splits"].values())):
                objects[f"{file['uri'].rpartition('/')[0]}/span.json"] = b"{}"
        if task == "train":
            objects[f"{result['model_uri']}/saved_model.pb"] = b"model"
            self.cloud.model_files.digests[result["model_uri"]] = result["model_digest"]
