"""Airflow's names from where the release at hand has them: tests run on the newest one and on the floor, 3.1.7."""

from __future__ import annotations

import inspect
from typing import Any

try:
    from airflow.sdk.exceptions import (
        AirflowFailException,
        AirflowRescheduleException,
        DagRunTriggerException,
        DownstreamTasksSkipped,
        ParamValidationError,
        TaskDeferred,
    )
except ImportError:  # before 3.2
    from airflow.exceptions import (
        AirflowFailException,
        AirflowRescheduleException,
        DagRunTriggerException,
        DownstreamTasksSkipped,
        ParamValidationError,
        TaskDeferred,
    )

try:
    from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db
except ImportError:  # before 3.2
    from airflow.models.dagbag import DagBag, sync_bag_to_db

try:
    from airflow.serialization.serialized_objects import DagSerialization
except ImportError:  # before 3.2
    from airflow.serialization.serialized_objects import SerializedDAG as DagSerialization

__all__ = [
    "AirflowFailException",
    "AirflowRescheduleException",
    "DagBag",
    "DagRunTriggerException",
    "DagSerialization",
    "DownstreamTasksSkipped",
    "ParamValidationError",
    "TaskDeferred",
    "first_clock_run",
    "sync_bag_to_db",
]


def first_clock_run(dag: Any) -> Any:
    """Return the first run that the clock makes of a serialised DAG without runs; None when no clock starts it."""
    parameters = inspect.signature(dag.next_dagrun_info).parameters
    name = "last_automated_run_info" if "last_automated_run_info" in parameters else "last_automated_dagrun"
    return dag.next_dagrun_info(**{name: None})
