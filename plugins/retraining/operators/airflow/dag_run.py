"""What Airflow says of a DAG run: its type, who started it, and what the asset events that did brought along."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from airflow.sdk import BaseOperator, Context
from airflow.sdk.exceptions import AirflowRuntimeError

from retraining.core.documents import Trigger
from retraining.core.planning.triggers import AssetEvent, newest_event, trigger_of
from retraining.core.untyped import JsonObject
from retraining.hooks.airflow_exceptions import DownstreamTasksSkipped

LOGGER = logging.getLogger(__name__)


def run_type(dag_run: Any) -> str:
    """Return the run's type as text: `manual`, `scheduled`, `backfill`, `asset_triggered`."""
    return str(getattr(dag_run.run_type, "value", dag_run.run_type))


def job_attempt(context: Context) -> str:
    """Return what tells a wanted repetition of a query (another run, a cleared task) from a retry."""
    ti = context["ti"]
    return f"{ti.dag_id}|{ti.run_id}|{ti.max_tries}"


def asset_events(context: Context) -> list[AssetEvent]:
    """Return the asset events that a run takes up: those that started it, and those that came while it waited.

    While as many runs are active as a DAG may have, Airflow (3.1 to 3.3) keeps one mark for all events of an asset,
    with the time of the first. The run that follows is given the events until then; no run comes for the others, until
    one more event starts one (https://github.com/apache/airflow/issues/56050). So the task asks for what came since: of
    its inlets, the assets that start the DAG.
    """
    dag_run = context["dag_run"]
    given = list(dag_run.consumed_asset_events or ())
    if run_type(dag_run) != "asset_triggered":
        return []
    since = max((event.timestamp for event in given), default=dag_run.run_after)
    return [_event(event) for event in (*given, *_later(context, since))]


def state_of_run(context: Context, dag_id: str, run_id: str) -> str | None:
    """Return the state of another DAG run (`queued`, `running`, `success`, `failed`); None: there is none such."""
    ti: Any = context["ti"]  # the protocol of the SDK leaves both methods out
    if not ti.get_dr_count(dag_id=dag_id, run_ids=[run_id]):
        return None
    return str(ti.get_dagrun_state(dag_id=dag_id, run_id=run_id))


def state_of_task(context: Context, dag_id: str, run_id: str, task_id: str) -> str | None:
    """Return the state of a task in another DAG run; None: it has none yet, or the run is gone."""
    ti: Any = context["ti"]
    states = ti.get_task_states(dag_id=dag_id, task_ids=[task_id], run_ids=[run_id])
    return _as_text((states.get(run_id) or {}).get(task_id))


def states_of_mapped(context: Context, task_id: str) -> dict[int, str | None]:
    """Return the states of a mapped task's instances in this run, by their numbers."""
    ti: Any = context["ti"]
    states = ti.get_task_states(dag_id=ti.dag_id, task_ids=[task_id], run_ids=[ti.run_id]).get(ti.run_id, {})
    found = {name.removeprefix(f"{task_id}_"): state for name, state in states.items()}
    return {int(number): _as_text(state) for number, state in found.items() if number.isdecimal()}


def states_of_run_tasks(context: Context, task_ids: Iterable[str]) -> dict[str, str | None]:
    """Return the state of each task of this run; of a mapped one that of the instance that came off worst."""
    ti: Any = context["ti"]
    states = ti.get_task_states(dag_id=ti.dag_id, run_ids=[ti.run_id]).get(ti.run_id, {})
    return {task_id: _worst(task_id, states) for task_id in task_ids}


def _worst(task_id: str, states: Mapping[str, Any]) -> str | None:
    """Return a task's state; Airflow gives those of mapped instances as `task_0`, `task_1` and so on."""
    if task_id in states:
        return _as_text(states[task_id])
    mapped = [state for name, state in states.items() if re.fullmatch(rf"{re.escape(task_id)}_\d+", name)]
    found = [_as_text(state) for state in mapped]
    return next((state for state in _WORST_FIRST if state in found), found[0] if found else None)


_WORST_FIRST = ("failed", "upstream_failed", None, "removed", "skipped", "success")


def _as_text(state: Any) -> str | None:
    return None if state is None else str(getattr(state, "value", state))


def newest_extra(events: Sequence[AssetEvent]) -> JsonObject:
    """Return `extra` of the asset event that decides the run's time; empty when none started it."""
    newest = newest_event(events)
    return newest.extra if newest else {}


def asks_for_study(events: Sequence[AssetEvent]) -> bool:
    """Return whether any of the events that a run takes up asks for a study of hyperparameters."""
    return any(event.extra.get("tune") is True for event in events)


def trigger(dag_run: Any, events: Sequence[AssetEvent] = ()) -> Trigger:
    """Return who started the run, and the reason given."""
    person = getattr(dag_run, "triggering_user_name", None)
    return trigger_of(run_type(dag_run), person=person, events=events)


def _later(context: Context, since: datetime) -> list[Any]:
    """Return the events of the task's inlets after a time that no other run of the DAG was given."""
    dag_run, found = context["dag_run"], []
    for asset in context["task"].inlets:
        for event in _events_after(context, asset, since):
            takers = {run.run_id for run in event.created_dagruns if run.dag_id == dag_run.dag_id}
            if event.timestamp > since and not takers - {dag_run.run_id}:
                found.append(event)
    return found


def _events_after(context: Context, asset: Any, since: datetime) -> list[Any]:
    """Ask Airflow for an asset's events; those that it cannot list (a run of theirs is still queued) stay unnamed."""
    try:
        events: Any = context["inlet_events"][asset]
        return list(events.after(since.isoformat()) if hasattr(events, "after") else events)  # Airflow 3.1 gives all
    except AirflowRuntimeError as error:
        LOGGER.warning("events of the asset %s that came since the run was made are not known: %s", asset.name, error)
        return []


def _event(event: Any) -> AssetEvent:
    return AssetEvent(asset=event.asset.name, at=event.timestamp, extra=dict(event.extra or {}))


MAY_END, ENDED_EARLY = ("plan", "check_data"), "ended_early"
"""Tasks that may end the run."""


def end_run(task: BaseOperator, context: Context, message: str) -> NoReturn:
    """End the task, as a success, and skip what follows it; the teardowns run and find nothing to do.

    Args:
        task: One of `MAY_END`.
        context: Airflow's.
        message: Why; `conclude` finds it in XCom.

    Raises:
        DownstreamTasksSkipped: Airflow's way to say so.
    """
    context["ti"].xcom_push(key=ENDED_EARLY, value=message)
    following = task.get_flat_relatives(upstream=False)
    skipped: Any = DownstreamTasksSkipped  # it has no types
    raise skipped(tasks=sorted(each.task_id for each in following if not each.is_teardown))


def reason_of_end(ti: Any) -> str | None:
    """Return why a task of the run ended it; None: none did. A cleared task begins without."""
    said = (ti.xcom_pull(task_ids=task_id, key=ENDED_EARLY) for task_id in MAY_END)
    return next((str(found) for found in said if found), None)
