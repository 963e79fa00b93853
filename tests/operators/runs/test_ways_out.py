"""What messages about a run's documents advise is done as they say, and then the run comes to its end.

A whole night on the cloud in memory: its jobs leave the contracts' examples at once.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from retraining.core.data.snapshot import OTHER_DATA
from retraining.core.documents import KINDS
from retraining.core.errors import ContractError
from retraining.core.naming import storage, vertex
from retraining.core.naming.storage import model_file_uri
from retraining.operators.data.checks import CheckDataOperator
from retraining.operators.data.snapshot import SnapshotOperator
from retraining.operators.deployment.registration import RegisterModelOperator
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.evaluation.decision import DecideOperator
from retraining.operators.jobs.job import VertexJobOperator
from retraining.operators.jobs.requests import request_evaluation, request_export, request_training
from retraining.operators.planning.run_plan import PlanRunOperator
from retraining.operators.record.run_record import Record
from tests.support.airflow_release import AirflowFailException, AirflowRescheduleException
from tests.support.contracts import EXAMPLES
from tests.support.fakes.cloud import FakeCloud
from tests.support.job_results import result_of
from tests.support.scenes.data_tasks import Night as SmallNight
from tests.support.scenes.planned_run import FORM, fill, plan, stored_plan

TASKS = {
    "plan": lambda cloud: PlanRunOperator(task_id="plan", model="flight_delays", cloud=cloud),
    "snapshot": lambda cloud: SnapshotOperator(task_id="snapshot", cloud=cloud),
    "check_data": lambda cloud: CheckDataOperator(task_id="check_data", cloud=cloud),
    "export": lambda cloud: VertexJobOperator(task_id="export", job_request=request_export, cloud=cloud),
    "train": lambda cloud: VertexJobOperator(task_id="train", job_request=request_training, cloud=cloud),
    "evaluate": lambda cloud: VertexJobOperator(task_id="evaluate", job_request=request_evaluation, cloud=cloud),
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


class Night:
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
        generation, order = next(self._generation), list(TASKS)
        for name in order[order.index(first) :]:
            for _ in range(ROUNDS):
                try:
                    self._run.execute(TASKS[name](self.cloud.connect), max_tries=generation)
                    break
                except AirflowRescheduleException:
                    continue
            else:
                raise AssertionError(f"{name} did not end")

    def documents(self) -> set[str]:
        """Kinds of the documents that can be read."""
        record = Record(self.cloud.artifacts, self.folder)
        return {kind for kind in WRITERS if record.find_document(KINDS[kind]) is not None}

    def _end_job(self) -> None:
        name = self.cloud.jobs.newest
        task = self.cloud.jobs.jobs[name].labels[vertex.TASK_LABEL]
        objects = self.cloud.artifacts.objects
        uri, result = result_of(json.loads(objects[self.uri(f"{task}_request")]))
        objects.setdefault(uri, KINDS[result["kind"]].parse(json.dumps(result)).to_bytes())
        if task == "export":
            for file in itertools.chain(*(split["files"] for split in result["splits"].values())):
                objects[f"{file['uri'].rpartition('/')[0]}/span.json"] = b"{}"
        if task == "train":
            objects[f"{result['model_uri']}/saved_model.pb"] = b"model"
            self.cloud.model_files.digests[result["model_uri"]] = result["model_digest"]
        self.cloud.jobs.end(name)


@pytest.fixture
def night(make_run: Any) -> Night:
    """A night that went to its end."""
    cloud = FakeCloud()
    made = Night(cloud, make_run(params=FORM))
    made.clear()
    assert made.documents() == WRITERS.keys()
    return made


@pytest.mark.parametrize("kind", WRITERS)
def test_a_document_that_is_gone(night: Night, kind: str) -> None:
    """`Clear the run from plan on`: then it is there again."""
    night.delete(kind)
    with pytest.raises(ContractError, match="Clear the run from plan on"):
        Record(night.cloud.artifacts, night.folder).read_document(KINDS[kind])
    night.clear("plan")
    assert night.documents() == WRITERS.keys()


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("text", [b'{"kind": "', b"[]", b"{}"], ids=["cut off", "a list", "no kind"])
def test_a_document_that_is_broken(night: Night, kind: str, text: bytes) -> None:
    """Clearing alone finds it again. Deleted, as the message says, the task that writes it makes it anew."""
    night.cloud.artifacts.objects[night.uri(kind)] = text
    with pytest.raises(AirflowFailException) as refused:
        night.clear(WRITERS[kind])
    assert night.uri(kind) in str(refused.value)
    assert "elete this object, then clear the task that wrote it and what follows" in str(refused.value)
    night.delete(kind)
    night.clear(WRITERS[kind])
    assert night.documents() == WRITERS.keys()


@pytest.mark.parametrize(
    ("example", "changes"),
    [
        ("evaluation__first_model", {"run_key": "20131101t030000z-0123456789ab"}),
        ("evaluation__duel", {}),
        ("evaluate_request__first_model", {"run_key": "20131101t030000z-0123456789ab"}),
        ("evaluate_request__duel", {}),
    ],
    ids=["another run's evaluation", "a duel nobody asked for", "another run's request", "a duel that was not"],
)
def test_documents_of_another_duel(night: Night, example: str, changes: dict[str, Any]) -> None:
    """`decide` names the one to delete; then `evaluate` makes it anew."""
    night.delete("decision")
    if "request" in example:  # of another duel, and of this run's places
        asked = json.loads(night.cloud.artifacts.objects[night.uri("evaluate_request")])
        changes = {**changes, "evaluation_uri": asked["evaluation_uri"]}
    night.put(example, **changes)
    for side in ("challenger", "champion") if example == "evaluate_request__duel" else ():
        asked = json.loads(night.cloud.artifacts.objects[night.uri("evaluate_request")])
        night.cloud.artifacts.objects[model_file_uri(asked[side]["model_uri"])] = b"model"
    with pytest.raises(AirflowFailException) as refused:
        night.clear("decide")
    where = str(refused.value).split(": ", 1)[0]
    assert where in (night.uri("evaluation"), night.uri("evaluate_request"))
    assert "Delete this object, then clear evaluate and what follows" in str(refused.value)
    del night.cloud.artifacts.objects[where]
    night.clear("evaluate")
    assert night.documents() == WRITERS.keys()


SPEC = """
name: {name}
description: Will it be late?
data: {{query: {name}/examples.sql, key: id, event_time: at, window_days: 10, test_days: 2}}
features: [{{name: distance, kind: numeric}}]
label: {{name: late, kind: binary}}
training: {{model: wide_deep}}
evaluation: {{metric: auc, min_value: 0.6}}
"""


def test_what_blocked_data_advises_makes_another_run(include, make_run) -> None:
    """Force where the source is mended; where a file is changed, clearing `plan` is enough."""
    assert "the Param force" in OTHER_DATA
    assert "the query or the spec is changed, clear plan and what follows" in OTHER_DATA
    night = SmallNight(include, "late", make_run(), SPEC, FakeCloud().connect)
    query = "SELECT * FROM source.rows WHERE at >= @window_start AND at < LEAST(@window_end, @as_of)"
    night.write(query)
    first = night.plan()["run_uri"]
    assert night.plan()["run_uri"] == first
    assert night.plan(force=True)["run_uri"] != first
    night.write(f"{query} AND distance > 0")
    changed = night.plan()["run_uri"]
    assert changed != first
    (include / "models" / "late.yaml").write_text(SPEC.format(name="late").replace("window_days: 10", "window_days: 9"))
    assert night.plan(window_days=9)["run_uri"] not in (first, changed)


def test_a_version_that_is_gone_is_registered_again(night: Night) -> None:
    """`Clear register`: what was recorded of it does not count."""
    night.cloud.registry.versions.clear()
    night.clear("register")
    assert [version.run_key for version in night.cloud.registry.versions.values()] == [night.folder.rpartition("/")[2]]
