"""A task instance without a scheduler: what an operator's `execute` gets, and what it leaves in XCom."""

from __future__ import annotations

import atexit
import dataclasses
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2.sandbox import SandboxedEnvironment

# Before the first import of Airflow: nothing of this machine's Airflow is read or written.
os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="airflow-home-")
atexit.register(shutil.rmtree, os.environ["AIRFLOW_HOME"], ignore_errors=True)
os.environ["AIRFLOW__CORE__LOAD_EXAMPLES"] = "False"

DAG_ID = "retrain__flight_delays"


def instance_name(task_id: str, map_index: int) -> str:
    """A task's name where Airflow lists states: that of a mapped one has its number."""
    return task_id if map_index < 0 else f"{task_id}_{map_index}"


@dataclasses.dataclass(kw_only=True)
class FakeTaskInstance:
    """The attributes and methods of Airflow's runtime task instance that the operators use."""

    task_id: str
    dag_id: str = DAG_ID
    run_id: str = "manual__1"
    map_index: int = -1
    try_number: int = 1
    max_tries: int = 0
    xcoms: dict[tuple[str, str], Any] = dataclasses.field(default_factory=dict)
    dag_runs: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    task_states: dict[tuple[str, str], dict[str, str]] = dataclasses.field(default_factory=dict)

    @property
    def id(self) -> str:
        """As Airflow's: of this try alone, and the same when it goes on after a wait."""
        return f"{self.run_id}/{self.task_id}/{self.try_number}/{self.max_tries}"

    def get_task_states(
        self, dag_id: str, run_ids: list[str], task_ids: list[str] | None = None
    ) -> dict[str, dict[str, str]]:
        """As Airflow's; only what succeeded left a return value, None included. Of other runs as the test says."""
        if run_ids != [self.run_id]:
            told = {run_id: self.task_states.get((dag_id, run_id), {}) for run_id in run_ids}
            return {
                run_id: {key: state[key] for key in task_ids or state if key in state} for run_id, state in told.items()
            }
        done = {task: "success" for task, key in self.xcoms if key == "return_value"}
        return dict.fromkeys(run_ids, done)

    def get_dr_count(self, dag_id: str, run_ids: list[str]) -> int:
        """As Airflow's."""
        return sum((dag_id, run_id) in self.dag_runs for run_id in run_ids)

    def get_dagrun_state(self, dag_id: str, run_id: str) -> str:
        """As Airflow's."""
        return self.dag_runs[dag_id, run_id]

    def xcom_push(self, key: str, value: Any) -> None:
        """As Airflow's."""
        self.xcoms[instance_name(self.task_id, self.map_index), key] = value

    def xcom_pull(self, task_ids: str, key: str = "return_value", map_indexes: int = -1) -> Any:
        """As Airflow's."""
        return self.xcoms.get((instance_name(task_ids, map_indexes), key))

    def get_first_reschedule_date(self, context: Any) -> None:
        """As Airflow's; the first wake."""
        del context


@dataclasses.dataclass(kw_only=True)
class FakeRun:
    """One DAG run: executes operators one after the other, as a worker would."""

    run_id: str = "manual__1"
    run_type: str = "manual"
    logical_date: datetime | None = datetime(2013, 11, 20, 3, tzinfo=UTC)
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    dag_id: str = DAG_ID
    events: list[Any] = dataclasses.field(default_factory=list)
    xcoms: dict[tuple[str, str], Any] = dataclasses.field(default_factory=dict)
    outlet_events: Any = None
    inlet_events: Any = None
    run_after: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    dag_runs: dict[tuple[str, str], str] = dataclasses.field(default_factory=dict)
    task_states: dict[tuple[str, str], dict[str, str]] = dataclasses.field(default_factory=dict)

    def context(
        self, task: Any, *, try_number: int = 1, max_tries: int | None = None, map_index: int = -1
    ) -> dict[str, Any]:
        """Context of a try of a task."""
        ti = FakeTaskInstance(
            task_id=task.task_id,
            map_index=map_index,
            dag_id=self.dag_id,
            run_id=self.run_id,
            try_number=try_number,
            max_tries=(task.retries or 0) if max_tries is None else max_tries,
            xcoms=self.xcoms,
            dag_runs=self.dag_runs,
            task_states=self.task_states,
        )
        dag_run = SimpleNamespace(
            dag_id=self.dag_id,
            run_id=self.run_id,
            run_type=self.run_type,
            logical_date=self.logical_date,
            run_after=self.run_after,
            start_date=self.run_after,
            consumed_asset_events=self.events,
            triggering_user_name="ada",
        )
        return {
            "ti": ti,
            "task": task,
            "dag_run": dag_run,
            "params": self.params,
            "outlet_events": self.outlet_events,
            "inlet_events": self.inlet_events,
        }

    def execute(self, task: Any, *, try_number: int = 1, max_tries: int | None = None, map_index: int = -1) -> Any:
        """Run one wake of a task; its result goes to XCom, what it reads comes from there."""
        context = self.context(task, try_number=try_number, max_tries=max_tries, map_index=map_index)
        for field in ("run_uri", "monitor_uri", "walk_uri"):
            if "{{" in (template := getattr(task, field, "") or ""):
                setattr(task, field, SandboxedEnvironment().from_string(template).render(ti=context["ti"]))
        result = task.execute(context)
        self.xcoms[instance_name(task.task_id, map_index), "return_value"] = result
        for callback in task.on_success_callback or ():  # Airflow has the success by now, with the task's events
            callback(context)
        return result


@pytest.fixture(scope="session")
def make_run() -> type[FakeRun]:
    """Makes DAG runs."""
    return FakeRun


@pytest.fixture
def include(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder for models and SQL of a test's own, which the data tasks read."""
    from retraining.operators.planning import run_plan

    made = tmp_path / "include"
    (made / "models").mkdir(parents=True)
    monkeypatch.setattr(run_plan, "include_path", lambda: made)
    return made


@pytest.fixture
def make_scene(make_run: type[FakeRun]) -> Callable[[], Any]:
    """Makes the world of `scenes.garbage_collection`, the same each time, and a daily run of `maintain` on it."""
    from tests.support.scenes.garbage_collection import Scene, make_daily_run, make_world

    def make() -> Scene:
        cloud, bucket = make_world()
        return Scene(cloud, make_daily_run(make_run), bucket)

    return make


@pytest.fixture
def scene(make_scene: Callable[[], Any]) -> Any:
    """One of them."""
    return make_scene()
