"""Something happens at every call of the tasks outside of a night: a ramp, a rollback, a monitor's decision, a scoring.

As `test_deaths.py`, whose faults these are. `make test-faults` looks at every call and prints its part of the table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import pytest
from airflow.sdk.execution_time.context import OutletEventAccessors

from retraining.core.documents import Served
from retraining.core.jobs.job import JobType
from retraining.operators.deployment.version_deployment import DeployModelOperator
from retraining.operators.deployment.version_rollback import RollBackOperator
from retraining.operators.ending.cancel_jobs import CancelJobsOperator
from retraining.operators.monitoring.decision import DecideRetrainingOperator
from retraining.operators.scoring.destination import CleanUpScoringOperator, WriteAnswersOperator
from retraining.operators.scoring.prediction import PredictOperator, SnapshotInstancesOperator
from retraining.operators.scoring.scoring_plan import PlanScoringOperator
from tests.support.scenes.deployed_runs import DeployedRuns
from tests.support.scenes.dying_run import promoted_run
from tests.support.scenes.monitor_run import MODEL, Monitor, added
from tests.support.scenes.scoring import ScoringScene, columns
from tests.support.scenes.struck_play import (
    FAULTS,
    LOOKS,
    PASSING,
    Fault,
    Play,
    Undisturbed,
    is_promised,
    made_anew,
    print_table,
    wrong,
)

STEPS = {"percent": [10, 50, 100], "bake_minutes": 1}
REQUESTS = 20_000
MEASURED = ("/deployment.json", "/rollout.json")


class Ramp(Play):
    """A promoted version takes the traffic of the one before it in three steps.

    Args:
        make_run: Makes DAG runs.
        errors: That it answers, of so many requests; the other one answers none.
    """

    tasks: ClassVar[dict[str, Any]] = {
        "deploy": lambda cloud: DeployModelOperator(task_id="deploy", retries=3, cloud=cloud),
        "cancel_jobs": lambda cloud: CancelJobsOperator(task_id="cancel_jobs", cloud=cloud),
    }

    def __init__(self, make_run: Any, errors: int = 0) -> None:
        night = promoted_run(make_run, canary=STEPS)
        self.cloud, self.run = night.scene.cloud, night.run
        served = self.cloud.serving_metrics.by_id
        for deployed_id in night.scene.endpoint.deployed:
            served[deployed_id] = Served(requests=REQUESTS, errors=0, latency_ms=10.0)
        served[night.scene.mine] = Served(requests=REQUESTS, errors=errors, latency_ms=10.0)
        self.run.xcoms["plan", "return_value"] = {"run_uri": night.scene.folder}

    @property
    def stored(self) -> dict[str, bytes]:
        """Of what a step measured, only what its gates say: how many requests came is a matter of when."""
        measured = {uri: data for uri, data in self.cloud.artifacts.objects.items() if uri.endswith(MEASURED)}
        return super().stored | {uri: PASSING.sub(b"", _verdicts(data)) for uri, data in measured.items()}


def _verdicts(data: bytes) -> bytes:
    values = json.loads(data)
    values["steps"] = [[step["percent"], [gate["passed"] for gate in step["gates"]]] for step in values["steps"]]
    for key in {"words", "because"} & values.keys():
        values[key] = re.sub(r"[0-9][0-9,.]*", "#", values[key])
    return json.dumps(values).encode()


class GoingBack(Play):
    """A person gives the version before the traffic back."""

    tasks: ClassVar[dict[str, Any]] = {
        "roll_back": lambda cloud: RollBackOperator(task_id="roll_back", retries=3, cloud=cloud)
    }

    def __init__(self, make_run: Any) -> None:
        runs = DeployedRuns(make_run, 2)
        self.cloud, self.run = runs.cloud, runs.rollback("previous", 1)


class Deciding(Play):
    """A monitor orders a retraining."""

    tasks: ClassVar[dict[str, Any]] = {
        "decide": lambda cloud: DecideRetrainingOperator(task_id="decide", model=MODEL, cloud=cloud)
    }

    def __init__(self, make_run: Any) -> None:
        self.monitor = Monitor(make_run=make_run)
        self.cloud, self.run = self.monitor.cloud, self.monitor.measured(0)

    def wake(self, task: Any, try_number: int) -> None:
        """As every process, whose events Airflow sends with its success only."""
        self.run.outlet_events = OutletEventAccessors()
        super().wake(task, try_number)

    @property
    def bill(self) -> dict[str, Any]:
        """With what was ordered; BigQuery's copy of the ledger may come with the next run."""
        orders = [extra["ledger_uri"] for extra in added(self.run)]
        return super().bill | {"orders": orders, "queries": set()}


class Scoring(Play):
    """A table is scored in bulk."""

    tasks: ClassVar[dict[str, Any]] = {
        "plan": lambda cloud: PlanScoringOperator(task_id="plan", model=MODEL, cloud=cloud),
        "snapshot": lambda cloud: SnapshotInstancesOperator(task_id="snapshot", cloud=cloud),
        "predict": lambda cloud: PredictOperator(task_id="predict", cloud=cloud),
        "write": lambda cloud: WriteAnswersOperator(task_id="write", cloud=cloud),
        "cancel_jobs": lambda cloud: CancelJobsOperator(
            task_id="cancel_jobs", types=(JobType.BATCH,), run_uri="", cloud=cloud
        ),
        "clean_up": lambda cloud: CleanUpScoringOperator(task_id="clean_up", cloud=cloud),
    }

    def __init__(self, make_run: Any) -> None:
        self.scene = ScoringScene(make_run)
        self.cloud, self.run = self.scene.cloud, self.scene.start()

    def wake(self, task: Any, try_number: int) -> None:
        """As every process, between which the job ends."""
        jobs = self.cloud.jobs
        for name in [name for name, job in jobs.jobs.items() if job.active]:
            jobs.end(name, seconds=90)
            self.cloud.warehouse.schemas[jobs.get(name).output_table] = columns(key="STRING", prediction="STRING")
        super().wake(task, try_number)
        if task.task_id == "snapshot":
            self.cloud.warehouse.schemas[self.scene.plan(self.run).input_table] = self.scene.source

    @property
    def bill(self) -> dict[str, Any]:
        """Without the look at what the destination holds, which a new try of a whole task may make once more."""
        bill = super().bill
        return bill | {"queries": {query for query in bill["queries"] if "__score_newest__" not in query}}


PLAYS: dict[str, Callable[[Any], Play]] = {
    "a ramp": Ramp,
    "a ramp that is taken back": lambda make_run: Ramp(make_run, errors=9_000),
    "a rollback": GoingBack,
    "a monitor's order": Deciding,
    "a scoring": Scoring,
}


@pytest.fixture(scope="module")
def plays(make_run: Any) -> dict[str, Undisturbed]:
    """Each, as it is where nothing happens."""

    def make(kind: Callable[[Any], Play]) -> Play:
        play = kind(make_run)
        play.cloud.clock.sleep(12 * 3600)  # it begins with the year, and not all clocks say the same month there
        return play

    return {name: made_anew(partial(make, kind)) for name, kind in PLAYS.items()}


def test_they_are_what_they_are_called(plays: dict[str, Undisturbed]) -> None:
    """Where nothing happens."""
    ends = {name: each.end.bill for name, each in plays.items()}
    assert ends["a ramp"]["aliases"]["3"] == ["champion", "default"]
    assert ends["a ramp that is taken back"]["aliases"]["2"] == ["champion", "default"]
    assert ends["a rollback"]["aliases"]["1"] == ["champion", "default"]
    assert len(ends["a monitor's order"]["orders"]) == 1
    assert ends["a scoring"]["jobs"] == {"predict": 1}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
@pytest.mark.parametrize("name", PLAYS)
def test_what_happens_at_some_call_changes_nothing(plays: dict[str, Undisturbed], name: str, fault: Fault) -> None:
    """At one of each task's calls that change something, another one for each fault."""
    for task, calls in plays[name].calls.items():
        changes = [at for at, call in enumerate(calls, start=1) if not call.startswith(LOOKS)] or [len(calls)]
        at = changes[(len(changes) // 2 + FAULTS.index(fault)) % len(changes)]
        found = wrong(plays[name].strike(task, at, fault), plays[name].end)
        assert is_promised(fault, calls[at - 1], found), (task, at, calls[at - 1], found)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_what_happens_at_any_call_changes_nothing(
    plays: dict[str, Undisturbed], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every call of every task, and all faults."""
    print_table(plays, capsys)
