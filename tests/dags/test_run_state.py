"""How a run ends: Airflow's own state machine on a database of this module's own.

Tasks end as a test says; which task may start, and what state the run ends in, is Airflow's answer.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from retraining.operators.airflow.dag_run import ENDED_EARLY, end_run
from tests.support.airflow_release import AirflowFailException, DagBag, DownstreamTasksSkipped, sync_bag_to_db

from .conftest import ROOT, parse

DAG_ID = "retrain__flight_delays"
TASKS = ["plan", "snapshot", "check_data", "export", "tune", "train", "evaluate", "decide", "register", "deploy"]
ENDS = ["report", "cancel_jobs"]


PASSES = 60
"""Looks of the scheduler at one run; a failure goes down the line by one task a look."""


@dataclasses.dataclass
class Ended:
    """A run that has ended: its state, its tasks' states, and what `conclude` said."""

    run: Any
    state: str
    tasks: dict[str, str | None]
    message: str


class Scheduler:
    """Runs the stored DAG to its end, with tasks that end as asked.

    Args:
        session: On the database.
    """

    def __init__(self, session: Any) -> None:
        self.session = session
        self._dags = parse(ROOT / "dags")
        self._number = itertools.count(1)
        self._ender = "plan"

    def dag(self, dag_id: str) -> Any:
        """A DAG as the scheduler has it."""
        from airflow.models.serialized_dag import SerializedDagModel

        return SerializedDagModel.get(dag_id, session=self.session).dag

    def mark(self, run: Any, state: str) -> Any:
        """What the UI and the API do when a person marks a run; gives the run as it is then."""
        from airflow.api.common import mark_tasks

        call = getattr(mark_tasks, f"set_dag_run_state_to_{state}")
        call(dag=self.dag(run.dag_id), run_id=run.run_id, commit=True, session=self.session)
        return self._again(run)

    def run(
        self,
        dag_id: str = DAG_ID,
        *,
        failing: tuple[str, ...] = (),
        skipping: tuple[str, ...] = (),
        ended_at: str | None = None,
        asleep: bool = True,
        by: str = "failed",
        paused: str | None = None,
        ender: str = "plan",
    ) -> Ended:
        """One run.

        Args:
            dag_id: Of which DAG.
            failing: Tasks that fail.
            skipping: Tasks that find nothing to do.
            ended_at: The task during which a person marks the run.
            asleep: Whether it waits for its job then, or for its next try.
            by: As what the run is marked.
            paused: Why a task ends it.
            ender: Which one.
        """
        ends = dict.fromkeys(failing, "failed") | dict.fromkeys(skipping, "skipped")
        self._ender = ender
        return self._follow(self._create(self.dag(dag_id)), ends, ended_at, asleep, by, paused)

    def clear(self, run: Any, task_id: str) -> Ended:
        """Clear a task and what follows it, as the UI does, and follow the run to its end; every task succeeds now."""
        dag = self.dag(run.dag_id)
        following = {task_id, *dag.get_task(task_id).get_flat_relative_ids(upstream=False)}
        dag.clear(run_id=run.run_id, task_ids=list(following), session=self.session)
        run.state, run.dag = "running", dag
        self.session.flush()
        return self._follow(run, {}, None, True, "", None)

    def _follow(
        self, run: Any, ends: dict[str, str], ended_at: str | None, asleep: bool, by: str, paused: str | None
    ) -> Ended:
        words, marked = "", False
        for _ in range(PASSES):
            # As the scheduler: it looks at running ones only.
            ready = run.update_state(session=self.session, execute_callbacks=False)[0] if run.state == "running" else ()
            if run.state != "running":
                return Ended(run, str(run.state), {ti.task_id: ti.state for ti in run.task_instances}, words)
            for ti in ready:
                if ti.task_id == ended_at and not marked:
                    ti.state, marked = ("up_for_reschedule" if asleep else "up_for_retry"), True
                    self.session.flush()
                    run = self.mark(run, by)
                elif ti.task_id == "conclude":
                    ti.state, words = _execute(
                        self._dags[run.dag_id].get_task("conclude"), run, {(self._ender, ENDED_EARLY): paused}
                    )
                elif ti.task_id == self._ender and paused:
                    self._end_early(run, paused)
                    ti.state = "success"
                else:
                    ti.state = ends.get(ti.task_id, "success")
            self.session.flush()
        raise AssertionError(f"still running: {[(ti.task_id, ti.state) for ti in run.task_instances]}")

    def _end_early(self, run: Any, message: str) -> None:
        """What the API server does when a task ends the run: what has not begun of the named tasks is skipped."""
        ti: Any = SimpleNamespace(xcom_push=lambda **_: None)
        with pytest.raises(DownstreamTasksSkipped) as ended:
            end_run(self._dags[run.dag_id].get_task(self._ender), {"ti": ti}, message)
        for ti in run.task_instances:
            if ti.task_id in ended.value.tasks:
                ti.state = "skipped"

    def _again(self, run: Any) -> Any:
        """The run as it is stored: older releases let go of what a session had when somebody marks it."""
        from airflow.models.dagrun import DagRun

        found = self.session.get(DagRun, run.id)
        found.dag = self.dag(run.dag_id)
        return found

    def _create(self, dag: Any) -> Any:
        from airflow.utils.types import DagRunTriggeredByType, DagRunType

        run = dag.create_dagrun(
            run_id=f"manual__{next(self._number)}",
            run_after=datetime(2013, 11, 20, 3, tzinfo=UTC),
            run_type=DagRunType.MANUAL,
            triggered_by=DagRunTriggeredByType.TEST,
            state="running",
            session=self.session,
        )
        run.dag = dag
        return run


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Scheduler]:
    """One on a database of its own, which takes seconds to make."""
    from airflow import settings
    from airflow.dag_processing.bundles.manager import DagBundlesManager
    from airflow.utils.db import initdb

    initdb()
    bag = DagBag(dag_folder=str(ROOT / "dags"), known_pools={"default_pool"})
    assert not bag.import_errors
    with settings.Session() as session:
        DagBundlesManager().sync_bundles_to_db(session=session)
        session.commit()
        sync_bag_to_db(bag, "dags-folder", None)
        yield Scheduler(session)


def _execute(conclude: Any, run: Any, xcoms: dict[tuple[str, str], str | None]) -> tuple[str, str]:
    """The last task as a worker runs it, with the states and the XCom that the API server would give it."""
    states = {run.run_id: {ti.task_id: ti.state and str(ti.state) for ti in run.task_instances}}
    ti = SimpleNamespace(
        dag_id=DAG_ID,
        run_id=run.run_id,
        get_task_states=lambda **_: states,
        xcom_pull=lambda task_ids, key: xcoms.get((task_ids, key)),
    )
    try:
        conclude.execute({"ti": ti})
    except AirflowFailException as error:
        return "failed", str(error)
    return "success", ""


def test_a_good_run_succeeds(scheduler) -> None:
    """Every task."""
    outcome = scheduler.run()
    assert outcome.state == "success"
    assert set(outcome.tasks.values()) == {"success"}
    assert outcome.tasks.keys() == {*TASKS, *ENDS, "conclude"}


@pytest.mark.parametrize("task_id", TASKS)
def test_a_failed_task_makes_a_failed_run(scheduler, task_id: str) -> None:
    """Whichever; the page is made and the jobs are ended all the same, and the last task names it."""
    outcome = scheduler.run(failing=(task_id,))
    assert outcome.state == "failed"
    assert [outcome.tasks[end] for end in ENDS] == ["success", "success"]
    assert f"{task_id} failed" in outcome.message
    assert f"clear {task_id} and what follows it" in outcome.message
    assert scheduler.clear(outcome.run, task_id).state == "success"


@pytest.mark.parametrize("task_id", ENDS)
def test_a_failed_teardown_is_not_hidden(scheduler, task_id: str) -> None:
    """A run without its page, or with a job that nobody waits for, is red, though its model serves."""
    outcome = scheduler.run(failing=(task_id,))
    assert outcome.state == "failed"
    assert outcome.tasks["deploy"] == "success"
    assert f"{task_id} failed" in outcome.message
    assert scheduler.clear(outcome.run, task_id).state == "success"


def test_failed_teardowns_hide_no_failure(scheduler) -> None:
    """Both are named."""
    outcome = scheduler.run(failing=("train", *ENDS))
    assert outcome.state == "failed"
    assert "train, report, cancel_jobs failed" in outcome.message


@pytest.mark.parametrize("asleep", [True, False], ids=["waiting", "between_two_tries"])
@pytest.mark.parametrize("task_id", ["plan", "train", "deploy"])
def test_a_run_that_a_person_marked_as_failed_stays_failed(scheduler, task_id: str, asleep: bool) -> None:
    """Airflow skips what has not begun, and a skipped leaf alone would count as a success."""
    outcome = scheduler.run(ended_at=task_id, asleep=asleep)
    assert outcome.state == "failed"
    assert outcome.tasks[task_id] == ("failed" if asleep else "skipped")
    assert [outcome.tasks[end] for end in ENDS] == ["success", "success"]  # the run's jobs are ended
    assert task_id in outcome.message


def test_a_run_marked_as_success_before_its_end_says_what_did_not_run(scheduler) -> None:
    """Airflow leaves no trace of what it was marked as: what did not run counts. Marked again, it stands."""
    from airflow.api.common import mark_tasks

    outcome = scheduler.run(ended_at="train", by="success")
    if not hasattr(mark_tasks, "_set_dag_run_terminal_state"):  # before 3.2 the mark counts for every task at once
        assert outcome.state == "success"
        return
    assert outcome.state == "failed"
    assert "evaluate, decide, register, deploy did not run" in outcome.message
    assert "as success again" in outcome.message
    assert scheduler.mark(outcome.run, "success").state == "success"


def test_a_run_that_its_plan_ended_is_green(scheduler) -> None:
    """Nothing but the plan and the teardowns; the run may be cleared later."""
    outcome = scheduler.run(paused="retraining is paused")
    assert outcome.state == "success"
    ran = {task for task, state in outcome.tasks.items() if state == "success"}
    assert ran == {"plan", *ENDS, "conclude"}
    assert set(outcome.tasks.values()) == {"success", "skipped"}
    again = scheduler.clear(outcome.run, "plan")
    assert again.state == "success"
    assert set(again.tasks.values()) == {"success"}


def test_a_run_that_has_nothing_new_is_green(scheduler) -> None:
    """It ends behind the look at its data, before a job; cleared, it may find something new."""
    outcome = scheduler.run(paused="nothing new since another run", ender="check_data")
    assert outcome.state == "success"
    ran = {task for task, state in outcome.tasks.items() if state == "success"}
    assert ran == {"plan", "snapshot", "check_data", *ENDS, "conclude"}
    assert scheduler.clear(outcome.run, "check_data").state == "success"


def test_what_its_plan_did_not_skip_fails_a_run_all_the_same(scheduler) -> None:
    """A job that nobody waits for any more, of an earlier try."""
    outcome = scheduler.run(failing=("cancel_jobs",), paused="retraining is paused")
    assert outcome.state == "failed"
    assert "cancel_jobs failed" in outcome.message


OTHERS = {
    "monitor__flight_delays": ["measure", "decide"],
    "score__flight_delays": ["plan", "snapshot", "predict", "write"],
    "maintain": ["look", "cancel_jobs", "delete"],
}
FAIL_WITH = {"measure": ("decide",)}
"""What is asked all the same, and refuses to go on: `tests/operators/monitoring/test_decision.py`."""


@pytest.mark.parametrize(("dag_id", "task_id"), [(dag_id, task) for dag_id, tasks in OTHERS.items() for task in tasks])
def test_the_other_dags_hide_no_failure_either(scheduler, dag_id: str, task_id: str) -> None:
    """A failed task and a person's mark both make a failed run; else it succeeds."""
    assert scheduler.run(dag_id).state == "success"
    assert scheduler.run(dag_id, failing=(task_id, *FAIL_WITH.get(task_id, ()))).state == "failed"
    for asleep in (True, False):
        assert scheduler.run(dag_id, ended_at=task_id, asleep=asleep).state == "failed"


@pytest.mark.parametrize("end", ["skipping", "failing"])
def test_a_monitor_decides_whatever_came_of_its_classifier(scheduler, end: str) -> None:
    """One that nobody asked for, and one that failed: the other signals are decided by, and shown."""
    ended = {end: ("multivariate",)}
    outcome = scheduler.run("monitor__flight_delays", **ended)
    assert outcome.state == "success"
    assert outcome.tasks == {
        "measure": "success",
        "multivariate": {"skipping": "skipped", "failing": "failed"}[end],
        "decide": "success",
        "show": "success",
    }
